//! From a request to its answer.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderValue, Method, Response, StatusCode, header as names};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::json;

use crate::admission;
use crate::discovery;
use crate::fault::Action;
use crate::openapi;
use crate::path::{Query, Route, route};
use crate::request::{Answer, Body, Request, header};
use crate::sim::KubeSim;
use crate::status::ApiError;
use crate::user::User;
use crate::verb::{Commit, Draft, Subject};
use crate::watch::Disturbance;
use crate::world::World;

/// The body of an answer: at once, or as a watch goes on.
pub type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

/// Others may change an object while admission looks at it; so often a write is tried again.
const WRITE_TRIES: usize = 5;

impl KubeSim {
    /// Answers a request. An error is a connection that breaks.
    pub async fn answer(&self, request: http::Request<Bytes>) -> io::Result<Response<AnswerBody>> {
        if self.is_down() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "the simulated server is down",
            ));
        }
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
                    body: body.clone(),
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
                    Route::Resource(target) => return self.answer_or_fail(&request(target)).await,
                    Route::Other(path) => self.answer_other(&parts.method, &path, &body),
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

    /// Lets rules have their way with a request.
    async fn answer_or_fail(&self, request: &Request) -> io::Result<Response<AnswerBody>> {
        let cut = || {
            io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the simulated server cut the connection",
            )
        };
        let fault = self.rules_mut().decide(request);
        let mut disturbance = Disturbance::default();
        match &fault {
            Some(Action::Conflict) => {
                let found = Subject::find(&self.world(), &request.target);
                return Ok(respond(found.and_then(|subject| {
                    Err(ApiError::modified(&subject.kind, &request.target.name))
                })));
            }
            Some(Action::Timeout) => {
                let error = ApiError::new(
                    StatusCode::GATEWAY_TIMEOUT,
                    "Timeout",
                    "Timeout: request did not complete within the allotted timeout",
                );
                return Ok(respond(Err(error)));
            }
            Some(Action::TooManyRequests { retry_after }) => {
                return Ok(respond(Err(ApiError::too_many_requests(*retry_after))));
            }
            Some(Action::Status { code }) => {
                let code = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return Ok(respond(Err(ApiError::new(code, "InternalError", "a rule says so"))));
            }
            Some(Action::CutBefore) => return Err(cut()),
            Some(Action::Delay { by_ms }) => {
                tokio::time::sleep(Duration::from_millis(*by_ms)).await;
            }
            Some(Action::Hang) => std::future::pending().await,
            Some(Action::Restart { for_ms }) => {
                self.restart(Duration::from_millis(*for_ms));
                return Err(cut());
            }
            Some(action) => disturbance = action.disturbance(),
            None => {}
        }
        let outcome = self.answer_resource(request, disturbance).await;
        match fault {
            Some(Action::CutAfter) => return Err(cut()),
            Some(Action::DelayAfter { by_ms }) => {
                tokio::time::sleep(Duration::from_millis(by_ms)).await;
            }
            _ => {}
        }
        Ok(respond(outcome))
    }

    async fn answer_resource(
        &self,
        request: &Request,
        disturbance: Disturbance,
    ) -> Result<Answer, ApiError> {
        if let Some(review) = self.world().review(request) {
            return review;
        }
        let subject = {
            let world = self.world();
            if !world.kinds().any(|kind| kind.group == request.target.group) {
                return Ok(Answer::not_even_json());
            }
            let subject = Subject::find(&world, &request.target)?;
            world.authorize(&subject, request)?;
            subject
        };
        crate::verb::check_dry_run(request)?;
        let is_one = !request.target.name.is_empty();
        let has_part = !request.target.subresource.is_empty();
        match request.method {
            Method::GET | Method::HEAD if request.query.is_set("watch") => {
                let watch = |world: &mut World| world.watch(&subject, request, disturbance.clone());
                let mut answer = self.with_converted(&subject, request, watch).await??;
                if let Body::Watch(watch) = &mut answer.body {
                    watch.converter = subject.kind.conversion.as_ref().map(|_| self.clone());
                }
                Ok(answer)
            }
            Method::GET | Method::HEAD => {
                let read = |world: &mut World| {
                    if is_one {
                        world.get_one(&subject, request)
                    } else {
                        world.list(&subject, request)
                    }
                };
                self.with_converted(&subject, request, read).await?
            }
            Method::POST if is_one && has_part => self.world().post_below(&subject, request),
            Method::POST if !is_one => self.write(&subject, request).await,
            Method::PUT | Method::PATCH if is_one => self.write(&subject, request).await,
            Method::DELETE if is_one && !has_part => self.delete(&subject, request).await,
            Method::DELETE if !has_part => self.delete_many(&subject, request).await,
            Method::PUT | Method::PATCH if subject.kind.is_custom() => {
                Err(ApiError::bad_request("name must be provided"))
            }
            Method::DELETE if subject.kind.is_custom() => {
                Err(ApiError::verb_not_supported(&subject.kind, "delete"))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn write(&self, subject: &Subject, request: &Request) -> Result<Answer, ApiError> {
        let asks_nobody = !self.has_hooks(subject) && subject.kind.conversion.is_none();
        for _ in 0..WRITE_TRIES {
            if asks_nobody {
                let mut world = self.world();
                let mut draft = world.draft(subject.clone(), request)?;
                world.finish_draft(&mut draft)?;
                if let Some(answer) = finish(&mut world, draft, request)? {
                    return Ok(answer);
                }
                continue;
            }
            let draft = |world: &mut World| world.draft(subject.clone(), request);
            let mut draft = self.with_converted(subject, request, draft).await??;
            self.mutate(&mut draft, request).await?;
            self.world().finish_draft(&mut draft)?;
            self.validate(&mut draft, request).await?;
            self.convert_draft(&mut draft).await?;
            if let Some(answer) = finish(&mut self.world(), draft, request)? {
                return Ok(answer);
            }
        }
        Err(ApiError::modified(&subject.kind, &subject.key.1))
    }

    async fn delete(&self, subject: &Subject, request: &Request) -> Result<Answer, ApiError> {
        let get = |world: &mut World| world.get(&subject.kind, &subject.key);
        let old = self.with_converted(subject, request, get).await?;
        let old = old.ok_or_else(|| ApiError::not_found(&subject.kind, &subject.key.1))?;
        let warnings = self.may_delete(subject, &old, request).await?;
        let delete = |world: &mut World| world.delete_one(subject, request);
        let mut answer = self.with_converted(subject, request, delete).await??;
        answer.warnings = warnings;
        Ok(answer)
    }

    /// Everything that the selectors name; webhooks are asked about each.
    async fn delete_many(&self, subject: &Subject, request: &Request) -> Result<Answer, ApiError> {
        let select = |world: &mut World| world.doomed(subject, request);
        let doomed = self.with_converted(subject, request, select).await??;
        let mut warnings = Vec::new();
        for (key, old) in &doomed {
            let one = Subject { kind: subject.kind.clone(), key: key.clone() };
            warnings.extend(self.may_delete(&one, old, request).await?);
        }
        let mut answer = self.world().delete_many(subject, &doomed, request)?;
        answer.warnings = warnings;
        Ok(answer)
    }

    /// Asks webhooks whether an object may go. Returns what they warn of.
    async fn may_delete(
        &self,
        subject: &Subject,
        old: &crate::store::Stored,
        request: &Request,
    ) -> Result<Vec<String>, ApiError> {
        if !self.has_hooks(subject) {
            return Ok(Vec::new());
        }
        let asked = admission::Subject {
            kind: subject.kind.clone(),
            version: request.target.version.clone(),
            subresource: String::new(),
            operation: "DELETE",
            namespace: subject.key.0.clone(),
            name: subject.key.1.clone(),
            object: serde_json::Value::Null,
            old: crate::convert::from_storage(&subject.kind, &request.target.version, old),
            is_dry_run: request.is_dry_run(),
        };
        self.validate_subject(&asked, request).await
    }

    fn answer_other(
        &self,
        method: &Method,
        path: &[String],
        body: &Bytes,
    ) -> Result<Answer, ApiError> {
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
            ["openapi", "v3"] => Ok(openapi::index(&self.world())),
            ["openapi", "v3", "api", version] => openapi::document(&self.world(), "", version),
            ["openapi", "v3", "apis", group, version] => {
                openapi::document(&self.world(), group, version)
            }
            ["roost", "control", path @ ..] if self.world().options.control_endpoint => {
                self.control(method, path, body)
            }
            _ => Err(ApiError::no_such_resource()),
        }
    }
}

/// Stores a draft; `None` when somebody was quicker.
fn finish(world: &mut World, draft: Draft, request: &Request) -> Result<Option<Answer>, ApiError> {
    match world.commit(&draft)? {
        Commit::Stored(stored, code) => {
            if let Some((_, shown)) = &draft.converted {
                stored.keep_converted(&draft.version, shown.clone());
            }
            let mut answer = world.show(&draft, request, &stored, code)?;
            answer.warnings = draft.warnings;
            Ok(Some(answer))
        }
        Commit::Stale => Ok(None),
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
