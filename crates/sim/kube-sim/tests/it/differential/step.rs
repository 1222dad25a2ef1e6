use serde_json::Value;

/// One request and a name for it.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Value,
}

pub(super) fn step(name: &'static str, method: &'static str, path: &str, body: Value) -> Step {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    Step { name, method, path: path.to_owned(), content_type, body }
}

impl Step {
    pub(super) fn patch(name: &'static str, path: &str, kind: &'static str, body: Value) -> Self {
        let content_type = match kind {
            "json" => "application/json-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            _ => "application/merge-patch+json",
        };
        Self { content_type, ..step(name, "PATCH", path, body) }
    }
}
