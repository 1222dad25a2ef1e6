//! A request, taken apart, and its answer.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use crate::path::{Query, Target};
use crate::status::ApiError;
use crate::user::User;
use crate::watch::Watch;

/// A request about a resource.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) user: User,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) user_agent: String,
    pub(crate) body: Bytes,
}

pub(crate) fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

impl Request {
    /// What the request does, in the words of roles.
    pub(crate) fn verb(&self) -> &'static str {
        let is_one = !self.target.name.is_empty();
        match self.method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if is_one => "delete",
            Method::DELETE => "deletecollection",
            _ if self.query.is_set("watch") => "watch",
            _ if is_one => "get",
            _ => "list",
        }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun") == "All"
    }

    /// Who changes fields: what the query says, or the start of the user agent.
    pub(crate) fn manager(&self) -> String {
        let named = self.query.get("fieldManager");
        if !named.is_empty() {
            return named.to_owned();
        }
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        if agent.is_empty() { "unknown".to_owned() } else { agent.to_owned() }
    }

    /// The body, which is JSON or YAML.
    pub(crate) fn object(&self) -> Result<Value, ApiError> {
        if self.content_type.starts_with("application/vnd.kubernetes.protobuf") {
            let refused = |why| {
                ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", why)
            };
            return crate::protobuf::object(&self.body).map_err(refused);
        }
        parse(&self.body)
    }
}

pub(crate) fn parse(body: &[u8]) -> Result<Value, ApiError> {
    match serde_json::from_slice(body) {
        Ok(value) => Ok(value),
        Err(error) => {
            serde_saphyr::from_slice::<Value>(body).ok().filter(Value::is_object).ok_or_else(|| {
                ApiError::bad_request(format!("the object provided is unrecognized: {error}"))
            })
        }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) body: Body,
    /// Said to the person at the other end, in `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Body {
    Json(Bytes),
    Text(&'static str, Bytes),
    Watch(Box<Watch>),
    /// A watch that is refused in its stream, with this line.
    Refused(Bytes),
}

impl Answer {
    pub(crate) fn json(code: StatusCode, value: &Value) -> Self {
        Self::bytes(code, Bytes::from(value.to_string()))
    }

    pub(crate) fn bytes(code: StatusCode, body: Bytes) -> Self {
        Self { code, body: Body::Json(body), warnings: Vec::new() }
    }

    /// What there is below a path that nobody serves.
    pub(crate) fn not_even_json() -> Self {
        Self { code: StatusCode::NOT_FOUND, ..Self::text("404 page not found\n") }
    }

    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self {
            code: StatusCode::OK,
            body: Body::Text("text/plain; charset=utf-8", text.into()),
            warnings: Vec::new(),
        }
    }
}
