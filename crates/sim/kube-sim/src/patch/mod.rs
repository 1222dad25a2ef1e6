//! The ways to change a part of an object.

mod merge;
mod strategic;

use serde_json::Value;

pub(crate) use merge::merge;
pub(crate) use strategic::{merge as merge_strategically, merge_key};

use crate::status::ApiError;

/// What a content type asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+json" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// Applies a JSON patch, all of it or nothing.
pub(crate) fn apply_json_patch(object: &mut Value, patch: &Value) -> Result<(), ApiError> {
    let found = match patch {
        Value::Array(_) => None,
        Value::Object(_) => Some("object"),
        Value::String(_) => Some("string"),
        Value::Number(_) => Some("number"),
        Value::Bool(_) => Some("bool"),
        Value::Null => Some("null"),
    };
    if let Some(found) = found {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
        )));
    }
    let refused = |error: &dyn std::error::Error| {
        tracing::debug!(%error, "a JSON patch failed");
        ApiError::unprocessable("the server rejected our request due to an error in our request")
            .with_empty_details()
    };
    let patch: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| refused(&error))?;
    json_patch::patch(object, &patch).map_err(|error| refused(&error))
}
