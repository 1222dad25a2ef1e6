//! From a word of the queue to an order: what waits is asked about once, weighed at every change, and carried out when everything is reserved.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{CallError, JobHint, JobId, Protocol, QueueSettings, QueueWatch, v1, v2};
use roost_fleet::{Decided, Draft, Gate, NextLook, Subject};
use roost_supervise::{Chain, Tasks};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::context::Context;
use super::jobs::Served;
use super::order::{Order, Outcome};
use super::others::{self, Other};
use super::scheduler::SchedulerState;
use super::spare_view::spares;
use super::spawn;
use crate::attempts::{Exhausted, failure_message};
use crate::door::HATCHERY;
use crate::job::{Job, ModelRequest};
use crate::metrics::Counted;
use crate::model::WorkerModel;
use crate::names::NamePrefix;
use crate::plan::{Candidate, Choice, Facts, Turn, turn};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::status::task;
use crate::time::{elapsed, is_recent, later};

/// Two passes are at least this far apart, so that a burst of changes is one pass.
const BETWEEN: Duration = Duration::from_millis(10);
/// Without any change it is still looked from time to time: promises expire, readings grow old.
const AT_LEAST: Duration = Duration::from_secs(15);
/// After CDS could not say whether the job is ours.
const PUT_OFF: Duration = Duration::from_secs(10);
/// The same refusal is written again after this long.
const REPEATED: Duration = Duration::from_secs(20);

pub(super) async fn listen_v1(cx: Arc<Context>, tasks: Arc<Tasks>) {
    let Some(client) = cx.cds.v1().cloned() else { return };
    let watch = QueueWatch::v1(client, QueueSettings::default(), Arc::clone(&cx.clock));
    listen(cx, tasks, watch, (Protocol::V1, task::V1_QUEUE)).await;
}

pub(super) async fn listen_v2(cx: Arc<Context>, tasks: Arc<Tasks>) {
    let Some(client) = cx.cds.v2().cloned() else { return };
    let watch = QueueWatch::v2(client, QueueSettings::default(), Arc::clone(&cx.clock));
    listen(cx, tasks, watch, (Protocol::V2, task::V2_QUEUE)).await;
}

async fn listen(
    cx: Arc<Context>,
    tasks: Arc<Tasks>,
    watch: QueueWatch,
    (protocol, name): (Protocol, &'static str),
) {
    cx.opened().await;
    cx.follow_queue(protocol, watch.health());
    let mut health = watch.health();
    // Every poll is heard of, also one that failed; a websocket may be silent for as long as it likes.
    let polled = async {
        loop {
            tasks.beat(name, cx.patience() + QueueSettings::default().poll_interval);
            if health.changed().await.is_err() {
                return;
            }
        }
    };
    let (sender, mut hints) = mpsc::channel(64);
    let hear = async {
        while let Some(hint) = hints.recv().await {
            hear(&cx, &tasks, hint);
        }
    };
    tokio::join!(watch.run(sender), hear, polled);
}

fn hear(cx: &Arc<Context>, tasks: &Arc<Tasks>, hint: JobHint) {
    let now = cx.now();
    let counters = &cx.metrics.counters;
    let mut scheduler = cx.scheduler();
    let named: Vec<JobId> = match hint {
        JobHint::Pushed(id) => {
            counters.count(Counted::JobsWebsocket);
            counters.count(match id.protocol() {
                Protocol::V1 => Counted::V1JobsReceived,
                Protocol::V2 => Counted::V2JobsReceived,
            });
            vec![id]
        }
        JobHint::Polled { protocol, jobs } => {
            let named: Vec<JobId> = jobs.into_iter().map(|job| job.id).collect();
            for id in &named {
                scheduler.jobs.heard(id, now);
            }
            scheduler.jobs.polled(protocol, now);
            named
        }
    };
    let new: Vec<JobId> = named.into_iter().filter(|id| scheduler.jobs.heard(id, now)).collect();
    drop(scheduler);
    begin_asking(cx, tasks, new);
}

pub(super) fn begin_asking(cx: &Arc<Context>, tasks: &Arc<Tasks>, jobs: Vec<JobId>) {
    for id in jobs {
        let (cx, on) = (Arc::clone(cx), Arc::clone(tasks));
        tasks.errand("job-info", async move { ask(&cx, &on, &id).await });
    }
}

/// Asks CDS what a named job is.
async fn ask(cx: &Arc<Context>, tasks: &Tasks, id: &JobId) {
    let Ok(_turn) = cx.asking.acquire().await else { return };
    if !cx.scheduler().jobs.ask(id) {
        return;
    }
    cx.metrics.counters.count(Counted::Jobs);
    let answer = look_up(cx, id).await;
    let mut scheduler = cx.scheduler();
    match answer {
        Ok(candidate) => {
            cx.metrics.counters.count(match id.protocol() {
                Protocol::V1 => Counted::V1JobsQueued,
                Protocol::V2 => Counted::V2JobsQueued,
            });
            scheduler.jobs.answered(id, candidate, cx.now());
            drop(scheduler);
            cx.signals.plan.notify_one();
        }
        Err(Unknown::Refused(refusal)) => {
            if refusal.counts_as_attempt() {
                scheduler.attempts.count(id, cx.now());
            }
            scheduler.jobs.remove(id);
            drop(scheduler);
            record_refusal(cx, tasks, id, &refusal);
        }
        Err(Unknown::Gone) => scheduler.jobs.remove(id),
        Err(Unknown::Call(error)) => {
            scheduler.jobs.unanswered(id);
            drop(scheduler);
            tracing::warn!(job = %id, "asking CDS about a job failed: {}", Chain(&error));
        }
    }
}

/// Why nothing more is known about a job.
enum Unknown {
    Gone,
    Refused(Refusal),
    Call(CallError),
}

impl From<CallError> for Unknown {
    fn from(error: CallError) -> Self {
        if error.is_gone() { Self::Gone } else { Self::Call(error) }
    }
}

impl From<Refusal> for Unknown {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

async fn look_up(cx: &Context, id: &JobId) -> Result<Candidate, Unknown> {
    let job = match id {
        JobId::V1(number) => {
            let client: &v1::Client = cx.cds.v1().ok_or(Unknown::Gone)?;
            Job::from_v1(&client.job(*number).await?)?
        }
        JobId::V2(uuid) => {
            let client: &v2::Client = cx.cds.v2().ok_or(Unknown::Gone)?;
            Job::from_v2(&client.job(uuid).await?)?
        }
    };
    let model = choose(cx, &job).await?;
    Ok(Candidate { job: Arc::new(job), model })
}

/// Which model serves the job, as far as that does not depend on the moment (2.3, step 5; 3.3, step 5).
pub(super) async fn choose(cx: &Context, job: &Job) -> Result<Choice, CallError> {
    let read = |path: String, model: &v2::Model| match WorkerModel::v2(path, model) {
        Ok(model) => Choice::Fixed(Arc::new(model)),
        Err(refusal) => Choice::Refused(refusal),
    };
    let path = match &job.model {
        ModelRequest::Embedded { path, model } => return Ok(read(path.clone(), model)),
        ModelRequest::Named(_) => return Ok(Choice::AnyV1),
        ModelRequest::AsCode(path) => path,
        ModelRequest::Any => match job.default_model(&cx.config.default_models) {
            None => return Ok(Choice::AnyV1),
            Some(path) => path,
        },
    };
    let is_default = job.model == ModelRequest::Any;
    match cx.model_as_code(path).await {
        Ok(Some(model)) => Ok(read(path.to_string(), &model)),
        Ok(None) if is_default => Ok(Choice::AnyV1),
        Ok(None) => Ok(Choice::Refused(Refusal::NoV2Token { model: path.to_string() })),
        Err(error) if is_default => {
            tracing::warn!(job = %job.id, "reading the default model {path} failed: {}", Chain(&error));
            Ok(Choice::AnyV1)
        }
        Err(error) => Err(error),
    }
}

/// Weighs what waits whenever something has changed, and carries out what may start.
pub(super) async fn serve(cx: Arc<Context>, tasks: Arc<Tasks>) {
    cx.opened().await;
    let news = cx.scheduler().ledger.lock().news(HATCHERY);
    let mut changes = cx.mirror.changes();
    loop {
        tasks.beat(task::MAIN, cx.patience() + AT_LEAST);
        let (orders, wake) = plan(&cx, &tasks);
        for order in orders {
            let (cx, on) = (Arc::clone(&cx), Arc::clone(&tasks));
            tasks.errand("spawn", async move {
                Box::pin(carry_out(&cx, &on, order)).await;
            });
        }
        sleep(BETWEEN).await;
        let awaited = async {
            tokio::select! {
                biased;
                () = cx.signals.plan.notified() => {}
                () = news.notified() => {}
                // Only what waits can be helped by a change.
                _ = changes.changed(), if cx.scheduler().jobs.waiting().next().is_some() => {}
            }
        };
        let _ = timeout(wake, awaited).await;
    }
}

/// One pass over all that waits, in the order of turns. Returns what may start, and when to look again at the latest.
fn plan(cx: &Arc<Context>, tasks: &Tasks) -> (Vec<Order>, Duration) {
    let now = cx.now();
    let stands_by = cx.look_for_others();
    let mut orders = Vec::new();
    let mut told: Vec<(JobId, Turn)> = Vec::new();
    let mut guard = cx.scheduler();
    let snapshot = cx.mirror.snapshot();
    let scheduler = &mut *guard;
    let mut turns = scheduler.jobs.turns(now);
    if scheduler.cold.failing().next().is_some() {
        // Whoever finds out loses an attempt: let it be one that has lost fewest.
        turns.sort_by_key(|candidate| scheduler.attempts.made(&candidate.job.id));
    }
    if turns.is_empty() {
        return (orders, until(scheduler.jobs.next_time(now), now));
    }
    if let Some(gate) = obstacle(cx, stands_by) {
        drop(guard);
        for candidate in turns {
            // What only a person can change is as it was, whatever holds up the others.
            if is_refused(cx, &candidate.job.id) {
                continue;
            }
            let draft = Draft::new(subject(&candidate.job.id), Decided::Deferred, gate.to_string())
                .gates(vec![gate.clone()])
                .next_look(NextLook::OnChange);
            note(cx, &candidate.job.id, draft, gate.name);
        }
        return (orders, AT_LEAST.min(Duration::from_secs(5)));
    }
    let models = cx.models.v1();
    let known =
        spares(&snapshot, cx.hatchery(), scheduler, models.as_deref().map(Vec::as_slice), now);
    let facts = Facts {
        config: &cx.config,
        snapshot: &snapshot,
        models: models.as_deref().map(Vec::as_slice),
        spares: &known,
        pool: &cx.pool,
    };
    let mut name: Option<Arc<str>> = None;
    for candidate in turns {
        let id = candidate.job.id.clone();
        if name.is_none() {
            match cx.name(NamePrefix::Worker, scheduler, &snapshot) {
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
        cx.signals.spares.notify_one();
    }
    for (id, turn) in told {
        tell(cx, tasks, &id, turn);
    }
    (orders, wake)
}

/// How long to the next look: when something that was put off is due, and not later than at least.
fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    next.map_or(AT_LEAST, |at| elapsed(now, at)).clamp(BETWEEN, AT_LEAST)
}

/// What holds for all jobs alike: a person has said that nothing is begun, another process is at it, or what is known is not whole or not recent.
fn obstacle(cx: &Context, stands_by: Option<Other>) -> Option<Gate> {
    if let Some(held) = cx.steering.spawning() {
        return Some(Gate::plain("paused", false).noting(held.to_string()));
    }
    if let Some(other) = stands_by {
        return Some(Gate::plain(others::GATE, false).noting(other.to_string()));
    }
    let views = |why: String| Some(Gate::plain("views", false).noting(why));
    if let Err(why) = cx.workers.believed() {
        return views(why);
    }
    let freshness = cx.mirror.freshness();
    match (freshness.complete, freshness.trouble) {
        (true, _) => None,
        (false, Some(trouble)) => views(format!("the inventory is not complete: {trouble}")),
        (false, None) => views("the inventory is not complete".to_owned()),
    }
}

fn subject(id: &JobId) -> Subject {
    HATCHERY.about_request(id.to_string())
}

/// Whether the last word on it is that it will not be served as it is, or not by us.
fn is_refused(cx: &Context, id: &JobId) -> bool {
    let last = cx.journal.latest(&subject(id));
    last.is_some_and(|last| matches!(last.verdict, Decided::Refused | Decided::Skipped))
}

/// Records why a job does not start now.
fn tell(cx: &Arc<Context>, tasks: &Tasks, id: &JobId, turn: Turn) {
    match turn {
        Turn::Start { .. } => {}
        Turn::Refused(refusal) => record_refusal(cx, tasks, id, &refusal),
        Turn::NoRoom(refusal) => {
            let label = refusal.bound_by.as_str();
            note(cx, id, Draft::from(&refusal), label);
        }
        Turn::Later { why, until } => {
            let draft = Draft::new(subject(id), why.decided(), why.to_string())
                .gates(vec![why.gate()])
                .next_look(NextLook::At(until));
            note(cx, id, draft, why.reason());
        }
        Turn::Exhausted(exhausted) => {
            let refusal = Refusal::from(exhausted);
            match id {
                JobId::V1(number) => {
                    let (cx, number) = (Arc::clone(cx), *number);
                    tasks.errand("fail-job", async move { fail(&cx, number, exhausted).await });
                }
                JobId::V2(_) => {
                    let draft = Draft::new(subject(id), Decided::Deferred, refusal.to_string())
                        .gates(vec![refusal.gate()])
                        .next_look(NextLook::At(exhausted.until));
                    note(cx, id, draft, refusal.reason());
                }
            }
        }
    }
}

fn record_refusal(cx: &Arc<Context>, tasks: &Tasks, id: &JobId, refusal: &Refusal) {
    let draft = Draft::new(subject(id), refusal.decided(), refusal.to_string())
        .gates(vec![refusal.gate()])
        .next_look(NextLook::OnChange);
    if note(cx, id, draft, refusal.reason())
        && refusal.is_worth_telling()
        && let JobId::V2(uuid) = id
    {
        let (cx, uuid, words) = (Arc::clone(cx), uuid.clone(), refusal.to_string());
        tasks.errand("job-message", async move { warn_waiting(&cx, &uuid, &words).await });
    }
}

/// Tells those who wait for a V2 job what only they can change. V1 has no such message.
async fn warn_waiting(cx: &Context, job: &str, words: &str) {
    let Some(client) = cx.cds.v2() else { return };
    let message = format!("Hatchery {:?} does not start a worker: {words}", cx.hatchery());
    if let Err(error) = client.add_info(job, v2::InfoLevel::Warning, &message).await {
        tracing::debug!(job, "a message to the job was lost: {}", Chain(&error));
    }
}

/// Records a decision, unless it says what was said moments ago. Returns whether it is news.
fn note(cx: &Context, id: &JobId, draft: Draft, label: &'static str) -> bool {
    if planted::is(Bug::DecidesSilently) {
        return false;
    }
    let subject = subject(id);
    let before = cx.journal.latest(&subject);
    if let Some(before) = &before
        && draft.says_the_same(before)
        && is_recent(before.at, cx.now(), REPEATED)
    {
        return false;
    }
    let decision = cx.decide(draft, label);
    decision.times == 1
}

/// A V1 job that had all of its attempts is failed, so that somebody looks at it.
async fn fail(cx: &Context, number: i64, exhausted: Exhausted) {
    let Some(client) = cx.cds.v1() else { return };
    let reason = failure_message(cx.hatchery(), exhausted.made);
    let id = JobId::V1(number);
    let draft = match client.fail(number, &reason).await {
        Ok(()) => Draft::new(subject(&id), Decided::Refused, reason),
        Err(error) if error.is_gone() => {
            cx.scheduler().jobs.remove(&id);
            Draft::new(subject(&id), Decided::Refused, format!("{reason}; CDS has it no more"))
        }
        Err(error) => {
            let why = format!("{reason}, and CDS was not told: {}", Chain(&error));
            Draft::new(subject(&id), Decided::Deferred, why).next_look(NextLook::OnChange)
        }
    };
    cx.decide(draft, "attempts");
}

/// Carries out an order and tells the scheduler how it ended.
async fn carry_out(cx: &Arc<Context>, tasks: &Arc<Tasks>, order: Order) {
    cx.metrics.counters.count(Counted::StarterJobs);
    let id = order.job.id.clone();
    let outcome = Box::pin(spawn::carry_out(cx, tasks, order)).await;
    let now = cx.now();
    let mut scheduler = cx.scheduler();
    match outcome {
        Outcome::Started | Outcome::NotOurs | Outcome::Failed => scheduler.jobs.remove(&id),
        Outcome::NotTaken => scheduler.jobs.back_to_wait(&id, later(now, PUT_OFF)),
    }
    drop(scheduler);
    cx.metrics.counters.count(Counted::JobsProcessed);
    cx.signals.plan.notify_one();
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
