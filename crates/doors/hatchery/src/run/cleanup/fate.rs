use std::sync::Arc;

use jiff::Timestamp;
use roost_fleet::{Connection, Snapshot, Vm};

use super::deletions::Deletions;
use crate::door::HATCHERY;
use crate::planted::{self, Bug};
use crate::retire::{Aftermath, Events, Reason, Subject, Verdict, WorkerSeen, aftermath, judge};
use crate::run::about::About;
use crate::run::holding::own_annotation;
use crate::run::scheduler::Scheduler;
use crate::run::workers::{WorkerLists, Workers};

/// What becomes of a VM of ours, as far as it alone is concerned.
#[derive(Debug, Clone)]
pub(crate) struct Fate {
    pub(crate) vm: Arc<Vm>,
    pub(crate) verdict: Verdict,
    /// What is owed to CDS once it is gone.
    pub(super) aftermath: Aftermath,
}

/// Judges VMs of ours. It cannot change any.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) workers: Arc<Workers>,
    pub(in crate::run) deletions: Arc<Deletions>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
}

impl Judge {
    /// The fate of each VM of ours, templates included, by what is known at this moment. Makes no call.
    pub(crate) fn fates(&self, snapshot: &Snapshot, now: Timestamp) -> Vec<Fate> {
        let lists = self.workers.believed().ok();
        let workers = lists.as_deref().map(WorkerLists::by_name);
        let going = self.deletions.under_way();
        let scheduler = self.scheduler.lock();
        let judged = snapshot.owned_by(HATCHERY, self.about.hatchery()).filter_map(|vm| {
            let annotation = own_annotation(vm, self.about.hatchery())?;
            let worker = match workers.as_ref().map(|workers| workers.get(&*vm.name)) {
                None => WorkerSeen::Unknown,
                Some(None) => WorkerSeen::Absent,
                Some(Some((status, job))) => {
                    WorkerSeen::Registered { status: *status, job: job.clone() }
                }
            };
            let known = self.deletions.events_of(&vm.id, vm.power);
            let subject = Subject {
                name: &vm.name,
                annotation: &annotation,
                is_template: vm.template,
                power: vm.power,
                is_connected: vm.connection == Connection::Connected,
                worker,
                created: vm.created,
                is_busy: scheduler.is_busy(&vm.id),
                events: known.map_or(Events::NotAsked, Events::Known),
            };
            // One that is being deleted stays what it was: it would be busy, or off, because of that.
            let verdict = match going.get(&vm.id) {
                Some(reason) => Verdict::Delete(reason.clone()),
                None => judge(&subject, self.about.hatchery(), &self.about.config.lifetimes, now),
            };
            Some(Fate { vm: Arc::clone(vm), verdict, aftermath: aftermath(&subject) })
        });
        judged.collect()
    }
}

impl Fate {
    pub(super) fn reason(&self) -> Option<&Reason> {
        match &self.verdict {
            Verdict::Delete(Reason::Marked { .. } | Reason::PutDown { .. })
                if planted::is(Bug::ForgetsMarked) =>
            {
                None
            }
            Verdict::Until(_, reason) if planted::is(Bug::DeletesUnguarded) => Some(reason),
            Verdict::Delete(reason) => Some(reason),
            Verdict::Keep(_) | Verdict::Until(..) | Verdict::AskEvents => None,
        }
    }
}
