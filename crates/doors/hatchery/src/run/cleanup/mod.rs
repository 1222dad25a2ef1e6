//! Deletes what has served, and sets CDS right about what is gone.
//!
//! ```text
//!   inventory, workers ──> retire::judge (pure) ──> guard ──> delete ──> what is owed to CDS
//! ```
//!
//! A VM is judged by what it says itself, by its power, and by what CDS knows of its worker. The guard wants it seen twice on whole and
//! fresh views of both sides and keeps deletions within their budgets; beyond them it freezes until a person has looked.

mod aftermath;
mod confirm;
mod delete;
mod deletions;
mod events;
mod fate;
mod pass;
mod set_right;

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::Mirror;
use roost_supervise::{Chain, Tasks};
use roost_vim::Observer;
use tokio::time::sleep;

use super::about::About;
use super::lifecycle::Lifecycle;
use super::machine::WorkerVms;
use super::others::OtherProcesses;
use super::recorder::Recorder;
use super::signals::Signals;
use super::steer::Steering;
use super::workers::Workers;
use crate::metrics::Metrics;
use crate::planted::{self, Bug};
use crate::status::task;

pub(super) use self::aftermath::JobReturns;
pub(crate) use self::deletions::Deletions;
pub(crate) use self::fate::Judge;
pub(super) use self::set_right::{Corrector, keep_right};

/// How often it is looked whether another process of our name is still at work. It costs no call.
const STANDS_BY: Duration = Duration::from_secs(10);

/// Deletes VMs that have served, through the guard.
#[derive(Debug)]
pub(in crate::run) struct Retirer {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) deletions: Arc<Deletions>,
    pub(in crate::run) judge: Arc<Judge>,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) metrics: Arc<Metrics>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) processes: Arc<OtherProcesses>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) returns: Arc<JobReturns>,
    pub(in crate::run) signals: Arc<Signals>,
    pub(in crate::run) steering: Arc<Steering>,
    pub(in crate::run) vcenter: Observer,
    pub(in crate::run) vms: Arc<WorkerVms>,
    pub(in crate::run) workers: Arc<Workers>,
}

/// Looks at every tick, when a VM was marked, and when what was seen once can be seen again.
pub(super) async fn keep_clean(retirer: Arc<Retirer>, tasks: Arc<Tasks>) {
    retirer.lifecycle.opened().await;
    let mut asks = true;
    loop {
        tasks.beat(task::CLEANUP, retirer.about.patience());
        if planted::is(Bug::CleanupHangs) {
            return std::future::pending().await;
        }
        if retirer.processes.look().is_some() {
            tasks.beat(task::CLEANUP, retirer.about.patience() + STANDS_BY);
            sleep(STANDS_BY).await;
            continue;
        }
        if asks {
            // A list that could not be read is known as such, and refuses.
            if let Err(error) = retirer.workers.read().await {
                tracing::warn!("the clean-up could not read the workers: {}", Chain(&error));
            }
            events::learn_events(&retirer, &tasks).await;
            confirm::confirm_absent(&retirer, &tasks).await;
        }
        let again = pass::pass(&retirer, &tasks);
        tasks.beat(task::CLEANUP, retirer.about.patience() + again);
        asks = tokio::select! {
            biased;
            () = retirer.signals.cleanup.notified() => true,
            // What may go was decided already: the next one of a long row needs no new question to CDS.
            () = retirer.deletions.has_room() => false,
            () = sleep(again) => true,
        };
    }
}
