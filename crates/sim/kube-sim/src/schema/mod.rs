//! Structural schemas: what a field may hold, what it holds when nobody says, what is dropped.

mod default;
mod prune;
mod read;
mod validate;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::cel::Rule;

/// One node of a schema; the keywords that Kubernetes allows and no others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    pub(crate) kind: Option<Kind>,
    pub(crate) format: Option<String>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) default: Option<Value>,
    pub(crate) allowed: Vec<Value>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) bounds: Bounds,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
    pub(crate) nullable: bool,
    pub(crate) preserves_unknown: bool,
    pub(crate) int_or_string: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) list: ListKind,
    /// A map or object that is owned as a whole.
    pub(crate) is_atomic: bool,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// What is allowed beside the properties.
#[derive(Debug, Clone, Default)]
pub(crate) enum Additional {
    #[default]
    None,
    Any,
    Each(Box<Schema>),
}

/// How lists merge, and by what their items are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    /// `None`: not an expression that we can read; such a pattern holds for everything.
    pub(crate) regex: Option<Regex>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    pub(crate) min_items: Option<usize>,
    pub(crate) max_items: Option<usize>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<usize>,
    pub(crate) max_properties: Option<usize>,
}

/// A path and the name of a field below it.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

impl Schema {
    /// The schema of what lies under this name, if the schema knows it.
    pub(crate) fn child(&self, name: &str) -> Option<&Schema> {
        match (self.properties.get(name), &self.additional) {
            (Some(schema), _) => Some(schema),
            (None, Additional::Each(schema)) => Some(schema),
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests;
