//! The small part of vCenter's REST interface that has no vim25 counterpart: sessions and tags.
//!
//! Two spellings are served: `/rest/com/vmware/cis/...`, which wraps each answer in `{"value": ...}`, and `/api/...` of 7.0.2 and
//! later, which does not.

mod tags;

use std::collections::BTreeMap;
use std::io;

use base64::Engine as _;
use http::header::{AUTHORIZATION, SET_COOKIE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use jiff::{SignedDuration, Timestamp};
use roost_clock::Random;
use serde_json::{Value, json};

use self::tags::Tags;
use crate::door::Body;
use crate::options::{Options, Product};
use crate::reply;
use crate::world::{Handle, World};

const MAX_BODY: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Rest {
    sessions: BTreeMap<String, Session>,
    tags: Tags,
    random: Random,
}

#[derive(Debug)]
struct Session {
    user: String,
    created: Timestamp,
    last_active: Timestamp,
}

impl Rest {
    pub(crate) fn new(options: &Options) -> Self {
        let random = Random::from_seed(options.seed).fork("rest");
        Self { sessions: BTreeMap::new(), tags: Tags::default(), random }
    }

    /// Sessions end, tags stay.
    pub(crate) fn restarted(&mut self) {
        self.sessions.clear();
    }
}

/// What a request to the REST interface comes to.
#[derive(Debug)]
enum Outcome {
    Value(Value),
    Nothing,
    Opened(String),
    Error(StatusCode, &'static str),
}

const UNAUTHENTICATED: Outcome =
    Outcome::Error(StatusCode::UNAUTHORIZED, "com.vmware.vapi.std.errors.unauthenticated");
const NOT_FOUND: Outcome =
    Outcome::Error(StatusCode::NOT_FOUND, "com.vmware.vapi.std.errors.not_found");
const INVALID: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.invalid_argument");

/// A request, taken apart.
#[derive(Debug)]
struct Ask<'a> {
    method: &'a Method,
    /// Below `cis`.
    path: Vec<&'a str>,
    action: Option<String>,
    body: Value,
}

pub(crate) async fn answer(handle: &Handle, request: Request<Body>) -> io::Result<Response<Body>> {
    if handle.options.product == Product::HostAgent {
        return Ok(reply::status(StatusCode::NOT_FOUND));
    }
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return Ok(reply::status(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let path =
        percent_encoding::percent_decode_str(head.uri.path()).decode_utf8_lossy().into_owned();
    let (path, is_wrapped) = match path.strip_prefix("/rest/com/vmware/cis/") {
        Some(rest) => (rest, true),
        None => match path.strip_prefix("/api/") {
            Some(rest) => (rest.strip_prefix("cis/").unwrap_or(rest), false),
            None => return Ok(reply::status(StatusCode::NOT_FOUND)),
        },
    };
    let ask = Ask {
        method: &head.method,
        path: path.split('/').collect(),
        action: reply::query(&head.uri, "~action").or_else(|| reply::query(&head.uri, "action")),
        body: serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
    };
    let id = head.headers.get("vmware-api-session-id").and_then(|id| id.to_str().ok());
    let credentials = head.headers.get(AUTHORIZATION).and_then(|value| basic(value.to_str().ok()?));
    let outcome = handle.with(|world| {
        world.counters.called(&format!(
            "{} /{}",
            ask.method,
            ask.path.first().copied().unwrap_or_default()
        ));
        carry_out(world, handle, &ask, id, credentials)
    });
    Ok(respond(outcome, is_wrapped))
}

fn respond(outcome: Outcome, is_wrapped: bool) -> Response<Body> {
    let wrap = |value: Value| if is_wrapped { json!({ "value": value }) } else { value };
    match outcome {
        Outcome::Value(value) => reply::json(StatusCode::OK, &wrap(value)),
        Outcome::Nothing => reply::status(StatusCode::OK),
        Outcome::Opened(id) => {
            let status = if is_wrapped { StatusCode::OK } else { StatusCode::CREATED };
            let mut response = reply::json(status, &wrap(json!(id)));
            let cookie = format!("vmware-api-session-id={id}; Path=/rest; HttpOnly");
            response.headers_mut().extend(cookie.parse().ok().map(|value| (SET_COOKIE, value)));
            response
        }
        Outcome::Error(status, kind) => {
            reply::json(status, &json!({ "type": kind, "value": { "messages": [] } }))
        }
    }
}

fn basic(header: &str) -> Option<(String, String)> {
    let encoded = header.strip_prefix("Basic ")?;
    let text = base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok()?;
    let text = String::from_utf8(text).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

fn carry_out(
    world: &mut World,
    handle: &Handle,
    ask: &Ask<'_>,
    id: Option<&str>,
    credentials: Option<(String, String)>,
) -> Outcome {
    let now = handle.now();
    if ask.path == ["session"] && ask.method == Method::POST && ask.action.is_none() {
        return log_in(world, handle, credentials, now);
    }
    let limit = SignedDuration::try_from(world.sessions.idle_limit).unwrap_or(SignedDuration::MAX);
    world.rest.sessions.retain(|_, session| now.duration_since(session.last_active) < limit);
    let Some((id, session)) =
        id.and_then(|id| world.rest.sessions.get_mut(id).map(|session| (id, session)))
    else {
        return UNAUTHENTICATED;
    };
    session.last_active = now;
    if ask.path == ["session"] {
        if ask.method == Method::DELETE {
            world.rest.sessions.remove(id);
            return Outcome::Nothing;
        }
        return Outcome::Value(json!({
            "user": session.user,
            "created_time": session.created.to_string(),
            "last_accessed_time": session.last_active.to_string(),
        }));
    }
    match ask.path.as_slice() {
        ["tagging", rest @ ..] => tags::carry_out(world, ask, rest),
        _ => NOT_FOUND,
    }
}

fn log_in(
    world: &mut World,
    handle: &Handle,
    credentials: Option<(String, String)>,
    now: Timestamp,
) -> Outcome {
    let Some((user, password)) = credentials else { return UNAUTHENTICATED };
    let accepted = match &handle.options.credentials {
        Some(only) => only.user == user && only.password == password,
        None => !user.is_empty() && !password.is_empty(),
    };
    if !accepted {
        return UNAUTHENTICATED;
    }
    let id = world.rest.random.uuid();
    world.rest.sessions.insert(id.clone(), Session { user, created: now, last_active: now });
    Outcome::Opened(id)
}
