//! What an earlier process left half-way is taken up where it stands: the VM says for which job it is, CDS whether the job is still ours, and
//! the guest whether its worker was launched.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::v1::ModelPath;
use roost_cds::{CallError, JobId, JobStatus, v1};
use roost_fleet::{Decided, Draft, Hold, Pauses, Power, Vm};
use roost_supervise::{Chain, Tasks};

use super::NewWorker;
use super::end::watch_end;
use super::give_up::{give_up, hand_back, put_down, record};
use super::job_side::{Found, Standing, Taking, standing, take};
use super::launch_spec::prepare_launch;
use super::start::{Earlier, start_worker};
use super::watch::{Watched, watch};
use crate::annotation::Annotation;
use crate::door::HATCHERY;
use crate::job::Job;
use crate::metrics::Counted;
use crate::model::WorkerModel;
use crate::names::VmName;
use crate::plan::Choice;
use crate::refusal::Refusal;
use crate::run::holding::own_annotation;
use crate::run::spawn::Spawner;
use crate::time::elapsed;

/// How long CDS is asked about the job of a VM. Then the clean-up has it.
const ASKING: Duration = Duration::from_mins(5);

/// Goes to work on every VM whose worker CDS does not know yet, before anybody decides anything about it, and takes each up beside the others.
pub(in crate::run) fn adopt(spawner: &Arc<Spawner>, tasks: &Arc<Tasks>) {
    let snapshot = spawner.mirror.snapshot();
    let mut count = 0_usize;
    for vm in snapshot.owned_by(HATCHERY, spawner.about.hatchery()) {
        if let Some(job) = at_work(spawner, vm) {
            watch_end(spawner, tasks, &vm.id, &vm.name, &job);
        }
        let Some((annotation, job)) = unfinished(spawner, vm) else { continue };
        let Some(work) = spawner.vms.at_work(&vm.id) else { continue };
        count += 1;
        let vm = Arc::clone(vm);
        let (spawner, on) = (Arc::clone(spawner), Arc::clone(tasks));
        tasks.errand("adoption", async move {
            let adoption =
                Adoption { spawner: &spawner, tasks: &on, vm: &vm, annotation: &annotation, job };
            Box::pin(adoption.take_up(work)).await;
        });
    }
    if count > 0 {
        tracing::info!(count, "VMs that an earlier process left half-way are taken up");
    }
}

/// A worker's VM on its way, by what it says about itself; `None` for all others. One that had its time is the clean-up's.
fn unfinished(spawner: &Spawner, vm: &Vm) -> Option<(Arc<Annotation>, JobId)> {
    let annotation = own_annotation(vm, spawner.about.hatchery())?;
    let is_worker = VmName::of(&vm.name) == VmName::Worker
        && !(vm.template
            || annotation.model
            || annotation.provisioning
            || annotation.register_only);
    let job = annotation.job().filter(|_| is_worker)?;
    let began = annotation.worker_start_time.get()?;
    let is_in_time =
        elapsed(began, spawner.about.now()) < spawner.about.config.lifetimes.registration;
    let is_registered = spawner.scheduler.lock().facts().registered.contains(&vm.name);
    (is_in_time && !is_registered).then_some((annotation, job))
}

/// The job of a worker's VM that CDS knows the worker of.
fn at_work(spawner: &Spawner, vm: &Vm) -> Option<JobId> {
    let annotation = own_annotation(vm, spawner.about.hatchery())?;
    let is_registered = spawner.scheduler.lock().facts().registered.contains(&vm.name);
    annotation.job().filter(|_| is_registered && annotation.doomed.is_none())
}

struct Adoption<'a> {
    spawner: &'a Arc<Spawner>,
    tasks: &'a Tasks,
    vm: &'a Vm,
    annotation: &'a Annotation,
    job: JobId,
}

/// What is to become of the VM.
enum Fate {
    /// Its start goes on.
    GoesOn(Box<NewWorker>),
    /// Its worker is at the job.
    Works,
    /// Somebody is at the job, and CDS does not say who. The clean-up looks on, through the guard.
    Unclear,
    /// Nobody waits for it; the words say why.
    Useless(String),
}

impl Adoption<'_> {
    async fn take_up(&self, work: Hold) {
        if self.annotation.doomed.is_some() {
            return self.finish_failure(work).await;
        }
        match self.ask().await {
            Ok(Fate::GoesOn(new)) => self.go_on(*new, work).await,
            Ok(Fate::Works) => {
                self.decide("its worker is at the job", "works");
                watch_end(self.spawner, self.tasks, work.vm(), &self.vm.name, &self.job);
            }
            Ok(Fate::Unclear) => {
                self.decide(
                    "left to the clean-up: CDS does not name the worker at its job",
                    "unclear",
                );
            }
            Ok(Fate::Useless(why)) => {
                self.decide(format!("marked for deletion: {why}"), "useless");
                let marked = self.spawner.vms.mark_claimed(work.vm(), &why).await;
                if let Err(error) = marked {
                    tracing::warn!(vm = %self.vm.id, "a VM is not marked: {}", Chain(&error));
                }
            }
            Err(error) => {
                let why = format!("left to the clean-up: CDS was not asked: {}", Chain(&error));
                self.decide(why, "unanswered");
            }
        }
        self.spawner.signals.cleanup.notify_one();
    }

    fn decide(&self, what: impl Into<String>, label: &'static str) {
        let subject = HATCHERY.about_request(self.job.to_string());
        let reason = format!("{} {}: {}", self.vm.name, self.vm.id, what.into());
        self.spawner
            .recorder
            .decide(Draft::new(subject, Decided::Adopted, reason).vm(&self.vm.id), label);
    }

    async fn ask(&self) -> Result<Fate, CallError> {
        let mut pauses = Pauses::within(ASKING);
        loop {
            match self.fate().await {
                Ok(fate) => return Ok(fate),
                Err(error) if !pauses.pause().await => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Whether the job is still ours to start a worker for.
    async fn fate(&self) -> Result<Fate, CallError> {
        let (standing, found) = standing(self.spawner, &self.job).await?;
        match (standing, &self.job) {
            (Standing::Held, _) => {}
            // A booking ends after two minutes, however long the VM takes.
            (Standing::Free, JobId::V1(_)) => match take(self.spawner, &self.job).await {
                Taking::Ours => {}
                Taking::NotOurs(why) => return Ok(Fate::Useless(why)),
                Taking::Unsure(error) => return Err(error),
            },
            (Standing::Building, _) => {
                // By name only: that its worker is missing from a list proves nothing, the list may be empty in a bad moment. A mark is
                // believed without a second look, so what it says must be known.
                return Ok(match found.worker() {
                    Some(worker) if *worker == *self.vm.name => Fate::Works,
                    Some(other) => Fate::Useless(format!("worker {other} is at its job")),
                    None => Fate::Unclear,
                });
            }
            (Standing::Free | Standing::NotOurs, _) => {
                return Ok(Fate::Useless("its job is not ours any more".to_owned()));
            }
        }
        let job = match found {
            Found::V1(mut job) => {
                // Ours: what speaks against it for others does not for us.
                job.booked_by = v1::BookedBy::default();
                Job::from_v1(&job)
            }
            Found::V2(mut info) => {
                info.run_job.status = JobStatus::Waiting;
                Job::from_v2(&info)
            }
            Found::Gone => return Ok(Fate::Useless("its job is gone".to_owned())),
        };
        let job = match job {
            Ok(job) => job,
            Err(refusal) => return Ok(Fate::Useless(refusal.to_string())),
        };
        let model = match self.model(&job).await? {
            Ok(model) => model,
            Err(refusal) => return Ok(Fate::Useless(refusal.to_string())),
        };
        Ok(Fate::GoesOn(Box::new(NewWorker {
            job: Arc::new(job),
            model,
            flavor: self.spawner.about.config.flavors.get(&self.annotation.flavor).cloned(),
            worker: Arc::clone(&self.vm.name),
            attempt: 1,
            begun: self.spawner.about.now(),
            telling: Arc::default(),
        })))
    }

    /// The model as CDS has it now; which one of the V1 models it was stands in the annotation.
    async fn model(&self, job: &Job) -> Result<Result<Arc<WorkerModel>, Refusal>, CallError> {
        match self.spawner.models.choose(job).await? {
            Choice::Fixed(model) => Ok(Ok(model)),
            Choice::Refused(refusal) => Ok(Err(refusal)),
            Choice::AnyV1 => {
                let Some(client) = self.spawner.cds.v1() else {
                    return Ok(Err(Refusal::ModelsV1Disabled));
                };
                let path = ModelPath::parse(&self.annotation.worker_model_path);
                match client.model(&path).await {
                    Ok(model) => Ok(Ok(Arc::new(WorkerModel::v1(model)))),
                    Err(error) if error.is_gone() => {
                        Ok(Err(Refusal::OtherModel { wanted: path.to_string(), model: path }))
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    async fn go_on(&self, new: NewWorker, work: Hold) {
        let Self { spawner, tasks, vm, .. } = self;
        let is_off = spawner.mirror.vm(&vm.id).is_some_and(|vm| vm.power == Power::Off);
        // Its worker may have been launched in it, and is not launched twice in one VM.
        if is_off && self.has_run().await {
            return self.fail(&new, work, "its VM has run and is off", "powered-off").await;
        }
        let launch_spec = match prepare_launch(spawner, &new).await {
            Ok(launch_spec) => launch_spec,
            Err(error) => {
                let (why, reason) = (Chain(&error).to_string(), error.reason());
                return self.fail(&new, work, &why, reason).await;
            }
        };
        spawner.metrics.counters.count(Counted::SpawningWorkers);
        self.decide(if is_off { "goes on from its power-on" } else { "goes on" }, "goes-on");
        let launched = async {
            let earlier = if is_off {
                spawner.vms.machines.power_on(&work).await?;
                Earlier::Nothing
            } else {
                Earlier::Perhaps
            };
            start_worker(spawner, &new, &launch_spec, &work, self.annotation.address(), earlier)
                .await
        };
        match launched.await {
            Ok(launch) => {
                spawner.metrics.counters.count(Counted::SpawnedWorkers);
                let reason = format!("worker {} runs in {}, adopted", new.worker, vm.id);
                let draft = Draft::new(new.subject(), Decided::Spawned, reason).vm(&vm.id);
                spawner.recorder.decide(draft, "adopted");
                watch(
                    spawner,
                    tasks,
                    Watched { new, work, credentials: launch_spec.credentials, launch },
                );
            }
            Err(error) => give_up(spawner, tasks, &new, Some(work), &error).await,
        }
    }

    /// What cannot be read counts as a yes.
    async fn has_run(&self) -> bool {
        let mut pauses = Pauses::within(ASKING);
        loop {
            match self.spawner.vms.has_run(&self.vm.id).await {
                Ok(has_run) => return has_run,
                Err(_) if pauses.pause().await => {}
                Err(_) => return true,
            }
        }
    }

    /// The VM first: what might run in it must not meet another worker.
    async fn fail(&self, new: &NewWorker, work: Hold, why: &str, step: &'static str) {
        record(self.spawner, new, Some(&self.vm.id), why, step);
        put_down(self.spawner, work, why).await;
        hand_back(self.spawner, new, why).await;
    }

    /// An earlier process marked the VM and did not come to the rest: its power, and its job.
    async fn finish_failure(&self, work: Hold) {
        let spawner = self.spawner;
        if self.vm.power != Power::Off
            && let Err(error) = spawner.vms.machines.power_off(&work).await
        {
            tracing::warn!(vm = %self.vm.id, "a marked VM is not powered off: {}", Chain(&error));
            return;
        }
        let job = self.job.to_string();
        let others = spawner.mirror.snapshot();
        let is_served =
            others.serving(&HATCHERY.request(job.as_str())).any(|other| other.id != self.vm.id);
        drop(work);
        if !is_served {
            match super::job_side::give_back(spawner, &self.job).await {
                Ok(true) => {
                    self.decide("its start failed, and its job was given back", "given-back");
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%job, "a job was not given back: {}", Chain(&error));
                }
            }
        }
        spawner.signals.cleanup.notify_one();
    }
}
