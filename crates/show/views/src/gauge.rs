use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::LimitView;
use crate::words::{Style, memory};

/// What is taken of something that is limited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GaugeView {
    /// For people.
    #[serde(default)]
    pub words: String,
    /// In one or two words, where there is little room.
    #[serde(default)]
    pub brief: String,
    #[serde(default)]
    pub unit: Unit,
    pub used: u64,
    /// On top of it, promised to what is on its way.
    pub reserved: u64,
    pub limit: LimitView,
}

impl GaugeView {
    pub fn is_full(&self) -> bool {
        self.limit.at().is_some_and(|limit| self.used.saturating_add(self.reserved) >= limit)
    }
}

/// What an amount counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    #[default]
    Pieces,
    Mebibytes,
    Megahertz,
}

impl Unit {
    pub fn amount(self, amount: u64, style: Style) -> String {
        match self {
            Self::Pieces => amount.to_string(),
            Self::Mebibytes => memory(amount, style),
            Self::Megahertz => format!("{amount} MHz"),
        }
    }
}

/// Gauges by name, in the order in which they are declared. In JSON an object; `place` keeps the order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gauges(pub Vec<(String, GaugeView)>);

impl Gauges {
    pub fn get(&self, name: &str) -> Option<&GaugeView> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, gauge)| gauge)
    }

    pub fn iter(&self) -> impl Iterator<Item = &GaugeView> {
        self.0.iter().map(|(_, gauge)| gauge)
    }

    /// Adds one, unless there is one of this name: doors of one core may show the same limit.
    pub fn add(&mut self, name: impl Into<String>, gauge: GaugeView) {
        let name = name.into();
        if self.get(&name).is_none() {
            self.0.push((name, gauge));
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Placed<G> {
    #[serde(default)]
    place: usize,
    #[serde(flatten)]
    gauge: G,
}

impl Serialize for Gauges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (place, (name, gauge)) in self.0.iter().enumerate() {
            map.serialize_entry(name, &Placed { place, gauge })?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Gauges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByName)
    }
}

struct ByName;

impl<'de> Visitor<'de> for ByName {
    type Value = Gauges;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of gauges")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Gauges, A::Error> {
        let mut gauges = Vec::new();
        while let Some((name, placed)) = map.next_entry::<String, Placed<GaugeView>>()? {
            gauges.push((placed.place, name, placed.gauge));
        }
        gauges.sort_by_key(|(place, ..)| *place);
        Ok(Gauges(gauges.into_iter().map(|(_, name, gauge)| (name, gauge)).collect()))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Gauges {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Gauges".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let gauge = generator.subschema_for::<GaugeView>();
        schemars::json_schema!({
            "type": "object",
            "description": "What is taken of what is limited, by name; `place` in each says in which order they are shown.",
            "additionalProperties": gauge,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_an_object_in_json_and_keep_their_order() {
        let gauge = |used| GaugeView { used, limit: LimitView::At(9), ..GaugeView::default() };
        let mut gauges = Gauges::default();
        gauges.add("workers", gauge(1));
        gauges.add("cpus", gauge(2));
        gauges.add("workers", gauge(3));
        let json = serde_json::to_value(&gauges).unwrap();
        assert_eq!(json["cpus"]["used"], 2);
        assert_eq!(serde_json::from_value::<Gauges>(json).unwrap(), gauges);
    }

    #[test]
    fn what_is_promised_fills_a_gauge_too() {
        let gauge =
            |used, reserved, limit| GaugeView { used, reserved, limit, ..GaugeView::default() };
        assert!(gauge(1, 1, LimitView::At(2)).is_full());
        assert!(!gauge(1, 0, LimitView::At(2)).is_full());
        assert!(!gauge(9, 9, LimitView::Unlimited).is_full());
    }
}
