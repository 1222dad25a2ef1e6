//! Our own VMs, each with what it goes through and why it stays or goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use roost_cds::{JobId, WorkerStatus};
use roost_fleet::{Decision, Phase, Query, Snapshot, Subject, VmId};

use super::super::holding::{is_leaving, own_annotation};
use super::super::scheduler::SchedulerState;
use super::StateReader;
use super::view::{JobState, Stage, Vm, VmDetail, VmKind};
use crate::annotation::{Annotation, OtherKeys};
use crate::door::{HATCHERY, phase};
use crate::names::VmName;
use crate::retire::{Keep, Verdict};

/// What all VMs of one view are held against.
pub(super) struct WorkerFacts<'a> {
    reader: &'a StateReader,
    /// The last reading, believed or not.
    known: BTreeMap<&'a str, (WorkerStatus, Option<JobId>)>,
}

impl StateReader {
    pub(super) fn vms(&self) -> Vec<Vm> {
        let snapshot = self.mirror.snapshot();
        let lists = self.workers.latest().unwrap_or_default();
        let facts = WorkerFacts::new(self, &lists);
        let fates = self.fates(&snapshot);
        let scheduler = self.scheduler.lock();
        let ours = snapshot.owned_by(HATCHERY, self.about.hatchery());
        let views = ours.filter_map(|vm| facts.view(vm, fates.get(&vm.id), &scheduler));
        let mut vms: Vec<Vm> = views.collect();
        drop(scheduler);
        vms.sort_by(|a, b| a.name.cmp(&b.name));
        vms
    }

    /// One of our own by its name or id.
    pub(super) fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        let snapshot = self.mirror.snapshot();
        let row = find(&snapshot, self.about.hatchery(), name_or_id)?;
        let annotation = own_annotation(row, self.about.hatchery())?;
        let lists = self.workers.latest().unwrap_or_default();
        let fates = self.fates(&snapshot);
        let vm =
            WorkerFacts::new(self, &lists).view(row, fates.get(&row.id), &self.scheduler.lock())?;
        let known = Annotation { others: OtherKeys::default(), ..(*annotation).clone() };
        let timeline = self.timelines.of(&vm.name).map(|line| line.steps).unwrap_or_default();
        let decisions = self.decisions_on(&vm.id);
        Some(VmDetail { vm, annotation: known.to_string(), timeline, decisions })
    }

    /// What the machine of this name goes through at this moment.
    pub(super) fn phase_of(&self, machine: &str) -> Option<(Phase, Timestamp)> {
        let timeline = self.timelines.of(machine)?;
        let mut newest = timeline.steps.iter().rev();
        newest.find(|step| step.ended.is_none()).map(|step| (step.phase, step.began))
    }

    /// What becomes of each VM of ours. Locks the scheduler for itself.
    fn fates(&self, snapshot: &Snapshot) -> BTreeMap<VmId, Verdict> {
        let all = self.judge.fates(snapshot, self.about.now()).into_iter();
        all.map(|fate| (fate.vm.id.clone(), fate.verdict)).collect()
    }

    fn decisions_on(&self, vm: &VmId) -> Vec<Arc<Decision>> {
        let mut all = self.recorder.journal.find(&Query::default());
        all.retain(|decision| {
            decision.vm.as_ref() == Some(vm) || decision.subject == Subject::vm(vm)
        });
        all
    }
}

/// Several VMs may have one name, in several folders; one that still works is meant before one that leaves.
fn find<'a>(
    snapshot: &'a Snapshot,
    hatchery: &str,
    name_or_id: &'a str,
) -> Option<&'a Arc<roost_fleet::Vm>> {
    let is_ours = |vm: &&Arc<roost_fleet::Vm>| own_annotation(vm, hatchery).is_some();
    let named = snapshot.named(name_or_id).filter(is_ours);
    named
        .min_by_key(|vm| own_annotation(vm, hatchery).is_some_and(|own| own.doomed.is_some()))
        .or_else(|| snapshot.vm(&VmId::new(name_or_id)).filter(is_ours))
}

impl<'a> WorkerFacts<'a> {
    /// How far a VM of ours is with its job.
    pub(super) fn job_state(
        &self,
        vm: &roost_fleet::Vm,
        annotation: &Annotation,
        scheduler: &SchedulerState,
    ) -> JobState {
        let kind = kind(vm, annotation, scheduler);
        let (stage, _) = self.stage(vm, kind, self.status(&vm.name), scheduler);
        JobState::at(stage.unwrap_or(Stage::Ordered))
    }

    pub(super) fn new(
        reader: &'a StateReader,
        lists: &'a super::super::workers::WorkerLists,
    ) -> Self {
        Self { reader, known: lists.by_name() }
    }

    pub(super) fn status(&self, worker: &str) -> Option<WorkerStatus> {
        self.known.get(worker).map(|(status, _)| *status)
    }

    fn view(
        &self,
        vm: &Arc<roost_fleet::Vm>,
        fate: Option<&Verdict>,
        scheduler: &SchedulerState,
    ) -> Option<Vm> {
        let annotation = own_annotation(vm, self.reader.about.hatchery())?;
        let kind = kind(vm, &annotation, scheduler);
        let worker_status = self.status(&vm.name);
        let (stage, stage_since) = self.stage(vm, kind, worker_status, scheduler);
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let model = filled(&annotation.worker_model_path);
        Some(Vm {
            id: vm.id.clone(),
            name: Arc::clone(&vm.name),
            kind,
            power: vm.power,
            stage,
            stage_since,
            job: vm.request().cloned(),
            model: model.or_else(|| filled(&annotation.vmware_model_path)),
            template: filled(&annotation.vmware_model_path),
            flavor: filled(&annotation.flavor),
            cpus: vm.cpus,
            memory_mb: vm.memory_mb,
            address: vm.guest.address.or_else(|| annotation.address()).or(vm.name_address),
            created: annotation.created.get().or(vm.created),
            started: annotation.worker_start_time.get(),
            worker_status,
            fate: fate.map(words).unwrap_or_default(),
        })
    }

    /// Where a VM is in its life, and with it the job that it is for.
    fn stage(
        &self,
        vm: &roost_fleet::Vm,
        kind: VmKind,
        status: Option<WorkerStatus>,
        scheduler: &SchedulerState,
    ) -> (Option<Stage>, Option<Timestamp>) {
        // Whoever waits for the registration may not have looked yet.
        let is_over = |phase| phase == phase::REGISTERING && status.is_some();
        let phase = self.reader.phase_of(&vm.name).filter(|(phase, _)| !is_over(*phase));
        if let Some((phase, since)) = phase {
            return (Some(Stage::In(phase)), Some(since));
        }
        // CDS forgets a worker when it has ended, as it did not know it before it began.
        let ended = scheduler.ended(&vm.name).filter(|_| status.is_none());
        if let (VmKind::Worker | VmKind::Registering, Some(ended)) = (kind, ended) {
            return (Some(Stage::Leaving), Some(ended));
        }
        let stage = match kind {
            VmKind::Leaving => Some(Stage::Leaving),
            VmKind::Worker | VmKind::Registering if status.is_some() => {
                Some(Stage::In(phase::WORKING))
            }
            VmKind::Worker | VmKind::Registering => Some(Stage::In(phase::REGISTERING)),
            VmKind::Building => Some(Stage::In(Phase::TEMPLATING)),
            VmKind::Spare | VmKind::Template => None,
        };
        (stage, None)
    }
}

fn kind(vm: &roost_fleet::Vm, annotation: &Annotation, scheduler: &SchedulerState) -> VmKind {
    let name = VmName::of(&vm.name);
    if annotation.doomed.is_some() {
        return VmKind::Leaving;
    }
    if vm.template {
        return VmKind::Template;
    }
    if name.is_spare() {
        return VmKind::Spare;
    }
    if annotation.model {
        return match name {
            VmName::Building { .. } => VmKind::Building,
            _ => VmKind::Template,
        };
    }
    if is_leaving(vm, annotation, scheduler.facts()) {
        return VmKind::Leaving;
    }
    if name == VmName::Registering || annotation.register_only {
        return VmKind::Registering;
    }
    VmKind::Worker
}

/// What becomes of a VM, for people.
fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Keep(keep) => match keep {
            Keep::Foreign => "stays: it is not ours",
            Keep::Busy => "stays: a step of ours is at work on it",
            Keep::Spare => "stays: its pool looks after it",
            Keep::Template => "stays: it is a template",
            Keep::WorkersUnknown => "stays: CDS has not said which workers it knows",
            Keep::Unreachable => "stays: the vCenter cannot say how it is",
            Keep::NoTimes => "stays: nothing says since when it is there",
        }
        .to_owned(),
        Verdict::Until(at, reason) => format!("stays until {at:.0}; then {reason}"),
        Verdict::AskEvents => "stays until its events say since when it is a worker".to_owned(),
        Verdict::Delete(reason) => format!("goes: {reason}"),
    }
}
