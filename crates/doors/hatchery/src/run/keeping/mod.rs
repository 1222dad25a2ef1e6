//! Keeps as many spares as the pools ask for: makes what is missing, finishes what an earlier process left half-made, takes away what is too much.
//!
//! ```text
//!   inventory, scheduler, models ──> spares::plan (pure) ──> reserve ──┬─> make    clone, boot, shut down
//!                                                                      ├─> finish          boot, shut down
//!                                                                      └─> remove  mark; the clean-up deletes
//! ```
//!
//! A spare is one by its name and annotation, ready when it is off. So nothing is lost with the process: a clone that nobody waits for any
//! more shows up as a spare that is on, and is finished.

mod look;
mod make;
mod source;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_fleet::{Mirror, PoolId, Reservation};
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

use self::look::{Work, look};
use super::about::About;
use super::lifecycle::Lifecycle;
use super::machine::WorkerVms;
use super::models::Models;
use super::others::OtherProcesses;
use super::recorder::Recorder;
use super::scheduler::Scheduler;
use super::signals::Signals;
use super::steer::Steering;
use crate::spares::{PoolStanding, Removal};
use crate::status::task;

/// What waits for room or for a whole view is looked at again after this long. It costs no call.
const SOON: Duration = Duration::from_secs(15);

/// Keeps the pools of spares.
#[derive(Debug)]
pub(in crate::run) struct PoolKeeper {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) models: Arc<Models>,
    pub(in crate::run) pool: PoolId,
    pub(in crate::run) processes: Arc<OtherProcesses>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) signals: Arc<Signals>,
    pub(in crate::run) standing: Arc<Mutex<Vec<PoolStanding>>>,
    pub(in crate::run) steering: Arc<Steering>,
    pub(in crate::run) vms: Arc<WorkerVms>,
}

/// Looks at every claim, at every tick, and when a template has been left alone for long enough.
pub(super) async fn keep(keeper: Arc<PoolKeeper>, tasks: Arc<Tasks>) {
    keeper.lifecycle.opened().await;
    loop {
        tasks.beat(task::PROVISIONING, keeper.about.patience());
        let (work, again) = look(&keeper);
        begin(&keeper, &tasks, work);
        tasks.beat(task::PROVISIONING, keeper.about.patience() + again);
        tokio::select! {
            biased;
            () = keeper.signals.spares.notified() => {}
            () = sleep(again) => {}
        }
    }
}

fn begin(keeper: &Arc<PoolKeeper>, tasks: &Tasks, work: Work) {
    for spare in work.make {
        let keeper = Arc::clone(keeper);
        tasks.errand("spare", async move { make::make(&keeper, spare).await });
    }
    for vm in work.finish {
        let Some(at_work) = keeper.vms.at_work(&vm) else { continue };
        let keeper = Arc::clone(keeper);
        tasks.errand("spare", async move { make::finish(&keeper, at_work).await });
    }
    for (reservation, removal) in work.remove {
        let keeper = Arc::clone(keeper);
        tasks.errand("spare-removal", async move { remove(&keeper, reservation, removal).await });
    }
}

/// Marks a spare for deletion. The reservation keeps jobs from claiming it meanwhile (W17).
async fn remove(keeper: &PoolKeeper, mut reservation: Reservation, removal: Removal) {
    let Some(vm) = reservation.spare().cloned() else { return };
    let Some(_at_work) = keeper.vms.at_work(&vm) else { return };
    reservation.submitted();
    match keeper.vms.mark(&vm, removal.as_str()).await {
        Ok(()) => keeper.signals.cleanup.notify_one(),
        Err(error) => {
            tracing::warn!(%vm, "marking a spare that goes failed: {}", Chain(&error));
        }
    }
    // The VM says itself by now what it is, or it is still the spare that it was.
    reservation.release();
}
