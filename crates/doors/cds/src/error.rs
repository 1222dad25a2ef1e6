use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

use crate::json::{self, DecodeError};
use crate::{Protocol, Secret};

/// What the API says when it refuses. The number, never the text, says what happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{} (HTTP {}, error {id}{})", reason(from), status.as_u16(), request(request_id))]
pub struct ApiError {
    /// 0 when the answer did not come from the API itself, such as a proxy's page.
    pub id: u64,
    pub status: StatusCode,
    /// What all errors of this number say.
    pub message: String,
    /// Why this one was made, in the API's own words; empty when it gave none.
    pub from: String,
    /// By which the API's logs name the request; empty when it gave none.
    pub request_id: String,
}

fn reason(from: &str) -> String {
    if from.is_empty() { String::new() } else { format!(": {from}") }
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
    /// 30
    ProjectNotFound,
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
            30 => ErrorKind::ProjectNotFound,
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

    /// Whether the region is missing that the path names, and nothing is said of what was asked for in it.
    fn is_of_region(&self) -> bool {
        self.from.contains("region ") && self.from.contains("not found")
    }

    /// Reads an answer of status 400 or above, whoever wrote it. What `secrets` say is taken out of its words: some
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
            from: String,
            request_id: String,
        }
        let Body { id, mut message, mut from, request_id } = json::decode(body).unwrap_or_default();
        for secret in secrets {
            (message, from) = (secret.scrub(&message), secret.scrub(&from));
        }
        if message.is_empty() {
            status.canonical_reason().unwrap_or("no reason given").clone_into(&mut message);
        }
        Self { id, status, message, from: one_line(&from), request_id }
    }
}

/// The API's chain of reasons, without what would break a line of a log, and not longer than a line.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let plain = plain.trim();
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &plain[..end]),
        None => plain.to_owned(),
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
    Api { call: String, attempts: u32, source: Box<ApiError> },
    /// The API refuses V1 jobs that are gone as it refuses those of others, and it serves us otherwise.
    #[error("{call}: the job is gone")]
    Vanished { call: String, source: Box<ApiError> },
    #[error("{call}: the answer cannot be read")]
    Answer { call: String, source: Arc<DecodeError> },
    #[error("signing in to CDS {protocol}")]
    SignIn { protocol: Protocol, source: Arc<CallError> },
}

impl CallError {
    /// What the API answered to the call itself; `None` when it did not answer or it was the sign-in that failed.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api { source, .. } | Self::Vanished { source, .. } => Some(source),
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
        match self {
            Self::Vanished { .. } => true,
            Self::Api { source, .. } => match source.kind() {
                ErrorKind::NotFound => !source.is_of_region(),
                ErrorKind::JobNotFound | ErrorKind::ProjectNotFound => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the server may have acted on the request although the call failed, or on an earlier attempt of it.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Transport { .. } | Self::Timeout { .. } | Self::Answer { .. } => true,
            Self::Api { source, attempts, .. } => *attempts > 1 || source.status.is_server_error(),
            Self::SignIn { .. } | Self::Vanished { .. } => false,
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
        assert_eq!(error.to_string(), "booked: f (HTTP 403, error 89, request r-1)");
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
        let body =
            br#"{"id":11,"message":"forbidden","from":"invalid signin token: hunter2\nis bad"}"#;
        let error = ApiError::read(StatusCode::FORBIDDEN, body, [&secret]);
        let words = "forbidden: invalid signin token: *** is bad (HTTP 403, error 11)";
        assert_eq!(error.to_string(), words);
    }

    #[test]
    fn a_region_that_is_missing_says_nothing_of_its_jobs() {
        let error = |from: &str| {
            let body = format!(r#"{{"id":38,"message":"resource not found","from":"{from}"}}"#);
            let source = ApiError::read(StatusCode::NOT_FOUND, body.as_bytes(), []);
            CallError::Api { call: String::new(), attempts: 1, source: Box::new(source) }
        };
        assert!(error("unable to find run job").is_gone());
        assert!(!error("region nowhere not found").is_gone());
    }
}
