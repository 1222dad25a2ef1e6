use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How much there may be. In JSON a number, or one of the words `unlimited` and `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LimitView {
    At(u64),
    #[default]
    Unlimited,
    /// There is one, but it cannot be read at present.
    Unknown,
}

impl LimitView {
    pub fn at(self) -> Option<u64> {
        match self {
            Self::At(limit) => Some(limit),
            Self::Unlimited | Self::Unknown => None,
        }
    }
}

impl fmt::Display for LimitView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(limit) => limit.fmt(f),
            Self::Unlimited => f.pad("unlimited"),
            Self::Unknown => f.pad("unknown"),
        }
    }
}

impl Serialize for LimitView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(limit) => serializer.serialize_u64(*limit),
            Self::Unlimited | Self::Unknown => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for LimitView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrWord)
    }
}

struct NumberOrWord;

impl Visitor<'_> for NumberOrWord {
    type Value = LimitView;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"unlimited\" or \"unknown\"")
    }

    fn visit_u64<E: Error>(self, limit: u64) -> Result<LimitView, E> {
        Ok(LimitView::At(limit))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<LimitView, E> {
        match word {
            "unlimited" => Ok(LimitView::Unlimited),
            "unknown" => Ok(LimitView::Unknown),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for LimitView {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LimitView".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "How much there may be: a number, or one of two words.",
            "oneOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "enum": ["unlimited", "unknown"]},
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_a_word_in_json() {
        let limits = [LimitView::At(7), LimitView::Unlimited, LimitView::Unknown];
        let json = serde_json::to_string(&limits).unwrap();
        assert_eq!(json, r#"[7,"unlimited","unknown"]"#);
        assert_eq!(serde_json::from_str::<[LimitView; 3]>(&json).unwrap(), limits);
        for wrong in ["-1", "null", r#""none""#] {
            assert!(serde_json::from_str::<LimitView>(wrong).is_err(), "{wrong}");
        }
    }
}
