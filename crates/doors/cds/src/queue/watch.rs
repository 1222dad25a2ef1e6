use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use roost_clock::Clock;
use roost_supervise::{Backoff, Chain};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{self, Instant, MissedTickBehavior};
use tracing::{debug, info, warn};

use super::QueueHealth;
use super::feed::Feed;
pub use super::feed::WaitingJob;
use crate::{CallError, ErrorKind, JobId, Protocol, SocketClosed, v1, v2};

/// A connection that lived this long was a good one: the next pause is the first again.
const HELD: Duration = Duration::from_mins(1);

/// When to look at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    pub poll_interval: Duration,
    /// Before the first attempt to open a closed websocket again; doubled with each attempt that fails.
    pub first_pause: Duration,
    /// Not longer than two polls, so that a websocket costs no more than what it saves.
    pub longest_pause: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(20),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
        }
    }
}

/// Something to look at. A hint says nothing about what the job is now: it may come twice, late, or for a job that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobHint {
    /// The websocket named this job.
    Pushed(JobId),
    /// A poll succeeded: these are all jobs of this protocol that wait for a hatchery like this one, oldest first.
    Polled { protocol: Protocol, jobs: Vec<WaitingJob> },
}

/// Watches the queue of one protocol.
#[derive(Debug)]
pub struct QueueWatch {
    feed: Feed,
    settings: QueueSettings,
    clock: Arc<dyn Clock>,
    health: watch::Sender<QueueHealth>,
    /// A websocket was opened: what happened while none was is polled for at once.
    opened: Notify,
}

impl QueueWatch {
    pub fn v1(client: v1::Client, settings: QueueSettings, clock: Arc<dyn Clock>) -> Self {
        Self::new(Feed::V1(client), settings, clock)
    }

    pub fn v2(client: v2::Client, settings: QueueSettings, clock: Arc<dyn Clock>) -> Self {
        Self::new(Feed::V2(client), settings, clock)
    }

    fn new(feed: Feed, settings: QueueSettings, clock: Arc<dyn Clock>) -> Self {
        Self { feed, settings, clock, health: watch::Sender::default(), opened: Notify::new() }
    }

    pub fn health(&self) -> watch::Receiver<QueueHealth> {
        self.health.subscribe()
    }

    /// Sends hints for as long as somebody receives them. Several watches may share one channel.
    pub async fn run(self, hints: mpsc::Sender<JobHint>) {
        // In order, here and below: left to itself, `select!` throws dice that no seed knows.
        tokio::select! {
            biased;
            () = hints.closed() => {}
            never = self.listen(&hints) => match never {},
            never = self.poll(&hints) => match never {},
        }
    }

    async fn listen(&self, hints: &mpsc::Sender<JobHint>) -> Infallible {
        let pauses = Backoff::new(self.settings.first_pause, self.settings.longest_pause);
        let mut attempts = pauses.attempts();
        loop {
            let mut connected = None;
            let why = match self.hear(hints, &mut connected).await {
                Ok(closed) => closed.to_string(),
                Err(error) => Chain(&error).to_string(),
            };
            if connected.is_some_and(|since| since.elapsed() >= HELD) {
                attempts.reset();
            }
            let pause = attempts.failed().unwrap_or_default();
            warn!(
                protocol = %self.feed.protocol(),
                pause_secs = pause.as_secs(),
                "the queue's websocket is opened again after a pause: {why}"
            );
            self.health.send_modify(|health| {
                health.connected = None;
                health.last_error = Some(why);
            });
            time::sleep(pause).await;
        }
    }

    /// One connection from its beginning to its end.
    async fn hear(
        &self,
        hints: &mpsc::Sender<JobHint>,
        connected: &mut Option<Instant>,
    ) -> Result<SocketClosed, CallError> {
        let mut socket = self.feed.connect().await?;
        if let Some(subscription) = self.feed.subscription()
            && socket.outgoing.send(subscription).await.is_err()
        {
            return Ok(SocketClosed::broken("closed before the subscription was sent"));
        }
        *connected = Some(Instant::now());
        info!(protocol = %self.feed.protocol(), "listening to the CDS queue");
        self.health.send_modify(|health| {
            health.connected = Some(self.clock.now());
            health.connections += 1;
        });
        self.opened.notify_one();
        loop {
            match socket.incoming.recv().await {
                Some(Ok(frame)) => {
                    if let Some(job) = self.feed.read(&frame) {
                        self.health.send_modify(|health| health.pushed_jobs += 1);
                        self.give(hints, JobHint::Pushed(job)).await;
                    }
                }
                Some(Err(closed)) => return Ok(closed),
                None => return Ok(SocketClosed::broken("the connection is gone")),
            }
        }
    }

    async fn poll(&self, hints: &mpsc::Sender<JobHint>) -> Infallible {
        let mut ticks = time::interval(self.settings.poll_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {}
                () = self.opened.notified() => ticks.reset(),
            }
            match self.feed.poll().await {
                Ok(jobs) => {
                    self.health.send_modify(|health| {
                        health.last_poll = Some(self.clock.now());
                        health.failed_polls = 0;
                    });
                    let protocol = self.feed.protocol();
                    self.give(hints, JobHint::Polled { protocol, jobs }).await;
                }
                Err(error) => self.poll_failed(&error),
            }
        }
    }

    /// A failed poll says nothing: it is not an empty queue.
    fn poll_failed(&self, error: &CallError) {
        let (protocol, why) = (self.feed.protocol(), Chain(error).to_string());
        if error.kind() == Some(ErrorKind::NotAuthenticated) {
            debug!(%protocol, "polling the queue: {why}");
        } else {
            warn!(%protocol, "polling the queue failed: {why}");
        }
        self.health.send_modify(|health| {
            health.failed_polls += 1;
            health.last_error = Some(why);
        });
    }

    async fn give(&self, hints: &mpsc::Sender<JobHint>, hint: JobHint) {
        if hints.send(hint).await.is_err() {
            // Nobody listens any more; `run` notices and ends.
            pending::<()>().await;
        }
    }
}
