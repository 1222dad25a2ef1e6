//! What merges with what: from the schema of a custom kind, or from what is known of built-in ones.

use serde_json::{Map, Value};

use super::set::{Set, Step, key_value};
use crate::kind::Kind;
use crate::patch;
use crate::schema::{ListKind, Schema};

/// A place in an object and what is known about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'a> {
    schema: Option<&'a Schema>,
    is_custom: bool,
    parent: &'a str,
    field: &'a str,
}

impl<'a> Shape<'a> {
    pub(super) fn root(kind: &Kind, schema: Option<&'a Schema>) -> Self {
        Self { schema, is_custom: kind.is_custom(), parent: "", field: "" }
    }

    pub(super) fn child(self, name: &'a str) -> Self {
        // Metadata is the same for all kinds.
        let is_custom = self.is_custom && !(self.field.is_empty() && name == "metadata");
        let schema = self.schema.filter(|_| is_custom).and_then(|schema| schema.child(name));
        Self { schema, is_custom, parent: self.field, field: name }
    }

    pub(super) fn item(self) -> Self {
        Self { schema: self.schema.and_then(|schema| schema.items.as_deref()), ..self }
    }

    pub(super) fn is_atomic_map(self) -> bool {
        if self.is_custom {
            return self.schema.is_some_and(|schema| schema.is_atomic);
        }
        // Selectors of services and workloads, resource and object references.
        matches!((self.parent, self.field), ("spec", "selector" | "nodeSelector"))
            || self.field.ends_with("KeyRef")
    }

    pub(super) fn list(self) -> ListKind {
        if self.is_custom {
            return self.schema.map(|schema| schema.list.clone()).unwrap_or_default();
        }
        match patch::merge_key(self.parent, self.field) {
            Some("") => ListKind::Set,
            Some(key @ ("containerPort" | "port")) => {
                ListKind::Map(vec![key.to_owned(), "protocol".to_owned()])
            }
            // Taints merge in strategic patches; apply replaces them as a whole.
            None | Some("key") => ListKind::Atomic,
            Some(key) => ListKind::Map(vec![key.to_owned()]),
        }
    }

    /// The step that leads to an item of a list.
    pub(super) fn step(self, item: &Value) -> Option<Step> {
        match self.list() {
            ListKind::Atomic => None,
            ListKind::Set => Some(Step::Item(item.to_string())),
            ListKind::Map(keys) => {
                let fields: Map<String, Value> =
                    keys.iter().map(|key| (key.clone(), key_value(item, key))).collect();
                Some(Step::Key(Value::Object(fields).to_string()))
            }
        }
    }

    /// The fields that a value sets.
    pub(super) fn fields(self, value: &Value) -> Set {
        match value {
            Value::Object(fields) if !fields.is_empty() && !self.is_atomic_map() => Set {
                is_member: false,
                children: fields
                    .iter()
                    .map(|(name, value)| {
                        (Step::Field(name.clone()), Shape::child(self, name).fields(value))
                    })
                    .collect(),
            },
            Value::Array(items) if !items.is_empty() && self.list() != ListKind::Atomic => {
                let mut set = Set::default();
                for item in items {
                    if let Some(step) = self.step(item) {
                        let mut child = self.item().fields(item);
                        child.is_member = true;
                        set.children.insert(step, child);
                    }
                }
                set
            }
            _ => Set::leaf(),
        }
    }
}

/// Fields that nobody owns.
pub(super) fn without_server_fields(mut set: Set) -> Set {
    for name in ["apiVersion", "kind"] {
        set.remove(&[Step::Field(name.to_owned())]);
    }
    for name in [
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
        "managedFields",
    ] {
        set.remove(&[Step::Field("metadata".to_owned()), Step::Field(name.to_owned())]);
    }
    set.remove_one(&[Step::Field("metadata".to_owned())]);
    set
}
