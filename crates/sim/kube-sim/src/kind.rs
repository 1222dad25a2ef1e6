//! Kinds of objects: how they are named, where they live, what is special about them.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::builtin::BuiltIn;
use crate::schema::Schema;

/// A kind of object that the server knows.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "`kind` and `listKind` are the words of the API")]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    /// Best first.
    pub(crate) versions: Vec<Version>,
    pub(crate) origin: Origin,
    /// The `clientConfig` of the webhook that converts between versions.
    pub(crate) conversion: Option<Value>,
}

#[derive(Debug)]
pub(crate) enum Origin {
    BuiltIn(&'static BuiltIn),
    Custom,
}

#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) is_served: bool,
    pub(crate) is_storage: bool,
    /// As the definition states it; what `explain` shows.
    pub(crate) openapi: Option<Value>,
    pub(crate) schema: OnceLock<Option<Arc<Schema>>>,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) subresources: Vec<&'static str>,
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable_fields: Vec<String>,
}

/// Where a kind keeps what its scale subresource shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) json_path: String,
}

impl Kind {
    /// `configmaps`, `widgets.example.com`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `ConfigMap`, `Widget.example.com`.
    pub(crate) fn full_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    pub(crate) fn storage_version(&self) -> &Version {
        self.versions
            .iter()
            .find(|version| version.is_storage)
            .or_else(|| self.versions.first())
            .expect("a kind has a version")
    }

    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.origin, Origin::Custom)
    }

    pub(crate) fn built_in(&self) -> Option<&'static BuiltIn> {
        match self.origin {
            Origin::BuiltIn(built_in) => Some(built_in),
            Origin::Custom => None,
        }
    }

    /// Whether this is the built-in kind of that name.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// The table that holds the objects. Both kinds of events are one.
    pub(crate) fn table(&self) -> (String, String) {
        if self.is("events.k8s.io", "events") {
            return (String::new(), "events".to_owned());
        }
        (self.group.clone(), self.plural.clone())
    }

    /// Whether the server counts changes in `metadata.generation`.
    pub(crate) fn counts_generations(&self) -> bool {
        self.built_in().is_none_or(|built_in| built_in.has(crate::builtin::GENERATION))
    }
}

impl Version {
    /// The schema in the form that the server works with, made on first use.
    pub(crate) fn schema(&self) -> Option<Arc<Schema>> {
        self.schema
            .get_or_init(|| self.openapi.as_ref().map(|json| Arc::new(Schema::read(json))))
            .clone()
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        match name {
            "status" => self.has_status,
            "scale" => self.scale.is_some(),
            _ => self.subresources.contains(&name),
        }
    }
}
