//! Jobs as this hatchery knows them: those that it has heard of, those that it served, and those that its VMs say they are for.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use roost_cds::JobId;
use roost_fleet::{Decided, Decision, Ended, Query, Snapshot, Subject};

use super::super::context::Context;
use super::super::holding::own_annotation;
use super::super::jobs::{Entry, Served, State};
use super::super::scheduler::SchedulerState;
use super::view::{Job, JobDetail, JobState};
use super::vms::WorkerFacts;
use crate::annotation::Annotation;
use crate::door::{HATCHERY, phase};
use crate::job::ModelRequest;
use crate::plan::{Candidate, Choice};
use crate::time::{elapsed, later};

impl Context {
    pub(super) fn jobs(&self) -> Vec<Job> {
        let snapshot = self.mirror.snapshot();
        let lists = self.workers.latest().unwrap_or_default();
        let facts = WorkerFacts::new(self, &lists);
        let scheduler = self.scheduler();
        let mut jobs: BTreeMap<JobId, Job> = BTreeMap::new();
        for (id, entry) in scheduler.jobs.iter() {
            let mut job = self.heard(id, entry);
            self.stand_at_vm(&mut job, &snapshot, &scheduler, &facts);
            jobs.insert(id.clone(), job);
        }
        for served in scheduler.jobs.served().rev() {
            let id = &served.job.id;
            if !jobs.contains_key(id) {
                let state = self.state_of(served, &snapshot, &scheduler, &facts);
                jobs.insert(id.clone(), of_served(served, state));
            }
        }
        for vm in snapshot.owned_by(HATCHERY, self.hatchery()) {
            let Some(annotation) = own_annotation(vm, self.hatchery()) else { continue };
            let Some(id) = annotation.job().filter(|id| !jobs.contains_key(id)) else { continue };
            let job = of_own_vm(&id, vm, &annotation, &scheduler, &facts);
            jobs.insert(id, job);
        }
        drop(scheduler);
        let mut jobs: Vec<Job> = jobs.into_values().map(|job| self.with_verdict(job)).collect();
        jobs.sort_by(|a, b| (a.state, a.queued, &a.id).cmp(&(b.state, b.queued, &b.id)));
        jobs
    }

    /// How those of [`Self::jobs`] stand that do not wait, without making any of them.
    pub(super) fn job_states(&self) -> Vec<JobState> {
        let snapshot = self.mirror.snapshot();
        let lists = self.workers.latest().unwrap_or_default();
        let facts = WorkerFacts::new(self, &lists);
        let scheduler = self.scheduler();
        let (mut known, mut states) = (HashSet::new(), Vec::new());
        for (id, entry) in scheduler.jobs.iter() {
            known.insert(id.clone());
            if let State::Starting { worker, .. } = &entry.state {
                let its = self.worker_state(worker, &snapshot, &scheduler, &facts);
                states.push(its.unwrap_or(JobState::Starting));
            }
        }
        for served in scheduler.jobs.served().rev() {
            if known.insert(served.job.id.clone()) {
                states.push(self.state_of(served, &snapshot, &scheduler, &facts));
            }
        }
        for vm in snapshot.owned_by(HATCHERY, self.hatchery()) {
            let Some(annotation) = own_annotation(vm, self.hatchery()) else { continue };
            if annotation.job().is_some_and(|id| known.insert(id)) {
                states.push(facts.job_state(vm, &annotation, &scheduler));
            }
        }
        states
    }

    /// A job and everything that was decided about it. `None` if nothing is known about it.
    pub(super) fn explain(&self, id: &str) -> Option<JobDetail> {
        let id = JobId::parse(id.trim())?;
        let decisions = self.journal.find(&Query::of(subject(&id)));
        let known = self.job(&id);
        let forgotten = || {
            // It waits no more, or was never ours to start; what was decided still says why.
            decisions.last().map(|_| self.with_verdict(bare(&id, JobState::Ended)))
        };
        let job = known.or_else(forgotten)?;
        let vm = job.worker.as_ref().and_then(|worker| self.vm(worker));
        Some(JobDetail { job, decisions, vm })
    }

    /// One of [`Self::jobs`], without making the others.
    fn job(&self, id: &JobId) -> Option<Job> {
        let snapshot = self.mirror.snapshot();
        let lists = self.workers.latest().unwrap_or_default();
        let facts = WorkerFacts::new(self, &lists);
        let scheduler = self.scheduler();
        let heard = scheduler.jobs.iter().find(|(known, _)| *known == id);
        let served = || scheduler.jobs.served().rev().find(|served| served.job.id == *id);
        let job = if let Some((id, entry)) = heard {
            let mut job = self.heard(id, entry);
            self.stand_at_vm(&mut job, &snapshot, &scheduler, &facts);
            job
        } else if let Some(served) = served() {
            of_served(served, self.state_of(served, &snapshot, &scheduler, &facts))
        } else {
            let mut ours = snapshot.owned_by(HATCHERY, self.hatchery());
            ours.find_map(|vm| {
                let annotation = own_annotation(vm, self.hatchery())?;
                let is_its = annotation.job().is_some_and(|job| job == *id);
                is_its.then(|| of_own_vm(id, vm, &annotation, &scheduler, &facts))
            })?
        };
        drop(scheduler);
        Some(self.with_verdict(job))
    }

    pub(super) fn heard(&self, id: &JobId, entry: &Entry) -> Job {
        match &entry.state {
            State::Named | State::Asked => bare(id, JobState::Waiting),
            State::Waiting(candidate) => self.of_candidate(candidate, JobState::Waiting, None),
            State::Starting { candidate, worker } => {
                self.of_candidate(candidate, JobState::Starting, Some(worker))
            }
        }
    }

    /// One that is being started stands where its VM does, as soon as that is seen.
    fn stand_at_vm(
        &self,
        job: &mut Job,
        snapshot: &Snapshot,
        scheduler: &SchedulerState,
        facts: &WorkerFacts<'_>,
    ) {
        let worker = job.worker.as_ref().filter(|_| job.state == JobState::Starting);
        let state = worker.and_then(|it| self.worker_state(it, snapshot, scheduler, facts));
        job.state = state.unwrap_or(job.state);
    }

    /// How far the VM of a worker is with its job. `None` while it is not seen.
    fn worker_state(
        &self,
        worker: &str,
        snapshot: &Snapshot,
        scheduler: &SchedulerState,
        facts: &WorkerFacts<'_>,
    ) -> Option<JobState> {
        snapshot.named(worker).find_map(|vm| {
            let own = own_annotation(vm, self.hatchery())?;
            Some(facts.job_state(vm, &own, scheduler))
        })
    }

    fn of_candidate(
        &self,
        candidate: &Candidate,
        state: JobState,
        worker: Option<&Arc<str>>,
    ) -> Job {
        let job = &*candidate.job;
        let (model, flavor) = match &candidate.model {
            Choice::Fixed(model) => {
                let flavor = self.config.flavors.resolve(model.flavor_wish(job)).ok().flatten();
                (Some(model.display_name()), flavor.map(|flavor| flavor.name.clone()))
            }
            Choice::AnyV1 | Choice::Refused(_) => (requested(&job.model), job.flavor.clone()),
        };
        Job {
            project: filled(&job.project),
            workflow: filled(&job.workflow),
            queued: job.queued,
            model,
            flavor,
            worker: worker.cloned(),
            ..bare(&job.id, state)
        }
    }

    fn state_of(
        &self,
        served: &Served,
        snapshot: &Snapshot,
        scheduler: &SchedulerState,
        facts: &WorkerFacts<'_>,
    ) -> JobState {
        let its = self.worker_state(&served.worker, snapshot, scheduler, facts);
        its.unwrap_or(JobState::Ended)
    }

    pub(super) fn with_verdict(&self, mut job: Job) -> Job {
        // What held up a job that is on its way does so no more.
        let is_over = |decided: &Decision| {
            let has_vm = !matches!(job.state, JobState::Waiting | JobState::Ended);
            has_vm && decided.verdict == Decided::Deferred
        };
        job.verdict = self.journal.latest(&subject(&job.id)).filter(|decided| !is_over(decided));
        let started = self.started(&job);
        job.waited_secs = job.queued.and_then(|queued| match (job.state, started) {
            (JobState::Waiting | JobState::Starting | JobState::Joining, _) => {
                Some(elapsed(queued, self.now()).as_secs())
            }
            (JobState::Running | JobState::Leaving | JobState::Ended, started) => {
                started.map(|at| elapsed(queued, at).as_secs())
            }
        });
        if matches!(job.state, JobState::Leaving | JobState::Ended)
            && let Some(worker) = job.worker.clone()
        {
            let began = self.began_work(&worker);
            job.ended = self.scheduler().ended(&worker);
            job.ran_secs =
                began.zip(job.ended).map(|(began, ended)| elapsed(began, ended).as_secs());
        }
        job
    }

    /// When its worker was started: also of one that is over, on which something else was said since.
    fn started(&self, job: &Job) -> Option<jiff::Timestamp> {
        let spawned = |decided: &&Arc<Decision>| decided.verdict == Decided::Spawned;
        if let Some(verdict) = job.verdict.as_ref().filter(spawned) {
            return Some(verdict.since);
        }
        if !matches!(job.state, JobState::Leaving | JobState::Ended) {
            return None;
        }
        let said = Query { verdict: Some(Decided::Spawned), ..Query::of(subject(&job.id)) };
        self.journal.find(&said).last().map(|decided| decided.since)
    }

    /// When CDS knew the worker.
    fn began_work(&self, worker: &str) -> Option<jiff::Timestamp> {
        let timeline = self.timelines.of(worker)?;
        let joined = timeline.steps.iter().rev().find(|step| step.phase == phase::REGISTERING)?;
        let took = std::time::Duration::from_millis(joined.took_ms?);
        (joined.ended == Some(Ended::Done)).then(|| later(joined.began, took))
    }
}

pub(super) fn subject(id: &JobId) -> Subject {
    HATCHERY.about_request(id.to_string())
}

fn of_served(served: &Served, state: JobState) -> Job {
    Job {
        project: filled(&served.job.project),
        workflow: filled(&served.job.workflow),
        queued: served.job.queued,
        model: filled(&served.model),
        flavor: served.flavor.clone(),
        worker: Some(Arc::clone(&served.worker)),
        ..bare(&served.job.id, state)
    }
}

fn of_own_vm(
    id: &JobId,
    vm: &roost_fleet::Vm,
    annotation: &Annotation,
    scheduler: &SchedulerState,
    facts: &WorkerFacts<'_>,
) -> Job {
    let state = facts.job_state(vm, annotation, scheduler);
    of_annotation(id, annotation, &vm.name, state)
}

fn of_annotation(id: &JobId, annotation: &Annotation, name: &Arc<str>, state: JobState) -> Job {
    Job {
        model: filled(&annotation.worker_model_path)
            .or_else(|| filled(&annotation.vmware_model_path)),
        flavor: filled(&annotation.flavor),
        worker: Some(Arc::clone(name)),
        ..bare(id, state)
    }
}

fn bare(id: &JobId, state: JobState) -> Job {
    Job {
        id: id.clone(),
        project: None,
        workflow: None,
        state,
        queued: None,
        waited_secs: None,
        model: None,
        flavor: None,
        worker: None,
        verdict: None,
        ended: None,
        ran_secs: None,
    }
}

/// What the job itself says about its model.
fn requested(model: &ModelRequest) -> Option<String> {
    match model {
        ModelRequest::Embedded { path, .. } => Some(path.clone()),
        ModelRequest::AsCode(path) => Some(path.to_string()),
        ModelRequest::Named(name) => Some(name.clone()),
        ModelRequest::Any => None,
    }
}

fn filled(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
