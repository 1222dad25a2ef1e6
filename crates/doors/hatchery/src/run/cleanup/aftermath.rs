//! What is owed to CDS when a worker's VM is gone.

use std::sync::Arc;

use roost_cds::v1::{ModelPath, SpawnError};
use roost_cds::{CallError, JobId, JobStatus};
use roost_fleet::{Decided, Draft};
use roost_supervise::Chain;

use crate::door::HATCHERY;
use crate::retire::{Aftermath, Reason};
use crate::run::about::About;
use crate::run::cleanup::Retirer;
use crate::run::recorder::Recorder;
use crate::run::scheduler::Scheduler;
use crate::run::signals::Signals;

/// Settles what is owed for a VM that is gone. What cannot be settled now is found again: a worker without a VM is set right, and CDS has
/// limits of its own for the rest.
pub(super) async fn settle(retirer: &Retirer, worker: &str, reason: &Reason, owed: Aftermath) {
    let Aftermath { release, report } = owed;
    if let Some(job) = release {
        let why = format!("the VM of worker {worker} was deleted: {reason}");
        if let Err(error) = retirer.returns.give_back(&job, worker, &why).await {
            tracing::warn!(%job, worker, "giving back a job failed: {}", Chain(&error));
        }
    }
    if let Some(model) = report
        && let Err(error) = report_unregistered(retirer, &model, worker).await
    {
        tracing::warn!(%model, worker, "reporting a registration failed: {}", Chain(&error));
    }
}

/// Gives jobs back to CDS whose VMs are gone.
#[derive(Debug)]
pub(in crate::run) struct JobReturns {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) signals: Arc<Signals>,
}

impl JobReturns {
    /// Gives a V2 job back whose worker's VM is gone, if CDS still counts on that worker: without that it stops the job for good (D23, W28).
    ///
    /// Releases are scarce, and CDS does not look whom one concerns. So the job must be in our name and under way, no other worker at
    /// it, and no VM of ours for it, seen or promised: it may have been started anew since. Returns whether it was given back.
    pub(in crate::run) async fn give_back(
        &self,
        job: &JobId,
        worker: &str,
        why: &str,
    ) -> Result<bool, CallError> {
        let (Some(client), JobId::V2(id)) = (self.cds.v2(), job) else { return Ok(false) };
        let seen = match client.job(id).await {
            Ok(info) => info.run_job,
            Err(error) if error.is_gone() => return Ok(false),
            Err(error) => return Err(error),
        };
        let is_under_way = matches!(seen.status, JobStatus::Scheduling | JobStatus::Building);
        let is_ours = seen.hatchery_name == self.about.hatchery();
        let has_other = !seen.worker_name.is_empty() && seen.worker_name != worker;
        let has_machine = self
            .scheduler
            .lock()
            .ledger
            .lock()
            .has_machine(&HATCHERY.request(id.as_str()), self.about.now());
        if !is_under_way || !is_ours || has_other || has_machine {
            return Ok(false);
        }
        client.release(id).await?;
        let subject = HATCHERY.about_request(id.as_str());
        self.recorder.decide(Draft::new(subject, Decided::Released, why.to_owned()), "vm-gone");
        self.signals.plan.notify_one();
        Ok(true)
    }
}

/// Tells the owner of a V1 model that its registration came to nothing, if it did.
async fn report_unregistered(
    retirer: &Retirer,
    path: &ModelPath,
    vm: &str,
) -> Result<(), CallError> {
    let Some(client) = retirer.cds.v1() else { return Ok(()) };
    match client.model(path).await {
        Ok(model) if model.need_registration => {
            let words = format!("the worker of {vm} ended without having registered the model");
            client.report_spawn_error(path, &SpawnError::new(words, None)).await
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_gone() => Ok(()),
        Err(error) => Err(error),
    }
}
