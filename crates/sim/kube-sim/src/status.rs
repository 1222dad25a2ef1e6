//! Refusals in the form that clients expect: a `Status` object with code, reason and details.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::kind::Kind;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Map<String, Value>,
    /// Seconds, for the header as well.
    pub(crate) retry_after: Option<u64>,
    /// Some refusals have details without any.
    has_empty_details: bool,
}

/// One thing that is wrong with an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn invalid(field: &str, value: &Value, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    pub(crate) fn required(field: &str, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        Self::new("FieldValueRequired", field, message)
    }

    pub(crate) fn forbidden(field: &str, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    pub(crate) fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, field: field.to_owned(), message }
    }
}

impl ApiError {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            retry_after: None,
            has_empty_details: false,
        }
    }

    /// With the details that name the object.
    fn about(mut self, kind: &Kind, name: &str) -> Self {
        if !name.is_empty() {
            self.details.insert("name".into(), name.into());
        }
        if !kind.group.is_empty() {
            self.details.insert("group".into(), kind.group.clone().into());
        }
        self.details.insert("kind".into(), kind.plural.clone().into());
        self
    }

    #[must_use]
    pub(crate) fn with_empty_details(mut self) -> Self {
        self.has_empty_details = true;
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(kind, name)
    }

    /// A path that leads nowhere.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_empty_details()
    }

    /// What a real server asks the kubelet of a pod's node for.
    pub(crate) fn nothing_runs(part: &str) -> Self {
        let message = format!(
            "this API server is embedded: nothing runs in its pods, and {part} is not passed on to a kubelet"
        );
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    pub(crate) fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, name)
    }

    /// A precondition of a delete that does not hold.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let full = kind.full_kind();
        let message = format!("Operation cannot be fulfilled on {full} \"{name}\": {why}");
        let mut error = Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, name);
        error.details.insert("kind".into(), kind.kind.clone().into());
        error
    }

    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        Self::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", kind.qualified())
        } else {
            format!("{} \"{name}\" is forbidden: {why}", kind.qualified())
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(kind, name)
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let text = join(causes);
        let message = format!("{} \"{name}\" is invalid: {text}", kind.full_kind());
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        if !name.is_empty() {
            error.details.insert("name".into(), name.into());
        }
        if !kind.group.is_empty() {
            error.details.insert("group".into(), kind.group.clone().into());
        }
        error.details.insert("kind".into(), kind.kind.clone().into());
        error.with_causes(causes)
    }

    /// The options of a request, such as `ListOptions`.
    pub(crate) fn invalid_options(kind: &str, causes: &[Cause]) -> Self {
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", join(causes));
        let mut error = Self::unprocessable(message);
        error.details.insert("group".into(), "meta.k8s.io".into());
        error.details.insert("kind".into(), kind.into());
        error.with_causes(causes)
    }

    pub(crate) fn with_causes(mut self, causes: &[Cause]) -> Self {
        let causes: Vec<_> = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        if !causes.is_empty() {
            self.details.insert("causes".into(), causes.into());
        }
        self
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_empty_details()
    }

    /// A custom kind, or a part of it, that lacks a verb.
    pub(crate) fn verb_not_supported(kind: &Kind, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {:?}", kind.qualified());
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(kind, "")
    }

    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    pub(crate) fn too_many_requests(seconds: u64) -> Self {
        let mut error = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        );
        error.details.insert("retryAfterSeconds".into(), seconds.into());
        error.retry_after = Some(seconds);
        error
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if !self.details.is_empty() || self.has_empty_details {
            status["details"] = Value::Object(self.details.clone());
        }
        if self.reason.is_empty()
            && let Some(status) = status.as_object_mut()
        {
            status.remove("reason");
        }
        status
    }
}

/// All causes in one text.
fn join(causes: &[Cause]) -> String {
    let lines: Vec<_> =
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    match lines.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
