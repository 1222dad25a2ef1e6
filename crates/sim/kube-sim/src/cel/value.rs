//! The values that expressions work on.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value as Json;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
    Type(&'static str),
}

impl Value {
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
        }
    }

    /// Numbers compare across their types.
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.is_equal(b))
            }
            (Self::Map(one), Self::Map(other)) => {
                one.len() == other.len()
                    && one.iter().all(|(key, a)| other.get(key).is_some_and(|b| a.is_equal(b)))
            }
            _ => match (self.number(), other.number()) {
                (Some(_), Some(_)) => self.order(other) == Some(Ordering::Equal),
                _ => self == other,
            },
        }
    }

    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "mixed comparison only")]
    fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Uint(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            _ => None,
        }
    }
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(is) => Self::Bool(*is),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Self::Int(number),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Json::Object(fields) => {
                Self::Map(fields.iter().map(|(name, value)| (name.clone(), value.into())).collect())
            }
        }
    }
}
