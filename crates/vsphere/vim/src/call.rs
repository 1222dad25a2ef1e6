//! A call as its caller sees it: under a session, within the deadline of its class, repeated where that is safe.
//!
//! - The session is gone: one login for all, then the call once more. The server refused before it did anything, so this is
//!   safe for changes too.
//! - The connection failed, or a gateway answered in the server's place: a read is repeated with growing pauses until its
//!   deadline. Anything else is not: nobody knows whether the server acted.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, header};
use roost_supervise::Backoff;
use roost_vim_wire::Method;
use roost_vim_wire::methods::Effect;
use tokio::time::{Instant, sleep, timeout};

use crate::client_core::Core;
use crate::meter::Meter;
use crate::session::Lease;
use crate::{Body, CallClass, CallError, Outcome};

const READ_BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));

/// Where a call stands between its tries.
pub(crate) struct Tries<'a> {
    core: &'a Arc<Core>,
    deadline: Instant,
    repeats: bool,
    lost: Option<Lease>,
    renewed: bool,
    failures: u32,
}

impl<'a> Tries<'a> {
    pub(crate) fn new(core: &'a Arc<Core>, allowed: Duration, effect: Effect) -> Self {
        Self {
            core,
            deadline: Instant::now() + allowed,
            repeats: effect == Effect::Read,
            lost: None,
            renewed: false,
            failures: 0,
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The session for the next try. The time that a login takes is not the call's.
    pub(crate) async fn lease(&mut self) -> Result<Lease, CallError> {
        let before = Instant::now();
        let lease = match self.lost.take() {
            Some(lost) => self.core.renew(&lost).await,
            None => self.core.lease().await,
        };
        self.deadline += before.elapsed();
        lease
    }

    /// Returns if the call is to be tried again, with the error if not.
    pub(crate) async fn after(
        &mut self,
        lease: Option<Lease>,
        error: CallError,
    ) -> Result<(), CallError> {
        if let Some(lease) = lease.filter(|_| error.is_session_lost() && !self.renewed) {
            tracing::info!(generation = lease.generation, "the session is gone: {error}");
            self.renewed = true;
            self.lost = Some(lease);
            return Ok(());
        }
        let pause = READ_BACKOFF.pause(self.failures + 1);
        if !self.repeats || !is_passing(&error) || Instant::now() + pause >= self.deadline {
            return Err(error);
        }
        self.failures += 1;
        tracing::warn!(failures = self.failures, "repeating after {pause:?}: {error}");
        sleep(pause).await;
        Ok(())
    }
}

/// Whether the way to the server failed and not the server's answer.
fn is_passing(error: &CallError) -> bool {
    match error {
        CallError::Connection { .. } => true,
        CallError::Answer { source, .. } => *source == roost_vim_wire::WireError::Incomplete,
        CallError::Http { status, .. } => matches!(status.as_u16(), 502..=504),
        _ => false,
    }
}

impl Core {
    pub(crate) async fn call<M: Method>(
        self: &Arc<Self>,
        class: CallClass,
        call: &M,
    ) -> Result<M::Output, CallError> {
        self.call_traced(class, call).await.map(|(output, _)| output)
    }

    /// Also says in which session the call was made.
    pub(crate) async fn call_traced<M: Method>(
        self: &Arc<Self>,
        class: CallClass,
        call: &M,
    ) -> Result<(M::Output, u64), CallError> {
        let mut tries = Tries::new(self, self.deadline(class), M::EFFECT);
        loop {
            let lease = match tries.lease().await {
                Ok(lease) => lease,
                Err(error) => {
                    tries.after(None, error).await?;
                    continue;
                }
            };
            match self.exchange(class, call, Some(&lease.cookie), tries.deadline()).await {
                Ok((output, _)) => return Ok((output, lease.generation)),
                Err(error) => tries.after(Some(lease), error).await?,
            }
        }
    }

    /// One try in this session and no other.
    pub(crate) async fn call_in<M: Method>(
        &self,
        lease: &Lease,
        call: &M,
    ) -> Result<M::Output, CallError> {
        let deadline = Instant::now() + self.deadline(CallClass::Read);
        self.exchange(CallClass::Read, call, Some(&lease.cookie), deadline)
            .await
            .map(|(output, _)| output)
    }

    /// See `Observer::http`.
    pub(crate) async fn http(
        self: &Arc<Self>,
        method: &'static str,
        class: CallClass,
        mut request: impl FnMut() -> Request<Body>,
    ) -> Result<Response<Body>, CallError> {
        let mut tries = Tries::new(self, self.deadline(class), Effect::Change);
        loop {
            let lease = tries.lease().await?;
            let mut request = request();
            request.headers_mut().insert(header::COOKIE, lease.cookie.clone());
            let sent = request.headers().get(header::CONTENT_LENGTH);
            let sent = sent.and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0);
            let meter = Meter::start(&self.settings.hooks, method, class, sent);
            let send = self.send(method, request);
            let result = if class == CallClass::Upload {
                send.await
            } else {
                let after = tries.deadline().saturating_duration_since(Instant::now());
                timeout(after, send).await.unwrap_or(Err(CallError::Deadline {
                    method,
                    class,
                    after,
                }))
            };
            match result {
                Ok(response) if matches!(response.status().as_u16(), 401 | 403) => {
                    meter.finish(Outcome::Fault);
                    let error = CallError::Http { method, status: response.status() };
                    tries.after(Some(lease), error).await?;
                }
                result => {
                    self.finish(meter, method, result.as_ref().err());
                    return result;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Method, StatusCode};
    use roost_clock::SimClock;
    use roost_vcenter_sim::{Action, Options, Rule, Vcenter};

    use super::*;
    use crate::transport::empty_body;
    use crate::{Client, Credentials, Remedy, SendFuture, Settings, Transport};

    #[derive(Debug)]
    struct Door(Vcenter);

    impl Transport for Door {
        fn send(&self, request: Request<Body>) -> SendFuture {
            let vcenter = self.0.clone();
            Box::pin(async move { vcenter.handle(request).await })
        }
    }

    async fn lab() -> (Vcenter, Client) {
        let clock = Arc::new(SimClock::new());
        let vcenter = Vcenter::start(Options::default(), clock.clone());
        let settings = Settings::new("vc.test", Credentials::new("roost", "secret")).unwrap();
        let client =
            Client::connect(settings, Arc::new(Door(vcenter.clone())), clock).await.unwrap();
        (vcenter, client)
    }

    fn get() -> Request<Body> {
        let mut request = Request::new(empty_body());
        *request.method_mut() = Method::GET;
        *request.uri_mut() =
            "https://vc.test/folder/none?dcPath=DC0&dsName=LocalDS_0".parse().unwrap();
        request
    }

    #[tokio::test(start_paused = true)]
    async fn a_transfer_that_finds_its_session_gone_is_asked_again_under_a_new_one() {
        let (vcenter, client) = lab().await;
        vcenter.expire_sessions();
        let answer = client.http("GET /folder", CallClass::Read, get).await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        assert_eq!(vcenter.counters().logins, 2);

        vcenter.faults().add(Rule::new("GET /folder", Action::Status(403)));
        let error = client.http("GET /folder", CallClass::Read, get).await.unwrap_err();
        assert_eq!(error.remedy(), Remedy::Relogin, "{error}");
        assert_eq!(vcenter.counters().logins, 3, "once, not for ever");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            vcenter.counters().open_sessions,
            1,
            "the session that was not dead was logged out"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_transfer_waits_for_its_status_no_longer_than_its_class_allows() {
        let (vcenter, client) = lab().await;
        vcenter.faults().add(Rule::new("GET /folder", Action::Hang));
        let started = Instant::now();
        let error = client.http("GET /folder", CallClass::Read, get).await.unwrap_err();
        assert!(matches!(error, CallError::Deadline { class: CallClass::Read, .. }), "{error}");
        assert_eq!(started.elapsed(), Duration::from_secs(15));
    }
}
