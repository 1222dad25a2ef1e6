//! Workers that never came. That a worker is not in a list may be the list's fault, so CDS is asked about the very job that the VM is for.
//!
//! When CDS says that the job has no worker of that VM, the VM is given up: it is marked, as after any other start that failed. When CDS
//! knows nothing of the job either, its absence from a list with others in it counts (the guard sees to how many at a time), and if the list is
//! empty, the time that it had.

use std::sync::Arc;

use roost_cds::{CallError, JobId, JobStatus};
use roost_fleet::{Basis, Decided, Draft, Vm};
use roost_supervise::{Chain, Tasks};

use super::deletions::Absence;
use super::fate::Fate;
use crate::door::HATCHERY;
use crate::retire::Reason;
use crate::run::cleanup::Retirer;
use crate::run::holding::own_annotation;
use crate::status::task;

/// At one look, so that many such VMs do not become a burst of calls. The rest is asked about at the next.
const AT_ONCE: usize = 20;

const STAYS_ON: &str = "its job is over and its guest has not shut down";

/// What CDS says of the job that a VM is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// It is over, or has no worker, or another.
    NotAtWork {
        is_over: bool,
    },
    /// There is no such job, or none that the VM is for.
    Nothing,
    MayBeAtWork,
}

/// Asks CDS about VMs whose workers never came, and gives up those that surely have none.
pub(super) async fn confirm_absent(retirer: &Arc<Retirer>, tasks: &Tasks) {
    let now = retirer.about.now();
    let Ok(lists) = retirer.workers.believed() else { return };
    let judged = retirer.judge.fates(&retirer.mirror.snapshot(), now).into_iter();
    let absent = judged.filter(|fate| fate.reason().map(Reason::basis) == Some(Basis::Absent));
    let absent: Vec<Fate> = absent.take(AT_ONCE).collect();
    retirer.deletions.keep_absent(|vm| absent.iter().any(|fate| fate.vm.id == *vm));
    for fate in absent {
        let vm = &fate.vm;
        tasks.beat(task::CLEANUP, retirer.about.patience());
        match ask_about(retirer, vm).await {
            Ok(Word::NotAtWork { is_over }) => give_up(retirer, tasks, &fate, is_over),
            Ok(Word::Nothing) => {
                let is_empty = lists.len() == 0;
                let absence = if is_empty { Absence::FromEmptyList } else { Absence::FromList };
                retirer.deletions.note_absent(&vm.id, absence, retirer.about.now());
            }
            Ok(Word::MayBeAtWork) => retirer.deletions.may_be_at_work(&vm.id),
            Err(error) => {
                retirer.deletions.may_be_at_work(&vm.id);
                tracing::warn!(
                    vm = %vm.id,
                    "CDS could not be asked about the job of {}: {}",
                    vm.name,
                    Chain(&error)
                );
            }
        }
    }
}

async fn ask_about(retirer: &Retirer, vm: &Vm) -> Result<Word, CallError> {
    let job = own_annotation(vm, retirer.about.hatchery()).and_then(|own| own.job());
    let (answer, is_its) = match (job, retirer.cds.v1(), retirer.cds.v2()) {
        (Some(JobId::V1(number)), Some(client), _) => match client.job(number).await {
            // Whoever is at work on it may be this one if CDS does not say.
            Ok(job) => (Ok(job.status), job.worker().is_none_or(|name| *name == *vm.name)),
            Err(error) => (Err(error), true),
        },
        (Some(JobId::V2(id)), _, Some(client)) => match client.job(&id).await {
            Ok(info) => (Ok(info.run_job.status), *info.run_job.worker_name == *vm.name),
            Err(error) => (Err(error), true),
        },
        (Some(_), ..) => return Ok(Word::MayBeAtWork),
        (None, ..) => return Ok(Word::Nothing),
    };
    match answer {
        Ok(JobStatus::Building) if is_its => Ok(Word::MayBeAtWork),
        Ok(status) => Ok(Word::NotAtWork { is_over: status.is_final() }),
        Err(error) if error.is_gone() => Ok(Word::Nothing),
        Err(error) => Err(error),
    }
}

/// Marks the VM. Nothing is said of a job that is over: its worker came and went.
fn give_up(retirer: &Arc<Retirer>, tasks: &Tasks, fate: &Fate, is_over: bool) {
    let Some((reason, at_work)) = fate.reason().zip(retirer.vms.at_work(&fate.vm.id)) else {
        return;
    };
    let why = if is_over { STAYS_ON.to_owned() } else { reason.to_string() };
    let (label, vm) = (reason.as_str(), Arc::clone(&fate.vm));
    let retirer = Arc::clone(retirer);
    tasks.errand("giving-up", async move {
        if let Err(error) = retirer.vms.mark_claimed(&vm.id, &why).await {
            tracing::warn!(vm = %vm.id, "a VM is not marked for deletion: {}", Chain(&error));
        } else if let Some(job) = vm.request().filter(|_| !is_over) {
            let subject = HATCHERY.about_request(Arc::clone(job));
            let words = format!("{}: {why}", vm.name);
            retirer.recorder.decide(Draft::new(subject, Decided::Failed, words).vm(&vm.id), label);
        }
        drop(at_work);
        retirer.signals.cleanup.notify_one();
    });
}
