use std::collections::BTreeMap;

use crate::user::User;

/// How the server is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Uids, generated names and faults come from it.
    pub seed: u64,
    /// Changes that are kept per kind, to watch from and to page on. What is older answers `410 Gone`.
    pub history: usize,
    /// Garbage collection and the end of namespaces, which the controller manager does behind a real server.
    pub controllers: bool,
    /// Whether the control endpoint is served.
    pub control_endpoint: bool,
    /// Bearer tokens and whom they stand for.
    pub tokens: BTreeMap<String, User>,
    /// What users and groups may do beside what roles and bindings say.
    pub grants: Vec<Grant>,
    /// Whether a request on the wire without a token may do everything.
    pub open: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            history: 10_000,
            controllers: true,
            control_endpoint: true,
            tokens: BTreeMap::new(),
            grants: Vec::new(),
            open: true,
        }
    }
}

/// One row of the table of who may do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// A user or a group.
    pub who: String,
    /// `*` is any, here and below.
    pub verb: String,
    pub group: String,
    /// A resource such as `pods/status`, or a path such as `/metrics`.
    pub what: String,
}

impl Grant {
    pub(crate) fn rule(&self) -> serde_json::Value {
        if self.what.starts_with('/') {
            return serde_json::json!({"verbs": [self.verb], "nonResourceURLs": [self.what]});
        }
        serde_json::json!({"verbs": [self.verb], "apiGroups": [self.group], "resources": [self.what]})
    }
}
