use serde_json::Value;

/// One request and a name for it.
///
/// Path and body may hold what the same server said before: `$version` and `$uid` of the object that it showed last, `$continue`
/// and `$list` (the token and the version) of the list that it showed last.
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

/// A request without a body.
pub(super) fn bare(name: &'static str, method: &'static str, path: &str) -> Step {
    step(name, method, path, Value::Null)
}

impl Step {
    pub(super) fn patch(name: &'static str, path: &str, kind: &'static str, body: Value) -> Self {
        let content_type = match kind {
            "json" => "application/json-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            "merge" => "application/merge-patch+json",
            other => other,
        };
        Self { content_type, ..step(name, "PATCH", path, body) }
    }
}

/// What a server showed last.
#[derive(Default)]
pub(super) struct Seen {
    version: String,
    uid: String,
    list: String,
    token: String,
}

impl Seen {
    pub(super) fn remember(&mut self, answer: &Value) {
        let metadata = &answer["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        if answer["items"].is_array() {
            (self.list, self.token) = (text("resourceVersion"), text("continue"));
        } else if metadata["resourceVersion"].is_string() {
            (self.version, self.uid) = (text("resourceVersion"), text("uid"));
        }
    }

    pub(super) fn fill(&self, text: &str) -> String {
        text.replace("$version", &self.version)
            .replace("$uid", &self.uid)
            .replace("$list", &self.list)
            .replace("$continue", &self.token)
    }
}
