//! What only one door knows of a request, a VM or a pool.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One thing that a door knows, with its name for scripts and its name for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// In snake_case.
    pub key: Cow<'static, str>,
    pub label: Cow<'static, str>,
    /// `None`: a thing of this kind has it, but this one does not.
    pub value: Option<String>,
    /// Whether it has a column in lists; else it stands where the thing is shown alone.
    #[serde(default)]
    pub listed: bool,
}

/// In the order in which people are shown them. In JSON the list `facts`, and each value under its key beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts(pub Vec<Fact>);

impl Facts {
    /// Adds one that has a column in lists. All things of a kind have the same facts in the same order, so that there are columns: what is not
    /// known is added as `None`.
    #[must_use]
    pub fn listed(
        self,
        key: &'static str,
        label: &'static str,
        value: Option<impl Into<String>>,
    ) -> Self {
        self.add(key, label, value.map(Into::into), true)
    }

    /// Adds one that stands where the thing is shown alone.
    #[must_use]
    pub fn with(
        self,
        key: &'static str,
        label: &'static str,
        value: Option<impl Into<String>>,
    ) -> Self {
        self.add(key, label, value.map(Into::into), false)
    }

    /// Adds one for scripts only: people are shown the same in another way.
    #[must_use]
    pub fn silent(self, key: &'static str, value: Option<impl Into<String>>) -> Self {
        self.add(key, "", value.map(Into::into), false)
    }

    fn add(
        mut self,
        key: &'static str,
        label: &'static str,
        value: Option<String>,
        listed: bool,
    ) -> Self {
        self.0.push(Fact { key: key.into(), label: label.into(), value, listed });
        self
    }

    /// Those that have a column.
    pub fn columns(&self) -> impl Iterator<Item = &Fact> {
        self.0.iter().filter(|fact| fact.listed)
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|fact| fact.key == key)?.value.as_deref()
    }

    /// Those with a value that people are shown: label and value.
    pub fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        let shown = self.0.iter().filter(|fact| !fact.label.is_empty());
        shown.filter_map(|fact| Some((&*fact.label, fact.value.as_deref()?)))
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len() + 1))?;
        for fact in &self.0 {
            map.serialize_entry(&fact.key, &fact.value)?;
        }
        map.serialize_entry("facts", &self.0)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AmongOthers)
    }
}

struct AmongOthers;

impl<'de> Visitor<'de> for AmongOthers {
    type Value = Facts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a list of facts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Facts, A::Error> {
        let mut facts = Facts::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "facts" {
                facts = Facts(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(facts)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Facts {
    fn schema_name() -> Cow<'static, str> {
        "Facts".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<Fact>>();
        schemars::json_schema!({
            "type": "object",
            "description": "What the door knows beyond the rest: a list with labels, and each value under its key beside it.",
            "properties": {"facts": list},
            "required": ["facts"],
            "additionalProperties": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Thing {
        name: String,
        #[serde(flatten)]
        facts: Facts,
    }

    #[test]
    fn facts_stand_flat_for_scripts_and_with_labels_for_people() {
        let facts = Facts::default().listed("size", "Size", Some("small")).with(
            "zone",
            "Zone",
            None::<String>,
        );
        let facts = facts.silent("raw", Some("x"));
        let thing = Thing { name: "a".into(), facts };
        let json = serde_json::to_value(&thing).unwrap();
        assert_eq!(json["size"], "small");
        assert!(json["zone"].is_null());
        assert_eq!((&json["facts"][0]["label"], &json["raw"]), (&"Size".into(), &"x".into()));
        assert_eq!(serde_json::from_value::<Thing>(json).unwrap(), thing);
        assert_eq!(thing.facts.known().collect::<Vec<_>>(), [("Size", "small")]);
        assert_eq!(thing.facts.columns().count(), 1);
    }

    #[test]
    fn a_thing_without_facts_is_read() {
        let thing: Thing = serde_json::from_str(r#"{"name":"a","other":[1]}"#).unwrap();
        assert_eq!(thing.facts, Facts::default());
    }
}
