//! One SOAP call from its bytes to its answer: rules, session, existence, permission, and then who carries it out.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use futures_util::FutureExt as _;
use http::StatusCode;
use jiff::Timestamp;
use roost_vim_wire::methods::{
    CancelTask, CloneSession, CurrentTime, Fetch, Login, RetrieveProperties, RetrievePropertiesEx,
    RetrieveServiceContent,
};
use roost_vim_wire::{Fault, Method, MoRef, Request, encode_fault, methods};

use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::collector::{self, ReadAs, Wait};
use crate::fault_rules::{Action, RuleId, after, before, decide};
use crate::session::SessionKey;
use crate::world::{Handle, World};
use crate::{host_config, permission, property, receiver, service, session};

/// Where a call comes from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    pub cookie: Option<String>,
    pub ip: String,
    pub user_agent: Option<String>,
    pub is_secure: bool,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Reply(ReplyBody),
    Fault(Failure),
    /// No vim25 answer at all.
    Status(StatusCode),
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub answer: Answer,
    /// The cookie of a session that the call has opened.
    pub new_cookie: Option<String>,
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self { answer, new_cookie: None }
    }
}

impl From<CallResult> for Outcome {
    fn from(result: CallResult) -> Self {
        result.map_or_else(Answer::Fault, Answer::Reply).into()
    }
}

impl Answer {
    pub(crate) fn into_parts(self) -> (StatusCode, Vec<u8>) {
        match self {
            Self::Reply(body) => (StatusCode::OK, body.0),
            Self::Fault(failure) => {
                (StatusCode::INTERNAL_SERVER_ERROR, encode_fault(&failure.fault, &failure.message))
            }
            Self::Status(status) => (status, Vec::new()),
        }
    }
}

/// Answers a call, and says what its method is. `Err`: the connection is cut.
pub(crate) async fn soap(
    handle: &Handle,
    caller: &Caller,
    body: &[u8],
) -> io::Result<(Outcome, String)> {
    let parsed = parse(body);
    let method = parsed.as_ref().map_or("malformed", |(request, _)| request.method).to_owned();
    handle.with(|world| {
        world.counters.called(&method);
        world.counters.asked(caller, &method, body.len());
    });
    let outcome = match parsed {
        Ok((request, this)) => answer(handle, caller, body, &request, &this).await?,
        Err(failure) => Answer::Fault(failure).into(),
    };
    Ok((outcome, method))
}

async fn answer(
    handle: &Handle,
    caller: &Caller,
    body: &[u8],
    request: &Request<'_>,
    this: &MoRef,
) -> io::Result<Outcome> {
    let ruled = handle.with(|world| decide(world, request, this, body));
    let mut read_as = Read::default();
    match &ruled {
        Some((_, Action::Fault(fault))) => {
            let message = fault.localized_message.clone().unwrap_or_default();
            return Ok(Answer::Fault(Failure::new(fault.fault.clone(), message)).into());
        }
        Some((id, Action::StaleList)) => read_as = Read { read_as: ReadAs::Stale, rule: Some(*id) },
        Some((_, Action::EmptyList)) => read_as.read_as = ReadAs::Empty,
        Some((_, action)) => {
            if let Some(status) = before(handle, caller, action).await? {
                return Ok(Answer::Status(status).into());
            }
        }
        None => {}
    }
    let execution =
        AssertUnwindSafe(execute(handle, caller, request, this, read_as)).catch_unwind();
    let outcome = execution.await.unwrap_or_else(|_| {
        tracing::error!(method = request.method, "a simulated call panicked");
        handle.with(|world| world.counters.panics += 1);
        let fault =
            Fault::of("SystemError").with("reason", &"the simulator has a defect".to_owned());
        Answer::Fault(Failure::new(fault, "A general system error occurred.")).into()
    });
    if let Some((_, action)) = &ruled {
        after(action).await?;
    }
    Ok(outcome)
}

fn parse(body: &[u8]) -> Result<(Request<'_>, MoRef), Failure> {
    let bad = |words: String| Failure::of("InvalidRequest", words);
    let request = Request::parse(body).map_err(|error| bad(error.to_string()))?;
    // Any method without arguments does: only `_this` is wanted.
    let this = decode::<CurrentTime>(&request)?.this;
    if this.is_null() {
        return Err(bad(format!("{} is called on no object", request.method)));
    }
    Ok((request, this))
}

/// How a property read is answered, and by which rule.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    read_as: ReadAs,
    rule: Option<RuleId>,
}

async fn execute(
    handle: &Handle,
    caller: &Caller,
    request: &Request<'_>,
    this: &MoRef,
    read: Read,
) -> Outcome {
    let Some(wait) = Wait::parse(request, handle.options.page_limit) else {
        return handle
            .with(|world| run(world, handle, caller, request, this, read).unwrap_or_else(refuse));
    };
    let now = handle.now();
    let session = handle.with(|world| enter(world, caller, request, this, now));
    match (session, wait) {
        (Ok(session), Ok(wait)) => collector::wait(handle, &session, this, &wait).await.into(),
        (Err(failure), _) | (_, Err(failure)) => refuse(failure),
    }
}

fn refuse(failure: Failure) -> Outcome {
    Answer::Fault(failure).into()
}

/// The caller's session, if it is live. One whose idle limit has passed ends here, should its timer be late.
pub(crate) fn authenticate(
    world: &mut World,
    caller: &Caller,
    now: Timestamp,
) -> Option<SessionKey> {
    let key = world.sessions.of_cookie(caller.cookie.as_deref()?)?.clone();
    if world.sessions.is_idle(&key, now) {
        session::end(world, &key);
        return None;
    }
    Some(key)
}

/// Session, existence and permission, in the order in which a server looks at them.
fn enter(
    world: &mut World,
    caller: &Caller,
    request: &Request<'_>,
    this: &MoRef,
    now: Timestamp,
) -> Result<SessionKey, Failure> {
    let session = authenticate(world, caller, now)
        .ok_or_else(|| permission::not_authenticated(this, "System.View"))?;
    world.sessions.touch(&session, now);
    if !world.has(this, &session) {
        return Err(Failure::not_found(this));
    }
    let method = methods::by_name(request.method).filter(|method| receiver::accepts(this, method));
    if method.is_none() {
        return Err(not_modelled(world, request.method, this));
    }
    if !world.permissions.is_unrestricted() {
        let user = world.sessions.get(&session).map(|session| session.user().to_owned());
        let user = user.unwrap_or_default();
        let needs = permission::needs(request, this, world);
        // Whoever began a task may cancel it, whatever their role.
        let is_own = request.method == CancelTask::NAME && world.tasks.is_of(this, &user);
        let asked = (!is_own).then_some(user.as_str());
        world.permissions.check(asked, &needs, &world.inventory)?;
    }
    Ok(session)
}

fn run(
    world: &mut World,
    handle: &Handle,
    caller: &Caller,
    request: &Request<'_>,
    this: &MoRef,
    read: Read,
) -> Result<Outcome, Failure> {
    #[cfg(test)]
    assert_ne!(request.method, "PanicForTest");
    let now = handle.now();
    let session = authenticate(world, caller, now);
    match request.method {
        RetrieveServiceContent::NAME => {
            if *this != MoRef::service_instance() {
                return Err(Failure::not_found(this));
            }
            return Ok(Ok(ReplyBody::of::<RetrieveServiceContent>(&world.service)).into());
        }
        Login::NAME => return session::login(request, world, handle, caller, session.is_some()),
        CloneSession::NAME => return session::clone_session(request, world, handle, caller),
        RetrieveProperties::NAME | RetrievePropertiesEx::NAME if session.is_none() => {
            return Ok(collector::retrieve_unauthenticated(request, world, now).into());
        }
        Fetch::NAME if session.is_none() => {
            let asked: Fetch = decode(request)?;
            if collector::is_anonymous(this, &asked.prop) {
                let reading = property::Reading { world, session: None, now, is_stale: false };
                return Ok(Ok(ReplyBody::of::<Fetch>(
                    &reading.get(this, &asked.prop).unwrap_or_default(),
                ))
                .into());
            }
        }
        _ => {}
    }
    let session = enter(world, caller, request, this, now)?;
    let user =
        world.sessions.get(&session).map(|session| session.user().to_owned()).unwrap_or_default();
    let cx = CallContext { handle, now, user: &user, session: &session, secure: caller.is_secure };
    let answered = with_frozen(world, read.rule, |world| {
        collector::retrieve(request, this, world, &cx, read.read_as)
    });
    let answered = answered.or_else(|| {
        let carry_out = receiver::carries_out(methods::by_name(request.method)?.receiver)?;
        carry_out(request, this, world, &cx)
    });
    answered
        .map_or_else(|| Err(not_modelled(world, request.method, this)), |result| Ok(result.into()))
}

/// A manager, of the server or of a host, answers a method that nobody has modelled with a fault of the schema, which clients can
/// handle.
fn not_modelled(world: &World, method: &str, this: &MoRef) -> Failure {
    let is_manager = service::is_manager(world.product, this)
        || host_config::host_of(&world.inventory, this).is_some();
    if is_manager && methods::by_name(method).is_none_or(|row| receiver::accepts(this, row)) {
        return Failure::of("NotSupported", "The operation is not supported on the object.");
    }
    method_not_found(method, this)
}

fn method_not_found(method: &str, this: &MoRef) -> Failure {
    let fault =
        Fault::of("MethodNotFound").with("receiver", this).with("method", &method.to_owned());
    Failure::new(fault, format!("The method '{method}' is not supported by '{this}'."))
}

/// Runs `f` on the inventory that a rule has frozen, if there is such a rule, and puts the real one back whatever happens.
fn with_frozen<R>(world: &mut World, rule: Option<RuleId>, f: impl FnOnce(&mut World) -> R) -> R {
    let Some((id, mut frozen)) =
        rule.and_then(|id| world.rules.lend_frozen(id).map(|frozen| (id, frozen)))
    else {
        return f(world);
    };
    std::mem::swap(&mut world.inventory, &mut frozen);
    let result = catch_unwind(AssertUnwindSafe(|| f(world)));
    std::mem::swap(&mut world.inventory, &mut frozen);
    world.rules.give_back(id, frozen);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roost_clock::SimClock;

    use super::*;
    use crate::options::Options;
    use crate::session::{Newcomer, open};
    use crate::world::Shared;

    fn call(method: &str) -> String {
        let this = "<_this type=\"ServiceInstance\">ServiceInstance</_this>";
        format!("<Envelope><Body><{method}>{this}</{method}></Body></Envelope>")
    }

    #[tokio::test(start_paused = true)]
    async fn a_defect_is_answered_counted_and_does_no_harm() {
        let handle = Shared::start(Options::default(), Arc::new(SimClock::new()));
        let newcomer = Newcomer { user: "user".into(), ..Newcomer::default() };
        let (_, cookie) = handle.with(|world| open(world, &handle, newcomer));
        let caller = Caller { cookie: Some(cookie), ..Caller::default() };
        let outcome = soap(&handle, &caller, call("PanicForTest").as_bytes()).await.unwrap();
        let Answer::Fault(failure) = outcome.0.answer else { panic!("it was answered") };
        assert_eq!(failure.fault.class, "SystemError");
        handle.run_guarded(|_, _| panic!("a timer with a defect"));
        assert_eq!(handle.with(|world| world.counters.panics), 2);
        let outcome = soap(&handle, &caller, call("CurrentTime").as_bytes()).await.unwrap();
        assert!(matches!(outcome.0.answer, Answer::Reply(_)));
    }
}
