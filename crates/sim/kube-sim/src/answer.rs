//! From a request to its answer.

use std::io;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderValue, Method, Response, StatusCode, header as names};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::json;

use crate::discovery;
use crate::path::{Query, Route, route};
use crate::request::{Answer, Body, Request, header};
use crate::sim::KubeSim;
use crate::status::ApiError;
use crate::user::User;
use crate::verb::{Commit, Subject};
use crate::watch::Disturbance;

/// The body of an answer: at once, or as a watch goes on.
pub type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

/// Others may change an object while admission looks at it; so often a write is tried again.
const WRITE_TRIES: usize = 5;

impl KubeSim {
    /// Answers a request. An error is a connection that breaks.
    #[expect(clippy::unused_async, reason = "the answer may wait for others")]
    pub async fn answer(&self, request: http::Request<Bytes>) -> io::Result<Response<AnswerBody>> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let outcome = match self.user(&parts) {
            Err(error) => Err(error),
            Ok(user) => {
                let request = |target| Request {
                    method: parts.method.clone(),
                    target,
                    query: Query::parse(parts.uri.query().unwrap_or_default()),
                    user,
                    content_type: header(&parts.headers, "content-type"),
                    accept: header(&parts.headers, "accept"),
                    user_agent: header(&parts.headers, "user-agent"),
                    body,
                };
                match route(&path) {
                    Route::Groups(which) => discovery::list_groups(
                        &self.world(),
                        &which,
                        &header(&parts.headers, "accept"),
                    ),
                    Route::Resources { group, version } => {
                        discovery::list_resources(&self.world(), &group, &version)
                    }
                    Route::Resource(target) => self.answer_resource(&request(target)),
                    Route::Other(path) => self.answer_other(&path),
                }
            }
        };
        Ok(respond(outcome))
    }

    /// Who asks: who the door says, whom the token stands for, whom they speak for.
    fn user(&self, parts: &http::request::Parts) -> Result<User, ApiError> {
        let world = self.world();
        let authorization = header(&parts.headers, "authorization");
        let token = authorization
            .strip_prefix("Bearer ")
            .map(|token| world.options.tokens.get(token.trim()));
        let known = parts.extensions.get::<User>().cloned();
        let user = match (known, token) {
            (Some(user), _) => user,
            (None, Some(Some(user))) => user.clone(),
            (None, None) if world.options.open => User::admin(),
            _ => {
                return Err(ApiError::new(
                    StatusCode::UNAUTHORIZED,
                    "Unauthorized",
                    "Unauthorized",
                ));
            }
        };
        Ok(User::impersonated(&parts.headers).unwrap_or(user))
    }

    fn answer_resource(&self, request: &Request) -> Result<Answer, ApiError> {
        let subject = Subject::find(&self.world(), &request.target)?;
        let is_one = !request.target.name.is_empty();
        let has_part = !request.target.subresource.is_empty();
        match request.method {
            Method::GET | Method::HEAD if request.query.is_set("watch") => {
                self.world().watch(&subject, request, Disturbance::default())
            }
            Method::GET | Method::HEAD if is_one => self.world().get_one(&subject, request),
            Method::GET | Method::HEAD => self.world().list(&subject, request),
            Method::POST if is_one && has_part => self.world().post_below(&subject, request),
            Method::POST if !is_one => self.write(&subject, request),
            Method::PUT | Method::PATCH if is_one => self.write(&subject, request),
            Method::DELETE if is_one && !has_part => self.world().delete_one(&subject, request),
            Method::DELETE if !has_part => self.world().delete_many(&subject, request),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn write(&self, subject: &Subject, request: &Request) -> Result<Answer, ApiError> {
        for _ in 0..WRITE_TRIES {
            let mut world = self.world();
            let mut draft = world.draft(subject.clone(), request)?;
            world.finish_draft(&mut draft)?;
            match world.commit(&draft)? {
                Commit::Stored(stored, code) => {
                    let mut answer = world.show(&draft, request, &stored, code)?;
                    answer.warnings = draft.warnings;
                    return Ok(answer);
                }
                Commit::Stale => {}
            }
        }
        Err(ApiError::modified(&subject.kind, &subject.key.1))
    }

    fn answer_other(&self, path: &[String]) -> Result<Answer, ApiError> {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["version"] => Ok(Answer::json(
                StatusCode::OK,
                &json!({
                    "major": "1", "minor": "37", "gitVersion": "v1.37.1+roost-kube-sim", "gitCommit": "", "gitTreeState": "clean",
                    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "linux/amd64",
                }),
            )),
            ["healthz" | "livez" | "readyz", ..] => Ok(Answer::text("ok")),
            _ => {
                let _ = self;
                Err(ApiError::no_such_resource())
            }
        }
    }
}

fn respond(outcome: Result<Answer, ApiError>) -> Response<AnswerBody> {
    let (answer, retry_after) = match outcome {
        Ok(answer) => (answer, None),
        Err(error) => {
            tracing::debug!(code = error.code.as_u16(), error.message, "refused");
            (Answer::json(error.code, &error.to_value()), error.retry_after)
        }
    };
    let (content_type, body) = match answer.body {
        Body::Json(bytes) => ("application/json", whole(bytes)),
        Body::Text(content_type, bytes) => (content_type, whole(bytes)),
        Body::Refused(line) => ("application/json", whole(line)),
        Body::Watch(watch) => {
            let frames = watch.into_lines().map(|line| Ok(Frame::data(line)));
            ("application/json", StreamBody::new(frames).boxed_unsync())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.code;
    let headers = response.headers_mut();
    headers.insert(names::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(seconds) = retry_after {
        headers.insert(names::RETRY_AFTER, seconds.into());
    }
    for warning in answer.warnings {
        let text = format!("299 - {}", json!(warning));
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.append(names::WARNING, value);
        }
    }
    response
}

fn whole(bytes: Bytes) -> AnswerBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
