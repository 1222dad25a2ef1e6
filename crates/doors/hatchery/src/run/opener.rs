//! From the first look at both sides to loops that decide.

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::Mirror;
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

use super::about::About;
use super::earlier::EarlierTasks;
use super::lifecycle::Lifecycle;
use super::models::Models;
use super::others::OtherProcesses;
use super::spawn::{self, Spawner};
use super::worker_setup::WorkerSetup;
use super::workers::Workers;
use crate::door::HATCHERY;

pub(super) const OPENING: &str = "opening";
const PAUSE: Duration = Duration::from_secs(10);
/// A CDN that CDS cannot name is asked for again at this interval.
const CDN_PAUSE: Duration = Duration::from_secs(2);
/// Tasks of an earlier process get ten minutes, and what they did half a minute each to be seen.
const OPEN_WITHIN: Duration = Duration::from_mins(30);

/// Lets the loops decide when everything was read once.
#[derive(Debug)]
pub(in crate::run) struct Opener {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) earlier: Arc<EarlierTasks>,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) models: Arc<Models>,
    pub(in crate::run) processes: Arc<OtherProcesses>,
    pub(in crate::run) setup: Arc<WorkerSetup>,
    pub(in crate::run) spawner: Arc<Spawner>,
    pub(in crate::run) workers: Arc<Workers>,
}

/// Reads everything once, then lets the loops decide.
pub(super) async fn open(opener: Arc<Opener>, tasks: Arc<Tasks>) {
    tasks.rest(OPENING);
    while !opener.mirror.wait_complete(Duration::from_mins(1)).await {
        tracing::info!("still reading the inventory");
    }
    tasks.beat(OPENING, OPEN_WITHIN + opener.about.patience());
    while let Err(error) = opener.earlier.wait().await {
        tracing::warn!("the vCenter's tasks are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, OPEN_WITHIN + opener.about.patience());
    }
    tasks.beat(OPENING, opener.about.patience());
    while let Err(error) = opener.workers.read().await {
        tracing::warn!("the workers are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, opener.about.patience());
    }
    while let Err(error) = opener.models.read().await {
        tracing::warn!("the worker models are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, opener.about.patience());
    }
    learn_cdn(&opener, &tasks).await;
    let (vms, own) = {
        let snapshot = opener.mirror.snapshot();
        (snapshot.len(), snapshot.owned_by(HATCHERY, opener.about.hatchery()).count())
    };
    tracing::info!(hatchery = opener.about.hatchery(), vms, own, "open for jobs");
    // What is there by now is what an earlier process left; what comes from another one after this shows that it is at work.
    tasks.beat(OPENING, opener.about.patience());
    if opener.processes.ask_earlier().await.is_none() {
        // Before anybody decides about them.
        spawn::adopt(&opener.spawner, &tasks);
    }
    opener.lifecycle.set_open();
}

/// What the configuration leaves open about the CDN is asked of CDS. An API without one says so, and workers then get none.
async fn learn_cdn(opener: &Opener, tasks: &Tasks) {
    let known = opener.setup.cdn();
    if !known.http_url.is_empty() && !known.tcp_url.is_empty() {
        return;
    }
    loop {
        tasks.beat(OPENING, opener.about.patience());
        match opener.cds.cdn_config().await {
            Ok(told) => {
                opener.setup.learn_cdn(told);
                return;
            }
            Err(error) if error.is_gone() => {
                tracing::warn!("CDS has no CDN service; workers are told of none");
                return;
            }
            Err(error) => {
                tracing::warn!("the CDN is asked for again in {CDN_PAUSE:?}: {}", Chain(&error));
                sleep(CDN_PAUSE).await;
            }
        }
    }
}
