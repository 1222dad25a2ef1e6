//! Tells CDS that this hatchery lives, and how it is.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::{Heartbeat, HeartbeatHealth, HeartbeatSettings, MonitoringStatus, Protocol};
use roost_supervise::{Chain, Tasks};
use tokio::sync::watch;
use tokio::time::sleep;

use super::super::Stopped;
use super::super::desk::lock;
use super::super::nest::Nest;

/// Before a V2 heartbeat that gave up begins anew: CDS forgets a V2 hatchery less quickly than a V1 service, and its jobs come by poll meanwhile.
const ANEW: Duration = Duration::from_mins(1);

/// Beats until CDS has not taken too many in a row. CDS has then forgotten this hatchery and its jobs: the process ends, so that whoever
/// supervises it sees.
pub(crate) async fn beat_v1(nest: Arc<Nest>, tasks: Arc<Tasks>) {
    let Some(client) = nest.cds.v1().cloned() else { return };
    let heart = Heartbeat::v1(client, settings(&nest), Arc::clone(&nest.clock));
    nest.follow_heart(Protocol::V1, heart.health());
    let gave_up = heart.run(|| tell("heartbeat-v1", &nest, &tasks)).await;
    tracing::error!("{}", Chain(&gave_up));
    nest.stop(Stopped::Heartbeat(Arc::new(gave_up)));
}

/// Beats for ever. A V2 hatchery that CDS does not hear stays what it was.
pub(crate) async fn beat_v2(nest: Arc<Nest>, tasks: Arc<Tasks>) {
    loop {
        let Some(client) = nest.cds.v2().cloned() else { return };
        let heart = Heartbeat::v2(client, settings(&nest), Arc::clone(&nest.clock));
        nest.follow_heart(Protocol::V2, heart.health());
        let gave_up = heart.run(|| tell("heartbeat-v2", &nest, &tasks)).await;
        tracing::error!("begins anew in {ANEW:?}: {}", Chain(&gave_up));
        sleep(ANEW).await;
    }
}

/// What the next beat says.
fn tell(name: &'static str, nest: &Nest, tasks: &Tasks) -> MonitoringStatus {
    tasks.beat(name, nest.patience() + HeartbeatSettings::default().interval + ANEW);
    nest.status(tasks)
}

fn settings(nest: &Nest) -> HeartbeatSettings {
    HeartbeatSettings {
        max_failures: nest.config.api.max_heartbeat_failures,
        ..HeartbeatSettings::default()
    }
}

impl Nest {
    fn follow_heart(&self, protocol: Protocol, health: watch::Receiver<HeartbeatHealth>) {
        lock(&self.hearts).insert(protocol, health);
    }

    /// How CDS takes the heartbeats of each protocol.
    pub(crate) fn heart_health(&self) -> Vec<(Protocol, HeartbeatHealth)> {
        let hearts = lock(&self.hearts);
        hearts.iter().map(|(protocol, health)| (*protocol, health.borrow().clone())).collect()
    }
}
