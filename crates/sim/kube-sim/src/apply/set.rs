//! Sets of fields, in memory and as `fieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Field(String),
    /// An item of a list, known by these fields; the text is JSON.
    Key(String),
    /// An item of a set; the text is JSON.
    Item(String),
}

impl Step {
    fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(key) => format!("k:{key}"),
            Self::Item(value) => format!("v:{value}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        Some(match kind {
            "f" => Self::Field(rest.to_owned()),
            "k" => Self::Key(rest.to_owned()),
            "v" => Self::Item(rest.to_owned()),
            _ => return None,
        })
    }

    /// As conflicts name it: `.spec`, `[name="web"]`, `["a"]`.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Field(name) => format!(".{name}"),
            Self::Key(key) => {
                let fields: BTreeMap<String, Value> = serde_json::from_str(key).unwrap_or_default();
                let fields: Vec<_> =
                    fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("[{}]", fields.join(","))
            }
            Self::Item(value) => format!("[={value}]"),
        }
    }

    /// The part of `value` that this step leads to.
    pub(super) fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Field(name) => value.get(name),
            Self::Key(key) => value.as_array()?.iter().find(|item| fits(item, key)),
            Self::Item(wanted) => value.as_array()?.iter().find(|item| is(item, wanted)),
        }
    }

    /// Removes the part that this step leads to.
    pub(super) fn remove_from(&self, value: &mut Value) {
        match (self, value) {
            (Self::Field(name), Value::Object(fields)) => {
                fields.remove(name);
            }
            (Self::Key(key), Value::Array(items)) => items.retain(|item| !fits(item, key)),
            (Self::Item(wanted), Value::Array(items)) => {
                items.retain(|item| !is(item, wanted));
            }
            _ => {}
        }
    }

    pub(super) fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        match self {
            Self::Field(name) => value.get_mut(name),
            Self::Key(key) => value.as_array_mut()?.iter_mut().find(|item| fits(item, key)),
            Self::Item(wanted) => value.as_array_mut()?.iter_mut().find(|item| is(item, wanted)),
        }
    }
}

/// Whether an item of a set has this text.
fn is(item: &Value, text: &str) -> bool {
    item.to_string().as_str() == text
}

fn fits(item: &Value, key: &str) -> bool {
    let fields: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
    fields.iter().all(|(name, value)| key_value(item, name) == *value)
}

/// The value of a key field; a port without a protocol is TCP.
pub(super) fn key_value(item: &Value, name: &str) -> Value {
    match item.get(name) {
        Some(value) => value.clone(),
        None if name == "protocol" => json!("TCP"),
        None => Value::Null,
    }
}

/// A set of fields as a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) is_member: bool,
    pub(super) children: BTreeMap<Step, Set>,
}

impl Set {
    pub(super) fn leaf() -> Self {
        Self { is_member: true, children: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.children.values().all(Self::is_empty)
    }

    pub(super) fn read(json: &Value) -> Self {
        let mut set = Self::default();
        for (name, child) in json.as_object().into_iter().flatten() {
            if name == "." {
                set.is_member = true;
            } else if let Some(step) = Step::parse(name) {
                let mut child_set = Self::read(child);
                child_set.is_member |= child_set.children.is_empty();
                set.children.insert(step, child_set);
            }
        }
        set
    }

    pub(super) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        if self.is_member && !self.children.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        for (step, child) in &self.children {
            if !child.is_empty() {
                fields.insert(step.text(), child.to_json());
            }
        }
        Value::Object(fields)
    }

    /// All members, as paths.
    pub(super) fn paths(&self) -> Vec<Vec<Step>> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, path: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
        if self.is_member && !path.is_empty() {
            found.push(path.clone());
        }
        for (step, child) in &self.children {
            path.push(step.clone());
            child.collect(path, found);
            path.pop();
        }
    }

    pub(super) fn contains(&self, path: &[Step]) -> bool {
        match path.split_first() {
            None => self.is_member,
            Some((step, rest)) => self.children.get(step).is_some_and(|child| child.contains(rest)),
        }
    }

    /// Whether the path or anything below it is a member.
    pub(super) fn touches(&self, path: &[Step]) -> bool {
        match path.split_first() {
            None => !self.is_empty(),
            Some((step, rest)) => self.children.get(step).is_some_and(|child| child.touches(rest)),
        }
    }

    pub(super) fn insert(&mut self, path: &[Step]) {
        match path.split_first() {
            None => self.is_member = true,
            Some((step, rest)) => self.children.entry(step.clone()).or_default().insert(rest),
        }
    }

    pub(super) fn remove(&mut self, path: &[Step]) {
        match path.split_first() {
            None => *self = Self::default(),
            Some((step, rest)) => {
                if let Some(child) = self.children.get_mut(step) {
                    child.remove(rest);
                    if child.is_empty() {
                        self.children.remove(step);
                    }
                }
            }
        }
    }

    /// Takes one member out and leaves what is below it.
    pub(super) fn remove_one(&mut self, path: &[Step]) {
        match path.split_first() {
            None => self.is_member = false,
            Some((step, rest)) => {
                if let Some(child) = self.children.get_mut(step) {
                    child.remove_one(rest);
                    if child.is_empty() {
                        self.children.remove(step);
                    }
                }
            }
        }
    }
}

pub(super) fn shown(path: &[Step]) -> String {
    path.iter().map(Step::shown).collect()
}
