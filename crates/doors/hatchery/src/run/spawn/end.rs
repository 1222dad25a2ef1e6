//! V2 workers that end without a result. CDS strikes such a worker off its list within seconds and stops its job for good at the next full minute,
//! so the job is given back as soon as the VM is off, without waiting for the clean-up.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::JobId;
use roost_fleet::{Check, Pauses, Power, Vm, VmId};
use roost_supervise::{Chain, Tasks};

use crate::run::spawn::Spawner;

/// The VM is waited for as long as it lives.
const NO_END: Duration = Duration::from_hours(24 * 7);
/// How long it is tried to give the job back.
const ASKING: Duration = Duration::from_mins(5);
const WHY: &str = "its worker ended without a result";

/// Waits beside everything else for the end of a worker that CDS knows. Nothing is to be done for a V1 job: CDS fails it.
pub(super) fn watch_end(
    spawner: &Arc<Spawner>,
    tasks: &Tasks,
    vm: &VmId,
    worker: &Arc<str>,
    job: &JobId,
) {
    if !matches!(job, JobId::V2(_)) {
        return;
    }
    let (spawner, vm) = (Arc::clone(spawner), vm.clone());
    let (worker, job) = (Arc::clone(worker), job.clone());
    tasks.aside("worker-end", async move {
        if is_off(&spawner, &vm).await {
            rescue(&spawner, &vm, &worker, &job).await;
        }
    });
}

/// `false` if the VM is gone: that it is may be the fault of an inventory, and the loop that sets CDS right looks several times.
async fn is_off(spawner: &Spawner, vm: &VmId) -> bool {
    let condition = |vm: Option<&Arc<Vm>>| match vm {
        None => Check::Met(false),
        Some(vm) if vm.power == Power::Off => Check::Met(true),
        Some(_) => Check::NotYet,
    };
    loop {
        if let Ok(is_off) = spawner.mirror.wait_until(vm, NO_END, condition).await {
            return is_off;
        }
    }
}

/// Gives the job back if CDS still counts on the worker. The VM first: what is off and marked holds up no other.
async fn rescue(spawner: &Arc<Spawner>, vm: &VmId, worker: &str, job: &JobId) {
    let JobId::V2(id) = job else { return };
    let mut pauses = Pauses::within(ASKING);
    loop {
        let done = async {
            let Some(client) = spawner.cds.v2() else { return Ok(()) };
            let seen = match client.job(id).await {
                Ok(info) => info.run_job,
                Err(error) if error.is_gone() => return Ok(()),
                Err(error) => return Err(error),
            };
            if seen.status.is_final() || seen.worker_name != worker {
                return Ok(());
            }
            // Whoever is at work on it settles its job as well.
            let Some(at_work) = spawner.vms.at_work(vm) else { return Ok(()) };
            if let Err(error) = spawner.vms.mark_claimed(vm, WHY).await {
                tracing::warn!(%vm, "a VM is not marked for deletion: {}", Chain(&error));
                return Ok(());
            }
            drop(at_work);
            let why = format!("worker {worker} ended without a result");
            spawner.returns.give_back(job, worker, &why).await.map(drop)
        };
        match done.await {
            Ok(()) => break,
            Err(error) if !pauses.pause().await => {
                tracing::warn!(%job, worker, "a job is not given back: {}", Chain(&error));
                break;
            }
            Err(_) => {}
        }
    }
    spawner.signals.cleanup.notify_one();
}
