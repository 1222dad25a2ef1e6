//! Tells CDS that this hatchery lives, and how it is.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::{Heartbeat, HeartbeatSettings, MonitoringStatus, Protocol};
use roost_supervise::{Chain, Tasks};
use tokio::time::{sleep, timeout};

use super::super::Stopped;
use crate::run::about::About;
use crate::run::cds_link::CdsLink;
use crate::run::lifecycle::Lifecycle;
use crate::run::observe::StateReader;

/// Before a V2 heartbeat that gave up begins anew: CDS forgets a V2 hatchery less quickly than a V1 service, and its jobs come by poll meanwhile.
const ANEW: Duration = Duration::from_mins(1);

/// The first beat waits so long for a whole inventory: CDS deletes a service that is silent for 3 min, and the sign-in counted as a beat.
const FIRST_BEAT: Duration = Duration::from_mins(2);
/// CDS may be updated while this runs.
const VERSION_EVERY: Duration = Duration::from_mins(10);

/// Speaks for us to CDS.
#[derive(Debug)]
pub(in crate::run) struct Heart {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) cds_link: Arc<CdsLink>,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) reader: Arc<StateReader>,
}

/// Beats until CDS has not taken too many in a row. CDS has then forgotten this hatchery and its jobs: the process ends, so that whoever
/// supervises it sees.
pub(crate) async fn beat_v1(beats: Arc<Heart>, tasks: Arc<Tasks>) {
    let Some(client) = beats.cds.v1().cloned() else { return };
    let heart = Heartbeat::v1(client, settings(&beats), Arc::clone(&beats.about.clock));
    beats.cds_link.follow_heart(Protocol::V1, heart.health());
    let _ = timeout(FIRST_BEAT, beats.lifecycle.opened()).await;
    let gave_up = heart.run(|| tell("heartbeat-v1", &beats, &tasks)).await;
    tracing::error!("{}", Chain(&gave_up));
    beats.lifecycle.stop(Stopped::Heartbeat(Arc::new(gave_up)));
}

/// Beats for ever. A V2 hatchery that CDS does not hear stays what it was.
pub(crate) async fn beat_v2(beats: Arc<Heart>, tasks: Arc<Tasks>) {
    let _ = timeout(FIRST_BEAT, beats.lifecycle.opened()).await;
    loop {
        let Some(client) = beats.cds.v2().cloned() else { return };
        let heart = Heartbeat::v2(client, settings(&beats), Arc::clone(&beats.about.clock));
        beats.cds_link.follow_heart(Protocol::V2, heart.health());
        let gave_up = heart.run(|| tell("heartbeat-v2", &beats, &tasks)).await;
        tracing::error!("begins anew in {ANEW:?}: {}", Chain(&gave_up));
        sleep(ANEW).await;
    }
}

/// Follows the version of CDS, which it compares with that of its hatcheries.
pub(crate) async fn follow_version(beats: Arc<Heart>, tasks: Arc<Tasks>) {
    loop {
        tasks.beat("cds-version", beats.about.patience() + VERSION_EVERY);
        match beats.cds.version().await {
            Ok(told) if !told.version.is_empty() => beats.cds_link.tell_version(told.version),
            Ok(_) => {}
            Err(error) => tracing::debug!("CDS does not tell its version: {}", Chain(&error)),
        }
        sleep(VERSION_EVERY).await;
    }
}

/// What the next beat says.
fn tell(name: &'static str, beats: &Heart, tasks: &Tasks) -> MonitoringStatus {
    tasks.beat(name, beats.about.patience() + HeartbeatSettings::default().interval + ANEW);
    beats.reader.status(tasks)
}

fn settings(beats: &Heart) -> HeartbeatSettings {
    HeartbeatSettings {
        max_failures: beats.about.config.api.max_heartbeat_failures,
        ..HeartbeatSettings::default()
    }
}
