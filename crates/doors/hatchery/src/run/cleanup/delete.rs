use std::sync::Arc;

use roost_cds::JobId;
use roost_fleet::{Decided, Draft, Hold, NextLook, Subject, Vm};
use roost_supervise::Chain;

use super::aftermath::settle;
use super::deletions::UnderWay;
use crate::annotation::Annotation;
use crate::door::HATCHERY;
use crate::retire::{Aftermath, Reason};
use crate::run::cleanup::Retirer;

/// A VM that the guard lets go.
#[derive(Debug)]
pub(super) struct Deletion {
    pub(super) vm: Arc<Vm>,
    pub(super) reason: Reason,
    pub(super) aftermath: Aftermath,
    /// What is recorded when it is gone.
    pub(super) record: Draft,
    pub(super) at_work: Hold,
    pub(super) under_way: UnderWay,
}

/// Deletes a VM and settles what is owed for it. A failure concerns this VM only, and is tried again later (W22).
pub(super) async fn delete(retirer: &Retirer, deletion: Deletion) {
    let Deletion { vm, reason, aftermath, record, at_work, under_way } = deletion;
    if let Err(error) = retirer.vms.machines.destroy(&at_work).await {
        let until = retirer.deletions.failed(&vm.id, retirer.about.now());
        let words = format!("deleting {} failed: {}", vm.name, Chain(&error));
        let draft = Draft::new(Subject::vm(&vm.id), Decided::Failed, words);
        retirer.recorder.decide(draft.vm(&vm.id).next_look(NextLook::At(until)), "deletion");
        drop((at_work, under_way));
        retirer.signals.cleanup.notify_one();
        return;
    }
    drop(at_work);
    retirer.metrics.own.deleted(reason.as_str());
    retirer.recorder.decide(record, reason.as_str());
    note_finished(retirer, &vm, &reason);
    retirer.signals.plan.notify_one();
    retirer.signals.spares.notify_one();
    let owed = Aftermath {
        release: aftermath.release.or_else(|| left_waiting(&vm, &reason)),
        ..aftermath
    };
    settle(retirer, &vm.name, &reason, owed).await;
    drop(under_way);
}

/// The job that waits for a worker which never came. Whoever gave up on it gives it back; this is for when that did not work.
fn left_waiting(vm: &Vm, reason: &Reason) -> Option<JobId> {
    let never_came = match reason {
        Reason::Marked { .. }
        | Reason::PutDown { .. }
        | Reason::NeverRegistered
        | Reason::NeverStarted => true,
        Reason::Disabled
        | Reason::PoweredOff
        | Reason::Finished
        | Reason::TooOld
        | Reason::BuildAbandoned => false,
    };
    job_of(vm).filter(|_| never_came)
}

fn job_of(vm: &Vm) -> Option<JobId> {
    Annotation::of(vm)?.job()
}

/// Says of the job that its worker has ended, unless something newer was said of it.
fn note_finished(retirer: &Retirer, vm: &Vm, reason: &Reason) {
    let has_ended = match reason {
        Reason::Finished | Reason::PoweredOff | Reason::Disabled => true,
        Reason::Marked { .. }
        | Reason::PutDown { .. }
        | Reason::TooOld
        | Reason::NeverRegistered
        | Reason::NeverStarted
        | Reason::BuildAbandoned => false,
    };
    let Some(job) = job_of(vm).filter(|_| has_ended) else { return };
    let subject = HATCHERY.about_request(job.to_string());
    let was_started = retirer.recorder.journal.latest(&subject).is_some_and(|latest| {
        latest.vm.as_ref() == Some(&vm.id)
            && matches!(latest.verdict, Decided::Spawned | Decided::Adopted)
    });
    if was_started {
        let words = format!("worker {} has ended and its VM is gone", vm.name);
        retirer
            .recorder
            .decide(Draft::new(subject, Decided::Finished, words).vm(&vm.id), reason.as_str());
    }
}
