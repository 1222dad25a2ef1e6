use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use roost_door::NotMeant;
use serde::Serialize;

use super::access::Denied;

/// Why a request is not answered with what was asked for.
#[derive(Debug)]
pub(super) struct Fault {
    status: StatusCode,
    words: String,
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
}

impl Fault {
    pub(super) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into() }
    }

    pub(super) fn bad_request(words: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, words)
    }

    /// It would be a fault of ours.
    pub(super) fn broken() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be written")
    }

    pub(super) fn not_found(words: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, words)
    }
}

impl From<NotMeant> for Fault {
    fn from(not: NotMeant) -> Self {
        match not {
            NotMeant::Several(words) => Self::new(StatusCode::CONFLICT, words),
            NotMeant::Unknown(words) => Self::not_found(words),
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        (self.status, Json(Body { error: &self.words })).into_response()
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let mut answer = Fault::new(self.status(), self.words()).into_response();
        if self.status() == StatusCode::UNAUTHORIZED {
            let how = HeaderValue::from_static(r#"Bearer realm="roost""#);
            answer.headers_mut().insert(WWW_AUTHENTICATE, how);
        }
        answer
    }
}

pub(super) fn text(status: StatusCode, content_type: &'static str, text: String) -> Response {
    (status, [(CONTENT_TYPE, content_type)], text).into_response()
}

/// What stands in the path, as text.
pub(super) fn named(id: Result<Path<String>, PathRejection>) -> Result<String, Fault> {
    id.map(|Path(id)| id).map_err(|wrong| Fault::new(wrong.status(), wrong.body_text()))
}

/// Both parts of the path, as text.
pub(super) fn named_in(
    parts: Result<Path<(String, String)>, PathRejection>,
) -> Result<(String, String), Fault> {
    parts.map(|Path(parts)| parts).map_err(|wrong| Fault::new(wrong.status(), wrong.body_text()))
}
