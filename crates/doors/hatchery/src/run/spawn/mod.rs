//! From an order to a worker whose script runs, and on until CDS knows the worker.
//!
//! ```text
//!   launch spec ──> source ──> take ──> claim, power on ─┐
//!           nothing is taken yet  │     or clone         ├──> guest ready ──> probe ──> pre-start ──> launch ──> watch
//!                                 └── not ours: the end  │                                                        │
//!           adopt: what an earlier process left half-way ┘                         registered, or given back <────┘
//! ```
//!
//! A failure marks the VM in its own annotation and gives the job back, both on a budget of their own (W24). A crash anywhere leaves a VM
//! that says whose it is and what for; [`adopt`] goes on from there.

mod adopt;
mod end;
mod give_up;
mod job_side;
mod launch_spec;
mod source;
mod start;
mod tell;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_fleet::{Decided, Draft, NextLook, Reservation, Subject, Timeline, VmId};
use roost_supervise::{Chain, Tasks};

pub(super) use self::adopt::adopt;
pub(super) use self::launch_spec::LaunchSpecError;

use self::give_up::give_up;
use self::job_side::{Taking, take};
use self::launch_spec::prepare_launch;
use self::source::{FailedStart, Source};
use self::start::{Earlier, start_worker};
use self::watch::{Watched, watch};
use super::context::Context;
use super::order::{Order, Outcome};
use crate::door::HATCHERY;
use crate::flavor::Flavor;
use crate::job::Job;
use crate::metrics::{Counted, Start};
use crate::model::WorkerModel;
use crate::planted::{self, Bug};
use crate::time::elapsed;

/// A worker on its way: for which job, of which model, by which name.
#[derive(Debug, Clone)]
struct NewWorker {
    job: Arc<Job>,
    model: Arc<WorkerModel>,
    flavor: Option<Flavor>,
    worker: Arc<str>,
    /// Which attempt for this job it is, from 1.
    attempt: u32,
    /// When it was ordered, or found.
    begun: Timestamp,
    /// Held by whoever tells the job's log something, so that it reads in the order in which it happened.
    telling: Arc<tokio::sync::Mutex<()>>,
}

impl NewWorker {
    fn subject(&self) -> Subject {
        HATCHERY.about_request(self.job.id.to_string())
    }
}

/// Carries out an order: takes the job, makes the VM, starts the worker in it.
pub(crate) async fn carry_out(cx: &Arc<Context>, tasks: &Arc<Tasks>, order: Order) -> Outcome {
    let Order { job, model, flavor, template, worker, mut reservation, attempt, ordered } = order;
    let telling = Arc::default();
    let new = NewWorker { job, model, flavor, worker, attempt, begun: ordered, telling };
    // What can be refused is refused before the job is taken: giving it back is a scarce good.
    let launch_spec = match prepare_launch(cx, &new).await {
        Ok(launch_spec) => launch_spec,
        Err(error) => {
            return put_off(cx, &new, error.decided(), Chain(&error).to_string(), error.reason());
        }
    };
    let source = match Source::find(cx, &new, &template, &reservation).await {
        Ok(source) => source,
        Err(error) => {
            return put_off(cx, &new, error.decided(), Chain(&error).to_string(), error.reason());
        }
    };
    match take(cx, &new.job.id).await {
        Taking::Ours => {}
        Taking::NotOurs(why) => {
            let draft = Draft::new(new.subject(), Decided::Skipped, why);
            cx.decide(draft, "not-ours");
            if planted::is(Bug::KeepsPromises) {
                std::mem::forget(reservation);
            }
            return Outcome::NotOurs;
        }
        Taking::Unsure(error) => {
            let why = format!("taking the job: {}", Chain(&error));
            return put_off(cx, &new, Decided::Deferred, why, "taking");
        }
    }
    cx.metrics.counters.count(Counted::SpawningWorkers);
    tell::of_start(cx, tasks, &new);
    let (start, expected) = (source.start(), source.expected_address(&reservation));
    let work = match source.make(cx, &new, &mut reservation).await {
        Ok(work) => {
            if start == Start::Cold {
                cx.scheduler().cold.succeeded(&template.name);
            }
            work
        }
        Err(FailedStart { error, left, is_untouched }) => {
            if start == Start::Cold && !cx.machines.is_of_link(&error) {
                cx.scheduler().cold.failed(&template.name, new.begun, cx.now());
            }
            // A VM that was left behind, or may come yet, keeps what was promised to it.
            if planted::is(Bug::KeepsPromises) {
                std::mem::forget(reservation);
            } else if is_untouched {
                reservation.release();
            } else {
                drop(reservation);
            }
            give_up(cx, tasks, &new, left, &error).await;
            return Outcome::Failed;
        }
    };
    match start_worker(cx, &new, &launch_spec, &work, expected, Earlier::Nothing).await {
        Ok(launch) => {
            record_start(cx, &new, work.vm(), start, &reservation);
            reservation.commit();
            watch(cx, tasks, Watched { new, work, credentials: launch_spec.credentials, launch });
            Outcome::Started
        }
        Err(error) => {
            reservation.commit();
            give_up(cx, tasks, &new, Some(work), &error).await;
            Outcome::Failed
        }
    }
}

/// Nothing was taken and nothing made; the job waits on. What is nobody's fault here is no attempt of the job either.
fn put_off(
    cx: &Context,
    new: &NewWorker,
    decided: Decided,
    why: String,
    reason: &'static str,
) -> Outcome {
    if decided == Decided::Deferred {
        cx.scheduler().attempts.uncount(&new.job.id);
    }
    let draft = Draft::new(new.subject(), decided, why).next_look(NextLook::OnChange);
    cx.decide(draft, reason);
    Outcome::NotTaken
}

fn record_start(cx: &Context, new: &NewWorker, vm: &VmId, start: Start, reservation: &Reservation) {
    let (now, metrics) = (cx.now(), &cx.metrics);
    metrics.counters.count(Counted::SpawnedWorkers);
    if let Some(queued) = new.job.queued {
        metrics.own.job_waited(start, elapsed(queued, now));
    }
    let (how, label) = match start {
        Start::Warm => ("a spare", "warm"),
        Start::Cold => ("a clone", "cold"),
    };
    let took = elapsed(new.begun, now);
    let line = cx.timelines.of(&new.worker);
    let steps = line.map(|line| steps(&line, new.begun)).unwrap_or_default();
    let worker = &new.worker;
    let reason = format!("worker {worker} runs in {vm}, {how}, {took:.1?} after its order{steps}");
    let draft = Draft::new(new.subject(), Decided::Spawned, reason);
    cx.decide(draft.gates(reservation.gates().to_vec()).vm(vm), label);
}

/// Which steps took how long, as far as it can be felt. What a spare went through before its claim is not the job's.
fn steps(line: &Timeline, since: Timestamp) -> String {
    let own = line.steps.iter().filter(|step| step.began >= since);
    let felt = own.filter_map(|step| {
        let took = Duration::from_millis(step.took_ms?);
        (took >= Duration::from_millis(100)).then(|| format!("{} {took:.1?}", step.phase))
    });
    let felt: Vec<String> = felt.collect();
    if felt.is_empty() { String::new() } else { format!(" ({})", felt.join(", ")) }
}
