//! Which names objects may have.

use serde_json::json;

use crate::kind::Kind;
use crate::status::Cause;

/// Names of these kinds are parts of paths, not of DNS names.
const PATH_NAMES: [&str; 4] = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];

/// What is wrong with the name of an object.
pub(crate) fn name_problems(kind: &Kind, name: &str) -> Vec<Cause> {
    let field = "metadata.name";
    if name.is_empty() {
        return vec![Cause::required(field, "name or generateName is required")];
    }
    if PATH_NAMES.contains(&kind.plural.as_str()) {
        let fits = !name.contains(['/', '%']) && name != "." && name != "..";
        return if fits {
            Vec::new()
        } else {
            vec![Cause::invalid(field, &json!(name), "must be a path segment")]
        };
    }
    let is_label =
        matches!(kind.plural.as_str(), "namespaces" | "services") && kind.group.is_empty();
    if is_label {
        if name.len() > 63 || !is_label_name(name) {
            let why = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
            return vec![Cause::invalid(field, &json!(name), why)];
        }
        return Vec::new();
    }
    if name.len() > 253 || !name.split('.').all(is_label_name) {
        let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        return vec![Cause::invalid(field, &json!(name), why)];
    }
    Vec::new()
}

fn is_label_name(part: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}
