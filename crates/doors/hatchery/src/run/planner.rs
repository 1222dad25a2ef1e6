//! From a job that waits to an order: weighed at every change, and carried out when everything is reserved.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::JobId;
use roost_fleet::{Decided, Draft, Gate, Mirror, NextLook, PoolId};
use roost_supervise::{Chain, Tasks};
use tokio::time::{sleep, timeout};

use super::about::About;
use super::jobs::Served;
use super::lifecycle::Lifecycle;
use super::models::Models;
use super::order::{Order, Outcome};
use super::others::{self, Other, OtherProcesses};
use super::recorder::Recorder;
use super::scheduler::{Scheduler, SchedulerState};
use super::signals::Signals;
use super::spare_view::spares;
use super::spawn::{self, Spawner};
use super::steer::Steering;
use super::verdicts::{Verdicts, subject};
use super::workers::Workers;
use crate::attempts::{Exhausted, failure_message};
use crate::door::HATCHERY;
use crate::metrics::{Counted, Metrics};
use crate::names::NamePrefix;
use crate::plan::{Facts, Turn, turn};
use crate::refusal::Refusal;
use crate::status::task;
use crate::time::{elapsed, later};

/// Two passes are at least this far apart, so that a burst of changes is one pass.
const BETWEEN: Duration = Duration::from_millis(10);
/// Without any change it is still looked from time to time: promises expire, readings grow old.
const AT_LEAST: Duration = Duration::from_secs(15);
/// After CDS could not say whether the job is ours.
const PUT_OFF: Duration = Duration::from_secs(10);

/// Decides which jobs start. Only the orders that it gives out change anything.
#[derive(Debug)]
pub(in crate::run) struct Planner {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) metrics: Arc<Metrics>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) models: Arc<Models>,
    pub(in crate::run) pool: PoolId,
    pub(in crate::run) processes: Arc<OtherProcesses>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) signals: Arc<Signals>,
    pub(in crate::run) spawner: Arc<Spawner>,
    pub(in crate::run) steering: Arc<Steering>,
    pub(in crate::run) verdicts: Arc<Verdicts>,
    pub(in crate::run) workers: Arc<Workers>,
}

/// Weighs what waits whenever something has changed, and carries out what may start.
pub(super) async fn serve(planner: Arc<Planner>, tasks: Arc<Tasks>) {
    planner.lifecycle.opened().await;
    let news = planner.scheduler.lock().ledger.lock().news(HATCHERY);
    let mut changes = planner.mirror.changes();
    loop {
        tasks.beat(task::MAIN, planner.about.patience() + AT_LEAST);
        let (orders, wake) = plan(&planner, &tasks);
        for order in orders {
            let (planner, on) = (Arc::clone(&planner), Arc::clone(&tasks));
            tasks.errand("spawn", async move {
                Box::pin(carry_out(&planner, &on, order)).await;
            });
        }
        sleep(BETWEEN).await;
        let awaited = async {
            tokio::select! {
                biased;
                () = planner.signals.plan.notified() => {}
                () = news.notified() => {}
                // Only what waits can be helped by a change.
                _ = changes.changed(), if planner.scheduler.lock().jobs.waiting().next().is_some() => {}
            }
        };
        let _ = timeout(wake, awaited).await;
    }
}

/// One pass over all that waits, in the order of turns. Returns what may start, and when to look again at the latest.
fn plan(planner: &Arc<Planner>, tasks: &Tasks) -> (Vec<Order>, Duration) {
    let now = planner.about.now();
    let stands_by = planner.processes.look();
    let mut orders = Vec::new();
    let mut told: Vec<(JobId, Turn)> = Vec::new();
    let mut guard = planner.scheduler.lock();
    let snapshot = planner.mirror.snapshot();
    let scheduler = &mut *guard;
    let mut turns = scheduler.jobs.turns(now);
    if scheduler.cold.failing().next().is_some() {
        // Whoever finds out loses an attempt: let it be one that has lost fewest.
        turns.sort_by_key(|candidate| scheduler.attempts.made(&candidate.job.id));
    }
    if turns.is_empty() {
        return (orders, until(scheduler.jobs.next_time(now), now));
    }
    if let Some(gate) = obstacle(planner, stands_by) {
        drop(guard);
        for candidate in turns {
            // What only a person can change is as it was, whatever holds up the others.
            if is_refused(planner, &candidate.job.id) {
                continue;
            }
            let draft = Draft::new(subject(&candidate.job.id), Decided::Deferred, gate.to_string())
                .gates(vec![gate.clone()])
                .next_look(NextLook::OnChange);
            planner.verdicts.note(&candidate.job.id, draft, gate.name);
        }
        return (orders, AT_LEAST.min(Duration::from_secs(5)));
    }
    let models = planner.models.v1();
    let known = spares(
        &snapshot,
        planner.about.hatchery(),
        scheduler,
        models.as_deref().map(Vec::as_slice),
        now,
    );
    let facts = Facts {
        config: &planner.about.config,
        snapshot: &snapshot,
        models: models.as_deref().map(Vec::as_slice),
        spares: &known,
        pool: &planner.pool,
    };
    let mut name: Option<Arc<str>> = None;
    for candidate in turns {
        let id = candidate.job.id.clone();
        if name.is_none() {
            match planner.scheduler.name(NamePrefix::Worker, scheduler, &snapshot) {
                Ok(drawn) => name = Some(drawn.into()),
                Err(error) => {
                    tracing::error!("{error}");
                    break;
                }
            }
        }
        let Some(worker) = name.clone() else { break };
        let SchedulerState { ledger, attempts, cold, .. } = scheduler;
        match turn(&candidate, facts, &mut ledger.lock(), attempts, cold, &worker, now) {
            Turn::Start { wanted, reservation, attempt } => {
                name = None;
                let served = Served {
                    job: Arc::clone(&candidate.job),
                    worker: Arc::clone(&worker),
                    model: wanted.model.display_name(),
                    flavor: wanted.flavor.as_ref().map(|flavor| flavor.name.clone()),
                };
                scheduler.jobs.begin(&id, served);
                orders.push(Order {
                    job: Arc::clone(&candidate.job),
                    model: wanted.model,
                    flavor: wanted.flavor,
                    template: wanted.template,
                    worker,
                    reservation,
                    attempt,
                    ordered: now,
                });
            }
            other => told.push((id, other)),
        }
    }
    let later = told.iter().filter_map(|(_, turn)| match turn {
        Turn::Later { until, .. } => Some(*until),
        _ => None,
    });
    let next = later.chain(scheduler.jobs.next_time(now)).min();
    let wake = until(next, now);
    for (id, turn) in &told {
        if let Turn::Exhausted(_) = turn
            && matches!(id, JobId::V1(_))
        {
            scheduler.jobs.remove(id);
        }
    }
    drop(guard);
    if orders.iter().any(|order| order.reservation.spare().is_some()) {
        planner.signals.spares.notify_one();
    }
    for (id, turn) in told {
        tell(planner, tasks, &id, turn);
    }
    (orders, wake)
}

/// How long to the next look: when something that was put off is due, and not later than at least.
fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    next.map_or(AT_LEAST, |at| elapsed(now, at)).clamp(BETWEEN, AT_LEAST)
}

/// What holds for all jobs alike: a person has said that nothing is begun, another process is at it, or what is known is not whole or not recent.
fn obstacle(planner: &Planner, stands_by: Option<Other>) -> Option<Gate> {
    if let Some(held) = planner.steering.spawning() {
        return Some(Gate::plain("paused", false).noting(held.to_string()));
    }
    if let Some(other) = stands_by {
        return Some(Gate::plain(others::GATE, false).noting(other.to_string()));
    }
    let views = |why: String| Some(Gate::plain("views", false).noting(why));
    if let Err(why) = planner.workers.believed() {
        return views(why);
    }
    let freshness = planner.mirror.freshness();
    match (freshness.complete, freshness.trouble) {
        (true, _) => None,
        (false, Some(trouble)) => views(format!("the inventory is not complete: {trouble}")),
        (false, None) => views("the inventory is not complete".to_owned()),
    }
}

/// Whether the last word on it is that it will not be served as it is, or not by us.
fn is_refused(planner: &Planner, id: &JobId) -> bool {
    let last = planner.recorder.journal.latest(&subject(id));
    last.is_some_and(|last| matches!(last.verdict, Decided::Refused | Decided::Skipped))
}

/// Records why a job does not start now.
fn tell(planner: &Arc<Planner>, tasks: &Tasks, id: &JobId, turn: Turn) {
    match turn {
        Turn::Start { .. } => {}
        Turn::Refused(refusal) => planner.verdicts.record_refusal(tasks, id, &refusal),
        Turn::NoRoom(refusal) => {
            let label = refusal.bound_by.as_str();
            planner.verdicts.note(id, Draft::from(&refusal), label);
        }
        Turn::Later { why, until } => {
            let draft = Draft::new(subject(id), why.decided(), why.to_string())
                .gates(vec![why.gate()])
                .next_look(NextLook::At(until));
            planner.verdicts.note(id, draft, why.reason());
        }
        Turn::Exhausted(exhausted) => {
            let refusal = Refusal::from(exhausted);
            match id {
                JobId::V1(number) => {
                    let (planner, number) = (Arc::clone(planner), *number);
                    tasks
                        .errand("fail-job", async move { fail(&planner, number, exhausted).await });
                }
                JobId::V2(_) => {
                    let draft = Draft::new(subject(id), Decided::Deferred, refusal.to_string())
                        .gates(vec![refusal.gate()])
                        .next_look(NextLook::At(exhausted.until));
                    planner.verdicts.note(id, draft, refusal.reason());
                }
            }
        }
    }
}

/// A V1 job that had all of its attempts is failed, so that somebody looks at it (2.6).
async fn fail(planner: &Planner, number: i64, exhausted: Exhausted) {
    let Some(client) = planner.cds.v1() else { return };
    let reason = failure_message(planner.about.hatchery(), exhausted.made);
    let draft = match client.fail(number, &reason).await {
        Ok(()) => Draft::new(subject(&JobId::V1(number)), Decided::Refused, reason),
        Err(error) => {
            let why = format!("{reason}, and CDS was not told: {}", Chain(&error));
            Draft::new(subject(&JobId::V1(number)), Decided::Deferred, why)
                .next_look(NextLook::OnChange)
        }
    };
    planner.recorder.decide(draft, "attempts");
}

/// Carries out an order and tells the scheduler how it ended.
async fn carry_out(planner: &Arc<Planner>, tasks: &Arc<Tasks>, order: Order) {
    planner.metrics.counters.count(Counted::StarterJobs);
    let id = order.job.id.clone();
    let outcome = Box::pin(spawn::carry_out(&planner.spawner, tasks, order)).await;
    let now = planner.about.now();
    let mut scheduler = planner.scheduler.lock();
    match outcome {
        Outcome::Started | Outcome::NotOurs | Outcome::Failed => scheduler.jobs.remove(&id),
        Outcome::NotTaken => scheduler.jobs.back_to_wait(&id, later(now, PUT_OFF)),
    }
    drop(scheduler);
    planner.metrics.counters.count(Counted::JobsProcessed);
    planner.signals.plan.notify_one();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_put_off_is_looked_at_when_it_is_due() {
        let now = Timestamp::UNIX_EPOCH;
        let due = |wait| Some(later(now, wait));
        // With nothing else to do it was looked at after 15 s only, although 10 s were said.
        assert_eq!(until(due(PUT_OFF), now), PUT_OFF);
        assert_eq!(until(due(AT_LEAST * 2), now), AT_LEAST);
        assert_eq!(until(due(Duration::ZERO), now), BETWEEN, "never spins");
        assert_eq!(until(None, now), AT_LEAST);
    }
}
