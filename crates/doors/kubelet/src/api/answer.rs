use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

pub(super) type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;
pub(super) type Answer = Response<Body>;

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
    /// What could be spoken instead of what was offered.
    pub(super) spoken: &'static [&'static str],
}

const SPOKEN: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), spoken: &[] }
    }

    pub(super) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(super) fn missing(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let mut answer = text(refusal.text);
        *answer.status_mut() = refusal.status;
        for protocol in refusal.spoken.iter().filter(|protocol| !protocol.is_empty()) {
            answer.headers_mut().append(SPOKEN, HeaderValue::from_static(protocol));
        }
        answer
    }
}

fn whole(kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(super) fn text(text: impl Into<Bytes>) -> Answer {
    whole("text/plain; charset=utf-8", text)
}

pub(super) fn json(value: &Value) -> Answer {
    whole("application/json", value.to_string())
}

pub(super) fn metrics(kind: &'static str, text: String) -> Answer {
    whole(kind, text)
}
