//! The part of vCenter's REST interface that has no vim25 counterpart: sessions, tags, the content library.
//!
//! Two spellings are served: `/rest/com/vmware/...`, which wraps each answer in `{"value": ...}`, and `/api/...` of 7.0.2 and
//! later, which does not.

mod appliance;
mod cluster_module;
mod data_set;
mod library;
mod library_item;
mod library_session;
mod namespace;
mod needed;
mod ovf_item;
mod tags;
mod template_item;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use http::header::{AUTHORIZATION, HOST, SET_COOKIE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use jiff::{SignedDuration, Timestamp};
use roost_clock::Random;
use roost_vim_wire::MoRef;
use roost_vim_wire::types::{TaskInfo, TaskInfoState};
use serde_json::{Value, json};

use self::appliance::Appliance;
use self::cluster_module::ClusterModules;
use self::data_set::DataSets;
pub(crate) use self::library_session::transfer;
use self::namespace::Namespaces;
use self::tags::Tags;
pub(crate) use self::tags::{has_tag, tag_names};
use crate::call::{CallContext, Failure};
use crate::dispatch::Caller;
use crate::door::Body;
use crate::fault_rules::{Facts, after, before};
use crate::options::{Options, Product};
use crate::reply;
use crate::world::{Handle, World};

const MAX_BODY: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Rest {
    sessions: BTreeMap<String, Session>,
    tags: Tags,
    appliance: Appliance,
    cluster_modules: ClusterModules,
    pub data_sets: DataSets,
    namespaces: Namespaces,
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
        Self {
            sessions: BTreeMap::new(),
            tags: Tags::default(),
            appliance: Appliance::default(),
            cluster_modules: ClusterModules::default(),
            data_sets: DataSets::default(),
            namespaces: Namespaces::default(),
            random,
        }
    }

    /// Sessions end, tags stay.
    pub(crate) fn restarted(&mut self) {
        self.sessions.clear();
    }
}

/// What a request to the REST interface comes to.
enum Outcome {
    Value(Value),
    Nothing,
    Opened(String),
    Error(StatusCode, &'static str),
    /// An error with words for people.
    Refused(StatusCode, &'static str, String),
    /// The answer is known when this task has ended.
    Pending(MoRef, Finish),
}

/// Turns the end of a task into an answer.
type Finish = Box<dyn FnOnce(&mut World, &Handle, Option<TaskInfo>) -> Outcome + Send>;

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => f.debug_tuple("Value").field(value).finish(),
            Self::Nothing => f.write_str("Nothing"),
            Self::Opened(_) => f.write_str("Opened"),
            Self::Error(status, kind) => f.debug_tuple("Error").field(status).field(kind).finish(),
            Self::Refused(status, kind, words) => {
                f.debug_tuple("Refused").field(status).field(kind).field(words).finish()
            }
            Self::Pending(task, _) => f.debug_tuple("Pending").field(task).finish(),
        }
    }
}

const UNAUTHENTICATED: Outcome =
    Outcome::Error(StatusCode::UNAUTHORIZED, "com.vmware.vapi.std.errors.unauthenticated");
const NOT_FOUND: Outcome =
    Outcome::Error(StatusCode::NOT_FOUND, "com.vmware.vapi.std.errors.not_found");
const INVALID: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.invalid_argument");
const ALREADY_EXISTS: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.already_exists");

fn invalid(words: impl Into<String>) -> Outcome {
    let kind = "com.vmware.vapi.std.errors.invalid_argument";
    Outcome::Refused(StatusCode::BAD_REQUEST, kind, words.into())
}

fn not_allowed(words: impl Into<String>) -> Outcome {
    let kind = "com.vmware.vapi.std.errors.not_allowed_in_current_state";
    Outcome::Refused(StatusCode::BAD_REQUEST, kind, words.into())
}

/// A request, taken apart.
#[derive(Debug)]
struct Ask<'a> {
    method: &'a Method,
    /// Below `com/vmware` or `/api`, without `cis` and without the `id:` that the older spelling writes before an id.
    path: Vec<&'a str>,
    action: Option<String>,
    query: &'a http::Uri,
    body: Value,
    /// Scheme and authority under which the caller reached us.
    base: String,
    is_secure: bool,
}

impl Ask<'_> {
    fn parameter(&self, name: &str) -> Option<String> {
        reply::query(self.query, name)
    }

    fn is(&self, action: &str) -> bool {
        self.action.as_deref() == Some(action)
    }

    /// The body, or what stands in it under the name that the older spelling wraps it in.
    fn spec(&self, name: &str) -> &Value {
        self.body.get(name).unwrap_or(&self.body)
    }
}

/// A text field of a body; empty if it is not there.
fn text(spec: &Value, field: &str) -> String {
    spec.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A list of texts in a body; empty if it is not there.
fn strings(spec: &Value, field: &str) -> Vec<String> {
    let all = spec.get(field).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

pub(crate) async fn answer(
    handle: &Handle,
    caller: &Caller,
    request: Request<Body>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return Ok(reply::status(StatusCode::PAYLOAD_TOO_LARGE));
    };
    if handle.options.product == Product::HostAgent {
        return Ok(reply::status(StatusCode::NOT_FOUND));
    }
    let path =
        percent_encoding::percent_decode_str(head.uri.path()).decode_utf8_lossy().into_owned();
    let (path, is_wrapped) = match path.strip_prefix("/rest/") {
        Some(rest) => (rest.strip_prefix("com/vmware/").unwrap_or(rest), true),
        None => match path.strip_prefix("/api/") {
            Some(rest) => (rest, false),
            None => return Ok(reply::status(StatusCode::NOT_FOUND)),
        },
    };
    let path = path.strip_prefix("cis/").unwrap_or(path).trim_end_matches('/');
    let authority = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let scheme = if caller.is_secure { "https" } else { "http" };
    let ask = Ask {
        method: &head.method,
        path: path.split('/').map(|part| part.strip_prefix("id:").unwrap_or(part)).collect(),
        action: reply::query(&head.uri, "~action").or_else(|| reply::query(&head.uri, "action")),
        query: &head.uri,
        body: serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
        base: format!("{scheme}://{}", authority.unwrap_or("localhost")),
        is_secure: caller.is_secure,
    };
    let label = format!("{} /{}", ask.method, ask.path.first().copied().unwrap_or_default());
    let ruled = handle.with(|world| {
        world.counters.called(&label);
        let objects = ask.path.iter().map(|&part| part.to_owned()).collect();
        world.rules.for_call(&Facts { method: &label, objects }).map(|(_, action)| action)
    });
    if let Some(action) = &ruled
        && let Some(status) = before(handle, caller, action).await?
    {
        return Ok(reply::status(status));
    }
    let id = head.headers.get("vmware-api-session-id").and_then(|id| id.to_str().ok());
    let credentials = head.headers.get(AUTHORIZATION).and_then(|value| basic(value.to_str().ok()?));
    let mut outcome = handle.with(|world| carry_out(world, handle, &ask, id, credentials));
    while let Outcome::Pending(task, finish) = outcome {
        let ended = task_end(handle, &task).await;
        outcome = handle.with(|world| finish(world, handle, ended));
    }
    if let Some(action) = &ruled {
        after(action).await?;
    }
    Ok(respond(outcome, is_wrapped))
}

/// Waits for a task. `None`: a restart has swept it away.
async fn task_end(handle: &Handle, task: &MoRef) -> Option<TaskInfo> {
    let mut pause = Duration::from_millis(5);
    loop {
        let info = handle.with(|world| world.tasks.info(task))?;
        if matches!(info.state, TaskInfoState::Success | TaskInfoState::Error) {
            return Some(info);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

fn respond(outcome: Outcome, is_wrapped: bool) -> Response<Body> {
    let wrap = |value: Value| if is_wrapped { json!({ "value": value }) } else { value };
    match outcome {
        Outcome::Value(value) => reply::json(StatusCode::OK, &wrap(value)),
        Outcome::Nothing if is_wrapped => reply::status(StatusCode::OK),
        Outcome::Nothing => reply::status(StatusCode::NO_CONTENT),
        Outcome::Opened(id) => {
            let status = if is_wrapped { StatusCode::OK } else { StatusCode::CREATED };
            let mut response = reply::json(status, &wrap(json!(id)));
            let cookie = format!("vmware-api-session-id={id}; Path=/rest; HttpOnly");
            response.headers_mut().extend(cookie.parse().ok().map(|value| (SET_COOKIE, value)));
            response
        }
        Outcome::Error(status, kind) => refusal(status, kind, None, is_wrapped),
        Outcome::Refused(status, kind, words) => refusal(status, kind, Some(words), is_wrapped),
        // Answers are waited for before they are written.
        Outcome::Pending(..) => reply::status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn refusal(
    status: StatusCode,
    kind: &str,
    words: Option<String>,
    is_wrapped: bool,
) -> Response<Body> {
    let message = |words: String| json!({ "id": kind, "default_message": words, "args": [] });
    let messages: Vec<Value> = words.into_iter().map(message).collect();
    let body = if is_wrapped {
        json!({ "type": kind, "value": { "messages": messages } })
    } else {
        let short = kind.rsplit('.').next().unwrap_or(kind).to_ascii_uppercase();
        let messages = json!(messages);
        let body = format!(r#"{{"error_type":"{short}", "messages":{messages}}}"#);
        return reply::content(status, "application/json", body);
    };
    reply::json(status, &body)
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
        return if is_service(&ask.path) { UNAUTHENTICATED } else { NOT_FOUND };
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
    let (id, user) = (id.to_owned(), session.user.clone());
    let cx = CallContext { handle, now, user: &user, session: &id, secure: ask.is_secure };
    let needs = needed::needs(world, ask);
    if let Err(failure) = world.permissions.check(Some(&user), &needs, &world.inventory) {
        return refused(&failure);
    }
    match ask.path.as_slice() {
        ["tagging", rest @ ..] => tags::carry_out(world, ask, rest),
        ["content", "library" | "local-library" | "subscribed-library", "item", rest @ ..] => {
            library_item::carry_out(world, &cx, ask, rest)
        }
        ["content", rest @ ..] => library::carry_out(world, &cx, ask, rest),
        ["appliance", rest @ ..] => appliance::carry_out(world, &cx, ask, rest),
        ["vcenter", "cluster", "modules", rest @ ..] => cluster_module::carry_out(world, ask, rest),
        ["vcenter", "vm", vm, "data-sets", rest @ ..] => data_set::carry_out(world, ask, vm, rest),
        ["vcenter", "vm", vm] if *ask.method == Method::DELETE => delete_vm(world, &cx, vm),
        ["vcenter", "namespaces", "instances", rest @ ..] => {
            namespace::instances(world, &cx, ask, rest)
        }
        ["vcenter", "namespace-management", rest @ ..] => namespace::management(world, ask, rest),
        ["vcenter", "ovf", "library-item", rest @ ..] => ovf_item::carry_out(world, &cx, ask, rest),
        ["vcenter", "vm-template", "library-items", rest @ ..] => {
            template_item::carry_out(world, &cx, ask, rest)
        }
        _ => NOT_FOUND,
    }
}

/// Whether there is anything at this place. It is looked for before anybody is asked who they are, as on a vCenter.
fn is_service(path: &[&str]) -> bool {
    matches!(
        path,
        ["session"]
            | ["tagging" | "content" | "appliance", ..]
            | [
                "vcenter",
                "cluster" | "vm" | "namespaces" | "namespace-management" | "ovf" | "vm-template",
                ..
            ]
    )
}

fn delete_vm(world: &mut World, cx: &CallContext<'_>, vm: &str) -> Outcome {
    let vm = MoRef::vm(vm);
    if !world.inventory.vms.contains(&vm) {
        return NOT_FOUND;
    }
    let task = crate::vm::destroy_entity(world, cx, &vm);
    Outcome::Pending(
        task,
        Box::new(|_, _, ended| match ended.and_then(|info| info.error) {
            Some(error) => {
                let words = error.localized_message.unwrap_or_default();
                refused(&Failure::new(error.fault, words))
            }
            None => Outcome::Nothing,
        }),
    )
}

/// A fault of the model in the words of this interface.
fn refused(failure: &Failure) -> Outcome {
    let words = failure.message.clone();
    let (status, kind) = match failure.fault.class.as_str() {
        "ManagedObjectNotFound" | "NotFound" | "FileNotFound" => {
            (StatusCode::NOT_FOUND, "com.vmware.vapi.std.errors.not_found")
        }
        "DuplicateName" | "AlreadyExists" | "FileAlreadyExists" => {
            (StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.already_exists")
        }
        "NoPermission" => (StatusCode::FORBIDDEN, "com.vmware.vapi.std.errors.unauthorized"),
        "InvalidArgument" => {
            (StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.invalid_argument")
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "com.vmware.vapi.std.errors.error"),
    };
    Outcome::Refused(status, kind, words)
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
