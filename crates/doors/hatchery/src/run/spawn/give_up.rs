//! When no worker comes of it: the VM says in its own annotation that it is to be deleted, and the job goes back. On a budget of its own,
//! because that of what failed is spent (W24).

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Decided, Draft, Hold, MachineError, NextLook, Pauses, VmId};
use roost_supervise::{Chain, Tasks};
use tokio::time::timeout;

use super::job_side::give_back;
use super::{NewWorker, tell};
use crate::metrics::Counted;
use crate::planted::{self, Bug};
use crate::run::spawn::Spawner;
use crate::time::elapsed;

const BUDGET: Duration = Duration::from_mins(5);
/// A clone whose answer was lost is looked out for this long: as long as the server may work at it.
const LOOKOUT: Duration = Duration::from_mins(15);

/// The worker was not launched: both sides are cleaned up at the same time.
pub(super) async fn give_up(
    spawner: &Arc<Spawner>,
    tasks: &Tasks,
    new: &NewWorker,
    left: Option<Hold>,
    error: &MachineError,
) {
    let why = Chain(error).to_string();
    if let MachineError::Unwanted { .. } = error {
        // Nobody's failure: there is no job to give back, and nobody to tell.
        spawner.scheduler.lock().attempts.uncount(&new.job.id);
        let draft = Draft::new(new.subject(), Decided::Skipped, why.clone());
        spawner
            .recorder
            .decide(left.iter().fold(draft, |draft, work| draft.vm(work.vm())), "unwanted");
        if let Some(work) = left {
            put_down(spawner, work, &why).await;
        }
        return;
    }
    record(spawner, new, left.as_ref().map(Hold::vm), &why, error.phase().as_str());
    let vm = async {
        match left {
            Some(work) => put_down(spawner, work, &why).await,
            None if error.outcome_unknown() => look_out(spawner, tasks, new, &why),
            None => {}
        }
    };
    tokio::join!(vm, hand_back(spawner, new, &why));
}

/// Counts and records a start that failed. `step` is from a closed set.
pub(super) fn record(
    spawner: &Spawner,
    new: &NewWorker,
    vm: Option<&VmId>,
    why: &str,
    step: &'static str,
) {
    spawner.metrics.counters.count(Counted::SpawningErrors);
    let reason = format!("attempt {}: {why}", new.attempt);
    let draft = Draft::new(new.subject(), Decided::Failed, reason).next_look(NextLook::OnChange);
    spawner.recorder.decide(vm.into_iter().fold(draft, Draft::vm), step);
}

/// Marks the VM and powers it off. The clean-up deletes it.
pub(super) async fn put_down(spawner: &Spawner, work: Hold, why: &str) {
    if planted::is(Bug::LeavesFailedWorkers) {
        return;
    }
    let vm = work.vm();
    let reason = format!("the start of its worker failed: {why}");
    let put_down = async {
        if let Err(error) = spawner.vms.mark_claimed(vm, &reason).await {
            tracing::warn!(%vm, "a VM is not marked for deletion: {}", Chain(&error));
        }
        match spawner.vms.machines.power_off(&work).await {
            Err(error) if !error.is_gone() => {
                tracing::warn!(%vm, "a VM is not powered off: {}", Chain(&error));
            }
            Err(_) | Ok(()) => {}
        }
    };
    if timeout(BUDGET, put_down).await.is_err() {
        tracing::warn!(%vm, "a VM is left to the clean-up as it is");
    }
    drop(work);
    spawner.signals.cleanup.notify_one();
}

/// Tells those who wait, and gives the job back if it is still ours and has no worker.
pub(super) async fn hand_back(spawner: &Spawner, new: &NewWorker, why: &str) {
    let job = &new.job.id;
    let mut pauses = Pauses::within(BUDGET);
    let handed_back = async {
        tell::of_failure(spawner, new, elapsed(new.begun, spawner.about.now()), why).await;
        loop {
            match give_back(spawner, job).await {
                Ok(_) => return,
                Err(error) if !pauses.pause().await => {
                    // CDS takes it back by itself: a booking ends after two minutes, a take after ten.
                    tracing::warn!(%job, "a job was not given back: {}", Chain(&error));
                    return;
                }
                Err(_) => {}
            }
        }
    };
    if timeout(BUDGET, handed_back).await.is_err() {
        tracing::warn!(%job, "a job was not given back in time");
    }
}

/// A VM may come yet, and nobody will use it: it is put down when it is seen.
fn look_out(spawner: &Arc<Spawner>, tasks: &Tasks, new: &NewWorker, why: &str) {
    let (spawner, new, why) = (Arc::clone(spawner), new.clone(), why.to_owned());
    tasks.aside("lookout", async move {
        if let Ok(work) =
            timeout(LOOKOUT, spawner.vms.machines.sight(spawner.vms.owner(), &new.worker)).await
        {
            spawner.vms.power_off_unwanted(&work).await;
            put_down(&spawner, work, &why).await;
        }
    });
}
