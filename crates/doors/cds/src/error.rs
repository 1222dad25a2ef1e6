use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

use crate::json::{self, DecodeError};
use crate::{Protocol, Secret};

/// What the API says when it refuses. The number, never the text, says what happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (HTTP {}, error {id}{})", status.as_u16(), request(request_id))]
pub struct ApiError {
    /// 0 when the answer did not come from the API itself, such as a proxy's page.
    pub id: u64,
    pub status: StatusCode,
    pub message: String,
    /// By which the API's logs name the request; empty when it gave none.
    pub request_id: String,
}

fn request(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(", request {id}") }
}

/// The error numbers that a hatchery reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// 10: the session is unknown or over.
    NotAuthenticated,
    /// 11: for a heartbeat this says that the API has dropped the service.
    Forbidden,
    /// 38: for a V2 job, that it vanished or that somebody else took it.
    NotFound,
    /// 74
    WrongRequest,
    /// 89: another hatchery holds the V1 job.
    JobAlreadyBooked,
    /// 91: the V1 job has a worker.
    JobAlreadyTaken,
    /// 112
    JobNotFound,
    /// 115: another hatchery registers the model.
    ModelAlreadyBooked,
    /// 135: nothing to release.
    JobNotBooked,
    /// 146
    ModelDeploymentFailed,
    /// 149: for a V2 release, that the job is not ours.
    InvalidData,
    Other,
}

impl ApiError {
    pub fn kind(&self) -> ErrorKind {
        match self.id {
            10 => ErrorKind::NotAuthenticated,
            11 => ErrorKind::Forbidden,
            38 => ErrorKind::NotFound,
            74 => ErrorKind::WrongRequest,
            89 => ErrorKind::JobAlreadyBooked,
            91 => ErrorKind::JobAlreadyTaken,
            112 => ErrorKind::JobNotFound,
            115 => ErrorKind::ModelAlreadyBooked,
            135 => ErrorKind::JobNotBooked,
            146 => ErrorKind::ModelDeploymentFailed,
            149 => ErrorKind::InvalidData,
            _ => ErrorKind::Other,
        }
    }

    /// Reads an answer of status 400 or above, whoever wrote it. What `secrets` say is taken out of the message: some
    /// versions of the API quote the token that they refuse.
    pub(crate) fn read<'a>(
        status: StatusCode,
        body: &[u8],
        secrets: impl IntoIterator<Item = &'a Secret>,
    ) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Body {
            id: u64,
            message: String,
            request_id: String,
        }
        let body: Body = json::decode(body).unwrap_or_default();
        let message = match body.message.as_str() {
            "" => status.canonical_reason().unwrap_or("no reason given").to_owned(),
            text => secrets.into_iter().fold(text.to_owned(), |text, secret| secret.scrub(&text)),
        };
        Self { id: body.id, status, message, request_id: body.request_id }
    }
}

/// Why a call brought no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    #[error("{call}: no whole answer after {attempts} attempts")]
    Transport { call: String, attempts: u32, source: Arc<io::Error> },
    #[error("{call}: no answer within {timeout:?}, {attempts} attempts")]
    Timeout { call: String, attempts: u32, timeout: Duration },
    #[error("{call}: refused")]
    Api { call: String, attempts: u32, source: ApiError },
    #[error("{call}: the answer cannot be read")]
    Answer { call: String, source: Arc<DecodeError> },
    #[error("signing in to CDS {protocol}")]
    SignIn { protocol: Protocol, source: Arc<CallError> },
}

impl CallError {
    /// What the API answered to the call itself; `None` when it did not answer or it was the sign-in that failed.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api { source, .. } => Some(source),
            Self::Transport { .. }
            | Self::Timeout { .. }
            | Self::Answer { .. }
            | Self::SignIn { .. } => None,
        }
    }

    pub fn kind(&self) -> Option<ErrorKind> {
        self.api().map(ApiError::kind)
    }

    pub fn status(&self) -> Option<StatusCode> {
        self.api().map(|error| error.status)
    }

    /// Whether the job, model or worker that was asked for does not exist (any more).
    pub fn is_gone(&self) -> bool {
        matches!(self.kind(), Some(ErrorKind::NotFound | ErrorKind::JobNotFound))
    }

    /// Whether the server may have acted on the request although the call failed, or on an earlier attempt of it.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Transport { .. } | Self::Timeout { .. } | Self::Answer { .. } => true,
            Self::Api { source, attempts, .. } => *attempts > 1 || source.status.is_server_error(),
            Self::SignIn { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_says_what_happened() {
        let body = br#"{"id":89,"message":"booked","data":{"x":1},"request_id":"r-1","from":"f"}"#;
        let error = ApiError::read(StatusCode::FORBIDDEN, body, []);
        assert_eq!(error.kind(), ErrorKind::JobAlreadyBooked);
        assert_eq!(error.to_string(), "booked (HTTP 403, error 89, request r-1)");
    }

    #[test]
    fn an_answer_of_a_proxy_is_understood_by_its_status() {
        let error = ApiError::read(StatusCode::BAD_GATEWAY, b"<html>oops</html>", []);
        assert_eq!(error.kind(), ErrorKind::Other);
        assert_eq!(error.to_string(), "Bad Gateway (HTTP 502, error 0)");
    }

    #[test]
    fn a_quoted_token_is_taken_out() {
        let body = br#"{"id":10,"message":"token hunter2 is bad"}"#;
        let secret = Secret::from("hunter2");
        let error = ApiError::read(StatusCode::UNAUTHORIZED, body, [&secret]);
        assert_eq!(error.message, "token *** is bad");
    }
}
