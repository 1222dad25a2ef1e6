//! The methods and properties of the session manager.

use roost_vim_wire::methods::{
    AcquireCloneTicket, AcquireGenericServiceTicket, CloneSession, Login, Logout, SessionIsActive,
    TerminateSession,
};
use roost_vim_wire::types::SessionManagerGenericServiceTicket;
use roost_vim_wire::{Array, Method, MoRef, Request, Value};

use super::tickets::Ticket;
use super::{Newcomer, end, open};
use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::dispatch::{Answer, Caller, Outcome};
use crate::options::{Credentials, Options, Product};
use crate::property::{Found, no_such};
use crate::world::{Handle, World};

/// Logs in. `live` says whether the caller came with the cookie of a live session.
pub(crate) fn login(
    request: &Request<'_>,
    world: &mut World,
    handle: &Handle,
    caller: &Caller,
    live: bool,
) -> Result<Outcome, Failure> {
    let login: Login = decode(request)?;
    let given = Credentials { user: login.user_name.clone(), password: login.password.0.clone() };
    let accepted = is_accepted(&handle.options, &given);
    if live || !accepted {
        world.counters.failed_logins += 1;
        let words = "Cannot complete login due to an incorrect user name or password.";
        return Err(Failure::of("InvalidLogin", words));
    }
    if world.sessions.is_full() {
        return Ok(Answer::Status(http::StatusCode::SERVICE_UNAVAILABLE).into());
    }
    let newcomer = Newcomer {
        user: login.user_name,
        locale: login.locale,
        ip: caller.ip.clone(),
        user_agent: caller.user_agent.clone(),
    };
    let (session, cookie) = open(world, handle, newcomer);
    Ok(Outcome {
        answer: Answer::Reply(ReplyBody::of::<Login>(&session)),
        new_cookie: Some(cookie),
    })
}

/// Opens another session for whoever holds the ticket of one. A ticket counts once.
pub(crate) fn clone_session(
    request: &Request<'_>,
    world: &mut World,
    handle: &Handle,
    caller: &Caller,
) -> Result<Outcome, Failure> {
    let asked: CloneSession = decode(request)?;
    let source = world.sessions.clone_tickets.remove(&asked.clone_ticket);
    let user = source.and_then(|key| world.sessions.get(&key).map(|one| one.user().to_owned()));
    let Some(user) = user else {
        world.counters.failed_logins += 1;
        let words = "Cannot complete login due to an incorrect user name or password.";
        return Err(Failure::of("InvalidLogin", words));
    };
    let newcomer = Newcomer {
        user,
        locale: None,
        ip: caller.ip.clone(),
        user_agent: caller.user_agent.clone(),
    };
    let (session, cookie) = open(world, handle, newcomer);
    Ok(Outcome {
        answer: Answer::Reply(ReplyBody::of::<CloneSession>(&session)),
        new_cookie: Some(cookie),
    })
}

/// Whether a login is one of those that the server takes.
pub(crate) fn is_accepted(options: &Options, given: &Credentials) -> bool {
    match &options.credentials {
        Some(only) => only == given,
        None => !given.user.is_empty() && !given.password.is_empty(),
    }
}

/// The methods that need a session.
pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    Some(match request.method {
        Logout::NAME => {
            end(world, cx.session);
            Ok(ReplyBody::of::<Logout>(&()))
        }
        SessionIsActive::NAME => session_is_active(request, world, cx),
        AcquireCloneTicket::NAME => {
            let ticket = world.sessions.secret();
            world.sessions.clone_tickets.insert(ticket.clone(), cx.session.into());
            Ok(ReplyBody::of::<AcquireCloneTicket>(&ticket))
        }
        TerminateSession::NAME => terminate(request, world, cx),
        AcquireGenericServiceTicket::NAME => acquire_ticket(request, world, cx),
        _ => return None,
    })
}

fn session_is_active(request: &Request<'_>, world: &World, cx: &CallContext<'_>) -> CallResult {
    if cx.handle.options.product == Product::HostAgent {
        return Err(Failure::of(
            "NotImplemented",
            "The requested operation is not implemented by the server.",
        ));
    }
    let asked: SessionIsActive = decode(request)?;
    let session = world.sessions.get(&asked.session_id);
    Ok(ReplyBody::of::<SessionIsActive>(
        &session.is_some_and(|session| session.user() == asked.user_name),
    ))
}

/// All or none: an unknown key or the caller's own leaves every session as it was.
fn terminate(request: &Request<'_>, world: &mut World, cx: &CallContext<'_>) -> CallResult {
    let asked: TerminateSession = decode(request)?;
    if asked.session_id.iter().any(|key| key == cx.session) {
        return Err(Failure::invalid_argument("sessionId"));
    }
    if asked.session_id.iter().any(|key| !world.sessions.is_live(key)) {
        return Err(Failure::of("NotFound", "The object or item referred to could not be found."));
    }
    for key in &asked.session_id {
        end(world, key);
    }
    Ok(ReplyBody::of::<TerminateSession>(&()))
}

fn acquire_ticket(request: &Request<'_>, world: &mut World, cx: &CallContext<'_>) -> CallResult {
    let asked: AcquireGenericServiceTicket = decode(request)?;
    let method = match asked.spec.method.as_deref() {
        Some("httpGet") | None => http::Method::GET,
        Some("httpPut") => http::Method::PUT,
        Some("httpPost") => http::Method::POST,
        Some(_) => return Err(Failure::invalid_argument("spec.method")),
    };
    let Ok(url) = asked.spec.url.parse::<http::Uri>() else {
        return Err(Failure::invalid_argument("spec.url"));
    };
    let id = world.sessions.secret();
    let path = url.path_and_query().map(ToString::to_string).unwrap_or_default();
    world.sessions.tickets.issue(id.clone(), Ticket { session: cx.session.into(), method, path });
    Ok(ReplyBody::of::<AcquireGenericServiceTicket>(&SessionManagerGenericServiceTicket {
        id,
        host_name: url.authority().map(ToString::to_string),
        ssl_thumbprint: cx.handle.thumbprint(),
    }))
}

/// A property of the session manager as the holder of `session` sees it; without one only the anonymous ones have a value.
pub(crate) fn property(world: &World, session: Option<&str>, path: &str) -> Found {
    let own = || {
        session
            .and_then(|key| world.sessions.get(key))
            .map(|session| Value::data(session.as_user_session()))
    };
    let locales = || {
        Value::Array(Array::new("xsd:string", vec![Value::string("en"), Value::string("en_US")]))
    };
    Ok(match path {
        "currentSession" => own(),
        "sessionList" => {
            let all = world.sessions.iter().map(|session| Value::data(session.as_user_session()));
            session.map(|_| Value::Array(Array::new("UserSession", all.collect())))
        }
        "defaultLocale" => Some(Value::string("en")),
        "message" => Some(Value::string(&world.sessions.message)),
        "messageLocaleList" | "supportedLocaleList" => Some(locales()),
        _ => {
            let Some(field) = path.strip_prefix("currentSession.") else { return no_such(path) };
            own().and_then(|session| session.get(field))
        }
    })
}
