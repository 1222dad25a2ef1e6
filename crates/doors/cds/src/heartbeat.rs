//! Tells the API every 30 s that this hatchery lives and how it is. A V1 service that is silent for 3 min is deleted there.

use std::time::Duration;

use jiff::Timestamp;
use roost_clock::Clock;
use roost_supervise::Chain;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{self, MissedTickBehavior};
use tracing::{info, warn};

use crate::{CallError, ErrorKind, MonitoringStatus, Protocol, v1, v2};

/// How often a heart beats and when it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatSettings {
    pub interval: Duration,
    /// One failure in a row more than this ends the loop.
    pub max_failures: u32,
}

impl Default for HeartbeatSettings {
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), max_failures: 10 }
    }
}

/// How the heartbeat goes, for `/mon/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeartbeatHealth {
    /// When the API last answered.
    pub last_success: Option<Timestamp>,
    /// Since then.
    pub failures: u32,
    pub last_error: Option<String>,
}

/// The heartbeat has ended. The API will take this hatchery for dead.
#[derive(Debug, thiserror::Error)]
#[error("the {protocol} heartbeat gave up after {failures} failures in a row")]
pub struct HeartbeatGaveUp {
    pub protocol: Protocol,
    pub failures: u32,
    pub source: CallError,
}

/// The heartbeat of one protocol.
#[derive(Debug)]
pub struct Heartbeat {
    heart: Heart,
    settings: HeartbeatSettings,
    clock: Arc<dyn Clock>,
    health: watch::Sender<HeartbeatHealth>,
}

#[derive(Debug)]
enum Heart {
    V1(v1::Client),
    V2(v2::Client),
}

impl Heartbeat {
    pub fn v1(client: v1::Client, settings: HeartbeatSettings, clock: Arc<dyn Clock>) -> Self {
        Self { heart: Heart::V1(client), settings, clock, health: watch::Sender::default() }
    }

    pub fn v2(client: v2::Client, settings: HeartbeatSettings, clock: Arc<dyn Clock>) -> Self {
        Self { heart: Heart::V2(client), settings, clock, health: watch::Sender::default() }
    }

    pub fn health(&self) -> watch::Receiver<HeartbeatHealth> {
        self.health.subscribe()
    }

    fn protocol(&self) -> Protocol {
        match self.heart {
            Heart::V1(_) => Protocol::V1,
            Heart::V2(_) => Protocol::V2,
        }
    }

    /// Beats now and then at the interval, until too many beats failed in a row. Each asks `status` for what to send.
    pub async fn run(self, mut status: impl FnMut() -> MonitoringStatus) -> HeartbeatGaveUp {
        let mut ticks = time::interval(self.settings.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.beat(&status()).await {
                Ok(()) => self.succeeded(),
                Err(error) => {
                    let failures = self.failed(&error);
                    if failures > self.settings.max_failures {
                        let protocol = self.protocol();
                        return HeartbeatGaveUp { protocol, failures, source: error };
                    }
                }
            }
        }
    }

    fn succeeded(&self) {
        let now = self.clock.now();
        self.health.send_replace(HeartbeatHealth {
            last_success: Some(now),
            ..HeartbeatHealth::default()
        });
    }

    fn failed(&self, error: &CallError) -> u32 {
        let why = Chain(error).to_string();
        self.health.send_modify(|health| {
            health.failures += 1;
            health.last_error = Some(why.clone());
        });
        let failures = self.health.borrow().failures;
        warn!(protocol = %self.protocol(), failures, "heartbeat failed: {why}");
        failures
    }

    /// One beat. Forbidden means that the API has dropped us: signing in registers us again, and the beat is repeated.
    async fn beat(&self, status: &MonitoringStatus) -> Result<(), CallError> {
        match self.heart.beat(status).await {
            Err(error) if error.kind() == Some(ErrorKind::Forbidden) => {
                info!(protocol = %self.protocol(), "the API does not know this hatchery any more, signing in again");
                self.heart.renew().await?;
                self.heart.beat(status).await
            }
            other => other,
        }
    }
}

impl Heart {
    async fn beat(&self, status: &MonitoringStatus) -> Result<(), CallError> {
        match self {
            Self::V1(client) => client.beat(status).await,
            Self::V2(client) => client.beat(status).await,
        }
    }

    async fn renew(&self) -> Result<(), CallError> {
        match self {
            Self::V1(client) => client.renew().await,
            Self::V2(client) => client.renew().await,
        }
    }
}
