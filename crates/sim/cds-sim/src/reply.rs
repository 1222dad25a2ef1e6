//! Answers as the real API gives them.

use bytes::Bytes;
use http::{Response, StatusCode};
use jiff::Timestamp;
use roost_cds::json;
use serde::Serialize;
use serde_json::Value;

/// A successful answer of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Reply {
    /// What handlers that write nothing answer.
    pub(crate) fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: Bytes::new() }
    }

    /// 200 with the body `null`.
    pub(crate) fn null() -> Self {
        Self::json(&Value::Null)
    }

    pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Self {
        Self::bytes(json::encode(value))
    }

    pub(crate) fn bytes(body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// A refusal of a handler. What it says stands in `from`; the message is the same for all errors of one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) id: u64,
    pub(crate) from: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, id: u64, from: impl Into<String>) -> Self {
        Self { status, id, from: from.into() }
    }

    fn message(&self) -> &'static str {
        match self.id {
            1 => "internal server error",
            10 => "not authenticated",
            11 => "forbidden",
            30 => "project not found",
            38 => "resource not found",
            74 => "wrong request",
            89 => "job already booked",
            91 => "job already taken",
            115 => "worker model already booked",
            135 => "job not booked",
            149 => "invalid data",
            _ => "an error has occurred",
        }
    }

    pub(crate) fn not_authenticated() -> Self {
        Self::new(401, 10, "not authenticated")
    }

    pub(crate) fn forbidden(why: impl Into<String>) -> Self {
        Self::new(403, 11, why)
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(404, 38, what)
    }

    pub(crate) fn wrong_request(why: impl Into<String>) -> Self {
        Self::new(400, 74, why)
    }

    pub(crate) fn invalid_data(why: impl Into<String>) -> Self {
        Self::new(400, 149, why)
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    id: u64,
    message: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    from: &'a str,
}

/// Puts an answer on the wire with the headers that every answer has.
pub(crate) fn respond(
    answer: Result<Reply, Refusal>,
    request_id: &str,
    now: Timestamp,
) -> Response<Bytes> {
    let reply = answer.unwrap_or_else(|refusal| {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::IM_A_TEAPOT);
        let (message, from) = (refusal.message(), refusal.from.as_str());
        let body = json::encode(&ErrorBody { id: refusal.id, message, request_id, from });
        Reply { status, ..Reply::bytes(body) }
    });
    let mut response = Response::builder()
        .status(reply.status)
        .header("content-type", "application/json")
        .header("request-id", request_id)
        .header("x-api-time", now.to_string())
        .header("x-api-nanoseconds-time", now.as_nanosecond().to_string())
        .header("x-api-process-time", "0")
        .header("etag", now.as_second().to_string());
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(reply.body).unwrap_or_default()
}
