//! What all handles of one client share, and how it begins and ends.
//!
//! Background work holds the [`Core`]; users hold [`Guarded`], and when the last of those is dropped the client ends itself:
//! the stream is taken down, leftovers are destroyed, the session is logged out.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderValue, Uri};
use roost_clock::Clock;
use roost_supervise::Backoff;
use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{CurrentTime, Logout, RetrieveServiceContent};
use roost_vim_wire::types::ServiceContent;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::{Instant, interval_at, timeout};

use crate::cleanup::Janitor;
use crate::rest::RestSlot;
use crate::session::Session;
use crate::stream::HubSlot;
use crate::{CallClass, CallError, Settings, Transport, version};

/// For saying goodbye; then the server's idle limit does it.
const GOODBYE: Duration = Duration::from_secs(10);

/// What is spoken before the server has said which versions it knows.
const FIRST_ACTION: HeaderValue = HeaderValue::from_static("urn:vim25/6.7");

pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) session: Session,
    pub(crate) janitor: Janitor,
    pub(crate) hub: HubSlot,
    pub(crate) rest: RestSlot,
    /// Where background work runs, also when the last handle is dropped outside of it.
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) sdk: Uri,
    pub(crate) operations: AtomicU64,
    ids: AtomicU64,
    content: OnceLock<Arc<ServiceContent>>,
    soap_action: OnceLock<HeaderValue>,
    ended: watch::Sender<bool>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("url", &self.settings.url.as_str()).finish_non_exhaustive()
    }
}

/// The users' share of a core. Dropping the last one ends the client.
#[derive(Debug)]
pub(crate) struct Guarded(pub(crate) Arc<Core>);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Core {
    /// Negotiates the version, reads the service content and logs in.
    pub(crate) async fn connect(
        settings: Settings,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Guarded>, CallError> {
        let sdk = format!("{}sdk", settings.url);
        let sdk = Uri::try_from(sdk).map_err(|error| {
            CallError::connection("connect", io::Error::new(io::ErrorKind::InvalidInput, error))
        })?;
        let (janitor, chores) = Janitor::new();
        let core = Arc::new(Self {
            settings,
            transport,
            clock,
            session: Session::new(),
            janitor,
            hub: HubSlot::default(),
            rest: RestSlot::default(),
            runtime: tokio::runtime::Handle::current(),
            sdk,
            operations: AtomicU64::new(0),
            ids: AtomicU64::new(0),
            content: OnceLock::new(),
            soap_action: OnceLock::new(),
            ended: watch::Sender::new(false),
        });
        // From here on a dropped or failed connect cleans up behind itself.
        let guarded = Arc::new(Guarded(Arc::clone(&core)));
        core.runtime.spawn(Arc::clone(&core).run_janitor(chores));
        core.negotiate().await?;
        core.lease().await?;
        core.runtime.spawn(Arc::clone(&core).keep_alive());
        Ok(guarded)
    }

    async fn negotiate(&self) -> Result<(), CallError> {
        let spoken = self.fetch_versions().await?.and_then(|document| version::choose(&document));
        if let Some(spoken) = &spoken {
            self.speak(spoken);
        }
        let deadline = Instant::now() + self.settings.deadlines.read;
        let ask = RetrieveServiceContent { this: MoRef::service_instance() };
        let (content, _) = self.exchange(CallClass::Read, &ask, None, deadline).await?;
        if spoken.is_none()
            && let Some(spoken) = version::choose_own(&content.about.api_version)
        {
            self.speak(&spoken);
        }
        tracing::info!(product = %content.about.full_name, version = ?self.soap_action(), "connected to {}", self.settings.url);
        let _ = self.content.set(Arc::new(content));
        Ok(())
    }

    fn speak(&self, version: &str) {
        if let Ok(action) = HeaderValue::try_from(format!("urn:vim25/{version}")) {
            let _ = self.soap_action.set(action);
        }
    }

    pub(crate) fn soap_action(&self) -> HeaderValue {
        self.soap_action.get().cloned().unwrap_or(FIRST_ACTION)
    }

    pub(crate) fn content(&self) -> Result<&Arc<ServiceContent>, CallError> {
        self.content.get().ok_or(CallError::ShuttingDown)
    }

    pub(crate) fn deadline(&self, class: CallClass) -> Duration {
        self.settings.deadlines.of(class)
    }

    /// A number that no other subscription or follower of this client has.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn stream_backoff(&self) -> Backoff {
        Backoff::new(self.settings.stream.first_pause, self.settings.stream.max_pause)
    }

    /// Keeps the session from expiring while nobody calls. A failure is left to the next round: by then the call logs in again.
    async fn keep_alive(self: Arc<Self>) {
        let every = self.settings.keep_alive.max(Duration::from_secs(1));
        let mut ticks = interval_at(Instant::now() + every, every);
        let mut ended = self.ended.subscribe();
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    let core = Arc::clone(&self);
                    let ask = CurrentTime { this: MoRef::service_instance() };
                    let round = self.runtime.spawn(async move { core.call(CallClass::Read, &ask).await });
                    match round.await {
                        Ok(Ok(_)) => {}
                        Ok(Err(error)) => tracing::warn!("the session could not be kept alive: {error}"),
                        Err(error) => self.note_panic("keep-alive", &error),
                    }
                }
                _ = ended.changed() => return,
            }
        }
    }

    /// Tells that background work did not end as it should.
    pub(crate) fn note_panic(&self, what: &'static str, error: &JoinError) {
        if error.is_panic() {
            tracing::error!("the {what} of the client of {} panicked", self.settings.url);
            self.settings.hooks.background_panicked(what);
        }
    }

    /// Ends the client in the background. Safe to call again.
    pub(crate) fn end(self: &Arc<Self>) {
        if self.session.close() {
            let core = Arc::clone(self);
            self.runtime.spawn(async move {
                if timeout(GOODBYE, core.say_goodbye()).await.is_err() {
                    tracing::warn!("{} did not answer the logout", core.settings.url);
                }
                core.janitor.stop();
                core.ended.send_replace(true);
            });
        }
    }

    /// Ends the client and waits until that is done.
    pub(crate) async fn end_and_wait(self: &Arc<Self>) {
        let mut ended = self.ended.subscribe();
        self.end();
        let _ = ended.wait_for(|ended| *ended).await;
    }

    async fn say_goodbye(self: &Arc<Self>) {
        self.hub.stop().await;
        self.janitor.flush().await;
        self.end_rest().await;
        let Some(last) = self.session.take_last().await else { return };
        let Some(manager) = self.content().ok().and_then(|content| content.session_manager.clone())
        else {
            return;
        };
        let deadline = Instant::now() + GOODBYE;
        match self
            .exchange(CallClass::Login, &Logout { this: manager }, Some(&last.cookie), deadline)
            .await
        {
            Ok(_) => tracing::info!("logged out of {}", self.settings.url),
            Err(error) => tracing::warn!("logout failed: {error}"),
        }
    }
}
