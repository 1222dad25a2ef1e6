//! Tells CDS that this hatchery lives, and how it is.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::{Heartbeat, HeartbeatHealth, HeartbeatSettings, MonitoringStatus, Protocol};
use roost_supervise::{Chain, Tasks};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::super::Stopped;
use super::super::context::Context;
use super::super::scheduler::lock;

/// Before a V2 heartbeat that gave up begins anew: CDS forgets a V2 hatchery less quickly than a V1 service, and its jobs come by poll meanwhile.
const ANEW: Duration = Duration::from_mins(1);

/// The first beat waits so long for a whole inventory: CDS deletes a service that is silent for 3 min, and the sign-in counted as a beat.
const FIRST_BEAT: Duration = Duration::from_mins(2);
/// CDS may be updated while this runs.
const VERSION_EVERY: Duration = Duration::from_mins(10);

/// Beats until CDS has not taken too many in a row. CDS has then forgotten this hatchery and its jobs: the process ends, so that whoever
/// supervises it sees.
pub(crate) async fn beat_v1(cx: Arc<Context>, tasks: Arc<Tasks>) {
    let Some(client) = cx.cds.v1().cloned() else { return };
    let heart = Heartbeat::v1(client, settings(&cx), Arc::clone(&cx.clock));
    cx.follow_heart(Protocol::V1, heart.health());
    let _ = timeout(FIRST_BEAT, cx.opened()).await;
    let gave_up = heart.run(|| tell("heartbeat-v1", &cx, &tasks)).await;
    tracing::error!("{}", Chain(&gave_up));
    cx.stop(Stopped::Heartbeat(Arc::new(gave_up)));
}

/// Beats for ever. A V2 hatchery that CDS does not hear stays what it was.
pub(crate) async fn beat_v2(cx: Arc<Context>, tasks: Arc<Tasks>) {
    let _ = timeout(FIRST_BEAT, cx.opened()).await;
    loop {
        let Some(client) = cx.cds.v2().cloned() else { return };
        let heart = Heartbeat::v2(client, settings(&cx), Arc::clone(&cx.clock));
        cx.follow_heart(Protocol::V2, heart.health());
        let gave_up = heart.run(|| tell("heartbeat-v2", &cx, &tasks)).await;
        tracing::error!("begins anew in {ANEW:?}: {}", Chain(&gave_up));
        sleep(ANEW).await;
    }
}

/// Follows the version of CDS, which it compares with that of its hatcheries.
pub(crate) async fn follow_version(cx: Arc<Context>, tasks: Arc<Tasks>) {
    loop {
        tasks.beat("cds-version", cx.patience() + VERSION_EVERY);
        match cx.cds.version().await {
            Ok(told) if !told.version.is_empty() => *lock(&cx.cds_version) = Some(told.version),
            Ok(_) => {}
            Err(error) => tracing::debug!("CDS does not tell its version: {}", Chain(&error)),
        }
        sleep(VERSION_EVERY).await;
    }
}

/// What the next beat says.
fn tell(name: &'static str, cx: &Context, tasks: &Tasks) -> MonitoringStatus {
    tasks.beat(name, cx.patience() + HeartbeatSettings::default().interval + ANEW);
    cx.status(tasks)
}

fn settings(cx: &Context) -> HeartbeatSettings {
    HeartbeatSettings {
        max_failures: cx.config.api.max_heartbeat_failures,
        ..HeartbeatSettings::default()
    }
}

impl Context {
    fn follow_heart(&self, protocol: Protocol, health: watch::Receiver<HeartbeatHealth>) {
        lock(&self.hearts).insert(protocol, health);
    }

    /// How CDS takes the heartbeats of each protocol.
    pub(crate) fn heart_health(&self) -> Vec<(Protocol, HeartbeatHealth)> {
        let hearts = lock(&self.hearts);
        hearts.iter().map(|(protocol, health)| (*protocol, health.borrow().clone())).collect()
    }
}
