//! One login for all callers.
//!
//! A request goes out under a [`Lease`]: the cookie and the generation of the session. When the server says that the session
//! is gone, the caller asks for a lease newer than the one that failed. Whoever asks first starts the login; all others
//! wait for the same one. The login runs in a task of its own, so that a caller who goes away neither ends it nor
//! leaves a session that nobody knows.

mod bad_logins;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use roost_supervise::Backoff;
use roost_vim_wire::methods::Login;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::bad_logins::BadLogins;
use crate::client_core::Core;
use crate::{CallClass, CallError, Credentials, Faulted, LoginOutcome};

const COOKIE_NAME: &[u8] = b"vmware_soap_session=";

/// The session that a request goes out under.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    /// Grows with each login. What lives in a session is dead once this is not the current one.
    pub(crate) generation: u64,
    /// The whole `Cookie` header, as opaque as it came. Marked sensitive: its `Debug` prints nothing.
    pub(crate) cookie: HeaderValue,
}

type Landing = Option<Result<Lease, CallError>>;

/// A login that is under way. It wakes those who wait for it in the order in which they came, which a watch alone does not.
#[derive(Debug, Clone)]
struct Flight {
    landing: watch::Receiver<Landing>,
    landed: Arc<Notify>,
}

impl Flight {
    /// `None` if the task that logs in died on the way.
    async fn landed(mut self) -> Landing {
        loop {
            let landed = self.landed.notified();
            if let Some(landing) = self.landing.borrow().clone() {
                return Some(landing);
            }
            tokio::select! {
                biased;
                () = landed => {}
                changed = self.landing.changed() => {
                    if changed.is_err() {
                        return self.landing.borrow().clone();
                    }
                }
            }
        }
    }

    fn is_under_way(&self) -> bool {
        self.landing.has_changed().is_ok()
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    state: Mutex<State>,
    generations: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    generation: u64,
    live: Option<Lease>,
    flight: Option<Flight>,
    bad_logins: BadLogins,
    /// Logins in a row that failed for a reason other than the credentials.
    failures: u32,
    not_before: Option<Instant>,
    closed: bool,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), generations: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows each new generation.
    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.generations.subscribe()
    }

    /// The session, if there is one and it is this generation's.
    pub(crate) fn current(&self, generation: u64) -> Option<Lease> {
        self.state().live.clone().filter(|lease| lease.generation == generation)
    }

    /// From now on nobody gets a lease. Returns false if that was so before.
    pub(crate) fn close(&self) -> bool {
        !std::mem::replace(&mut self.state().closed, true)
    }

    /// Waits for a login that is under way, then takes the session out, to be logged out.
    pub(crate) async fn take_last(&self) -> Option<Lease> {
        let flight = self.state().flight.clone();
        if let Some(flight) = flight {
            flight.landed().await;
        }
        self.state().live.take()
    }
}

impl Core {
    /// The current session, logging in if there is none.
    pub(crate) async fn lease(self: &Arc<Self>) -> Result<Lease, CallError> {
        self.lease_after(0).await
    }

    /// A session newer than the one found dead. Of many who found it dead, one logs in.
    pub(crate) async fn renew(self: &Arc<Self>, lost: &Lease) -> Result<Lease, CallError> {
        self.lease_after(lost.generation).await
    }

    async fn lease_after(self: &Arc<Self>, lost: u64) -> Result<Lease, CallError> {
        let flight = {
            let mut state = self.session.state();
            if state.closed {
                return Err(CallError::ShuttingDown);
            }
            if let Some(live) = state.live.as_ref().filter(|live| live.generation > lost) {
                return Ok(live.clone());
            }
            self.join_flight(&mut state)
        };
        let after = self.settings.deadlines.login;
        match timeout(after, flight.landed()).await {
            Ok(landing) => landing.unwrap_or(Err(ABANDONED)),
            Err(_) => Err(CallError::Deadline { method: "Login", class: CallClass::Login, after }),
        }
    }

    fn join_flight(self: &Arc<Self>, state: &mut State) -> Flight {
        // A flight whose task died without landing is no flight.
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.is_under_way()) {
            return flight.clone();
        }
        let (sender, landing) = watch::channel(None);
        let flight = Flight { landing, landed: Arc::default() };
        let landed = Arc::clone(&flight.landed);
        state.flight = Some(flight.clone());
        let dead = state.live.take();
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            let result = core.log_in().await;
            {
                let mut state = core.session.state();
                state.flight = None;
                if let Ok(lease) = &result {
                    state.live = Some(lease.clone());
                    core.session.generations.send_replace(lease.generation);
                }
            }
            sender.send_if_modified(|landing| {
                *landing = Some(result);
                false
            });
            landed.notify_waiters();
            // Most likely it is dead, but a 403 can also be about a file; then nobody else would end it.
            if let Some(dead) = dead {
                core.janitor.log_out(dead.cookie);
            }
        });
        flight
    }

    async fn log_in(&self) -> Result<Lease, CallError> {
        let not_before = self.session.state().not_before;
        if let Some(not_before) = not_before {
            sleep_until(not_before).await;
        }
        let credentials = self
            .settings
            .credentials
            .read()
            .map_err(|source| CallError::Credentials { source: Arc::new(source) })?;
        self.session.state().bad_logins.check(&credentials, Instant::now())?;
        let result = self.send_login(&credentials).await;
        let mut state = self.session.state();
        match result {
            Ok(cookie) => {
                state.bad_logins.accepted();
                state.failures = 0;
                state.not_before = None;
                state.generation += 1;
                self.settings.hooks.login(LoginOutcome::LoggedIn);
                tracing::info!(user = %credentials.user, generation = state.generation, "logged in to {}", self.settings.url);
                Ok(Lease { generation: state.generation, cookie })
            }
            Err(error) if error.is_fault("InvalidLogin") => {
                self.settings.hooks.login(LoginOutcome::Refused);
                let told = state.bad_logins.refused(
                    &credentials,
                    Instant::now(),
                    self.settings.login_pause,
                );
                tracing::error!(user = %credentials.user, "{told}");
                Err(told)
            }
            Err(error) => {
                state.failures += 1;
                state.not_before = Some(Instant::now() + LOGIN_BACKOFF.pause(state.failures));
                self.settings.hooks.login(LoginOutcome::Failed);
                tracing::warn!(user = %credentials.user, failures = state.failures, "login failed: {error}");
                Err(error)
            }
        }
    }

    /// Returns the session's cookie.
    async fn send_login(&self, credentials: &Credentials) -> Result<HeaderValue, CallError> {
        let manager = self
            .content()?
            .session_manager
            .clone()
            .ok_or(CallError::NoManager { manager: "session manager" })?;
        let call = Login {
            this: manager,
            user_name: credentials.user.clone(),
            password: credentials.password(),
            locale: Some("en_US".into()),
        };
        let deadline = Instant::now() + self.settings.deadlines.login;
        let mut busy = 0;
        loop {
            // No cookie: a login under a live session is refused by some servers.
            match self.exchange(CallClass::Login, &call, None, deadline).await {
                Ok((_, headers)) => return session_cookie(&headers).ok_or(CallError::NoCookie),
                Err(CallError::Http { status: StatusCode::SERVICE_UNAVAILABLE, .. }) => {
                    busy += 1;
                    let pause = LOGIN_BACKOFF.pause(busy);
                    if Instant::now() + pause >= deadline {
                        let status = StatusCode::SERVICE_UNAVAILABLE;
                        return Err(CallError::Http { method: "Login", status });
                    }
                    tracing::warn!(
                        "the server is starting or has no session left; the login waits {pause:?}"
                    );
                    sleep(pause).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

const ABANDONED: CallError = CallError::Abandoned { method: "Login" };

/// A server that restarts is asked soon and then less and less often.
const LOGIN_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(15));

/// The cookie as it is to be sent back: name and value of the last one set, bytes unchanged, quotes included.
fn session_cookie(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut cookies = headers.get_all(header::SET_COOKIE).iter().filter_map(|set| {
        let pair = set.as_bytes().split(|byte| *byte == b';').next()?.trim_ascii();
        pair.strip_prefix(COOKIE_NAME).filter(|value| !value.is_empty())?;
        HeaderValue::from_bytes(pair).ok()
    });
    let mut cookie = cookies.next_back()?;
    cookie.set_sensitive(true);
    Some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_kept_as_opaque_bytes() {
        for (set, wanted) in [
            (vec!["vmware_soap_session=abc; HttpOnly"], Some("vmware_soap_session=abc")),
            (
                vec!["vmware_soap_session=\"a=b c\"; Path=/; Secure"],
                Some("vmware_soap_session=\"a=b c\""),
            ),
            (vec!["other=1", "vmware_soap_session=x"], Some("vmware_soap_session=x")),
            (vec!["vmware_soap_session=; Path=/"], None),
            (vec!["other=1"], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in set {
                headers.append(header::SET_COOKIE, HeaderValue::from_static(value));
            }
            let cookie = session_cookie(&headers);
            assert_eq!(cookie.as_ref().map(HeaderValue::as_bytes), wanted.map(str::as_bytes));
            assert!(!format!("{cookie:?}").contains("abc"));
        }
    }
}
