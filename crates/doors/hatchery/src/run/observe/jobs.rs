//! Jobs as this hatchery knows them: those that it has heard of, those that it served, and those that its VMs say they are for.

use std::collections::BTreeMap;
use std::sync::Arc;

use roost_cds::JobId;
use roost_fleet::{Decided, Decision, Query, Snapshot, Subject};

use super::super::desk::Desk;
use super::super::holding::{is_leaving, own_annotation};
use super::super::jobs::{Entry, Served, State};
use super::super::nest::Nest;
use super::view::{Job, JobDetail, JobState};
use super::vms::Beside;
use crate::annotation::Annotation;
use crate::door::HATCHERY;
use crate::job::ModelRequest;
use crate::plan::{Candidate, Choice};
use crate::time::elapsed;

impl Nest {
    pub(super) fn jobs(&self) -> Vec<Job> {
        let snapshot = self.mirror.snapshot();
        let lists = self.workers.latest().unwrap_or_default();
        let beside = Beside::new(self, &lists);
        let desk = self.desk();
        let mut jobs: BTreeMap<JobId, Job> = BTreeMap::new();
        for (id, entry) in desk.jobs.iter() {
            jobs.insert(id.clone(), self.heard(id, entry));
        }
        for served in desk.jobs.served().rev() {
            let id = &served.job.id;
            if !jobs.contains_key(id) {
                let state = self.state_of(served, &snapshot, &desk, &beside);
                jobs.insert(id.clone(), of_served(served, state));
            }
        }
        for vm in snapshot.owned_by(HATCHERY, self.hatchery()) {
            let Some(annotation) = own_annotation(vm, self.hatchery()) else { continue };
            let Some(id) = annotation.job().filter(|id| !jobs.contains_key(id)) else { continue };
            let job = of_own_vm(&id, vm, &annotation, &desk, &beside);
            jobs.insert(id, job);
        }
        drop(desk);
        let mut jobs: Vec<Job> = jobs.into_values().map(|job| self.with_verdict(job)).collect();
        jobs.sort_by(|a, b| (a.state, a.queued, &a.id).cmp(&(b.state, b.queued, &b.id)));
        jobs
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
        let beside = Beside::new(self, &lists);
        let desk = self.desk();
        let heard = desk.jobs.iter().find(|(known, _)| *known == id);
        let served = || desk.jobs.served().rev().find(|served| served.job.id == *id);
        let job = if let Some((id, entry)) = heard {
            self.heard(id, entry)
        } else if let Some(served) = served() {
            of_served(served, self.state_of(served, &snapshot, &desk, &beside))
        } else {
            let mut ours = snapshot.owned_by(HATCHERY, self.hatchery());
            ours.find_map(|vm| {
                let annotation = own_annotation(vm, self.hatchery())?;
                let is_its = annotation.job().is_some_and(|job| job == *id);
                is_its.then(|| of_own_vm(id, vm, &annotation, &desk, &beside))
            })?
        };
        drop(desk);
        Some(self.with_verdict(job))
    }

    fn heard(&self, id: &JobId, entry: &Entry) -> Job {
        match &entry.state {
            State::Named | State::Asked => bare(id, JobState::Waiting),
            State::Waiting(candidate) => self.of_candidate(candidate, JobState::Waiting, None),
            State::Starting { candidate, worker } => {
                self.of_candidate(candidate, JobState::Starting, Some(worker))
            }
        }
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
        desk: &Desk,
        beside: &Beside<'_>,
    ) -> JobState {
        let is_served = snapshot.named(&served.worker).any(|vm| {
            own_annotation(vm, self.hatchery())
                .is_some_and(|own| !is_leaving(vm, &own, desk.beside()))
        });
        of_vm(is_served, beside.status(&served.worker).is_some())
    }

    fn with_verdict(&self, mut job: Job) -> Job {
        // What held up a job that is on its way does so no more.
        let is_over = |decided: &Decision| {
            job.state == JobState::Starting && decided.verdict == Decided::Deferred
        };
        job.verdict = self.journal.latest(&subject(&job.id)).filter(|decided| !is_over(decided));
        let started = job.verdict.as_deref().and_then(started);
        job.waited_secs = job.queued.and_then(|queued| match (job.state, started) {
            (JobState::Waiting | JobState::Starting, _) => {
                Some(elapsed(queued, self.now()).as_secs())
            }
            (JobState::Running | JobState::Ended, started) => {
                started.map(|at| elapsed(queued, at).as_secs())
            }
        });
        job
    }
}

pub(super) fn subject(id: &JobId) -> Subject {
    HATCHERY.about_request(id.to_string())
}

fn started(verdict: &Decision) -> Option<jiff::Timestamp> {
    (verdict.verdict == Decided::Spawned).then_some(verdict.since)
}

fn of_vm(serves: bool, is_registered: bool) -> JobState {
    match (serves, is_registered) {
        (true, true) => JobState::Running,
        (true, false) => JobState::Starting,
        (false, _) => JobState::Ended,
    }
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
    desk: &Desk,
    beside: &Beside<'_>,
) -> Job {
    let serves = !is_leaving(vm, annotation, desk.beside());
    let state = of_vm(serves, beside.status(&vm.name).is_some());
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
