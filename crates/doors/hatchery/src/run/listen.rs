//! From a word of the queue to a job that is known: each is asked about once.

use std::sync::Arc;

use roost_cds::{CallError, JobHint, JobId, Protocol, QueueSettings, QueueWatch, v1, v2};
use roost_supervise::{Chain, Tasks};
use tokio::sync::{Semaphore, mpsc};

use super::about::About;
use super::cds_link::CdsLink;
use super::lifecycle::Lifecycle;
use super::models::Models;
use super::scheduler::Scheduler;
use super::signals::Signals;
use super::verdicts::Verdicts;
use crate::job::Job;
use crate::metrics::{Counted, Metrics};
use crate::plan::Candidate;
use crate::refusal::Refusal;
use crate::status::task;

/// Hears of jobs, and asks CDS about them.
#[derive(Debug)]
pub(in crate::run) struct Listener {
    /// Jobs that are asked about at the same time.
    pub(in crate::run) asking: Semaphore,
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) cds_link: Arc<CdsLink>,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) metrics: Arc<Metrics>,
    pub(in crate::run) models: Arc<Models>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) signals: Arc<Signals>,
    pub(in crate::run) verdicts: Arc<Verdicts>,
}

pub(super) async fn listen_v1(listener: Arc<Listener>, tasks: Arc<Tasks>) {
    let Some(client) = listener.cds.v1().cloned() else { return };
    let watch = QueueWatch::v1(client, QueueSettings::default(), Arc::clone(&listener.about.clock));
    listen(listener, tasks, watch, (Protocol::V1, task::V1_QUEUE)).await;
}

pub(super) async fn listen_v2(listener: Arc<Listener>, tasks: Arc<Tasks>) {
    let Some(client) = listener.cds.v2().cloned() else { return };
    let watch = QueueWatch::v2(client, QueueSettings::default(), Arc::clone(&listener.about.clock));
    listen(listener, tasks, watch, (Protocol::V2, task::V2_QUEUE)).await;
}

async fn listen(
    listener: Arc<Listener>,
    tasks: Arc<Tasks>,
    watch: QueueWatch,
    (protocol, name): (Protocol, &'static str),
) {
    listener.lifecycle.opened().await;
    listener.cds_link.follow_queue(protocol, watch.health());
    let mut health = watch.health();
    // Every poll is heard of, also one that failed; a websocket may be silent for as long as it likes.
    let polled = async {
        loop {
            tasks.beat(name, listener.about.patience() + QueueSettings::default().poll_interval);
            if health.changed().await.is_err() {
                return;
            }
        }
    };
    let (sender, mut hints) = mpsc::channel(64);
    let hear = async {
        while let Some(hint) = hints.recv().await {
            hear(&listener, &tasks, hint);
        }
    };
    tokio::join!(watch.run(sender), hear, polled);
}

fn hear(listener: &Arc<Listener>, tasks: &Arc<Tasks>, hint: JobHint) {
    let now = listener.about.now();
    let counters = &listener.metrics.counters;
    let mut scheduler = listener.scheduler.lock();
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
    begin_asking(listener, tasks, new);
}

pub(super) fn begin_asking(listener: &Arc<Listener>, tasks: &Arc<Tasks>, jobs: Vec<JobId>) {
    for id in jobs {
        let (listener, on) = (Arc::clone(listener), Arc::clone(tasks));
        tasks.errand("job-info", async move { ask(&listener, &on, &id).await });
    }
}

/// Asks CDS what a named job is.
async fn ask(listener: &Arc<Listener>, tasks: &Tasks, id: &JobId) {
    let Ok(_turn) = listener.asking.acquire().await else { return };
    if !listener.scheduler.lock().jobs.ask(id) {
        return;
    }
    listener.metrics.counters.count(Counted::Jobs);
    let answer = look_up(listener, id).await;
    let mut scheduler = listener.scheduler.lock();
    match answer {
        Ok(candidate) => {
            listener.metrics.counters.count(match id.protocol() {
                Protocol::V1 => Counted::V1JobsQueued,
                Protocol::V2 => Counted::V2JobsQueued,
            });
            scheduler.jobs.answered(id, candidate, listener.about.now());
            drop(scheduler);
            listener.signals.plan.notify_one();
        }
        Err(Unknown::Refused(refusal)) => {
            if refusal.counts_as_attempt() {
                scheduler.attempts.count(id, listener.about.now());
            }
            scheduler.jobs.remove(id);
            drop(scheduler);
            listener.verdicts.record_refusal(tasks, id, &refusal);
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

async fn look_up(listener: &Listener, id: &JobId) -> Result<Candidate, Unknown> {
    let job = match id {
        JobId::V1(number) => {
            let client: &v1::Client = listener.cds.v1().ok_or(Unknown::Gone)?;
            Job::from_v1(&client.job(*number).await?)?
        }
        JobId::V2(uuid) => {
            let client: &v2::Client = listener.cds.v2().ok_or(Unknown::Gone)?;
            Job::from_v2(&client.job(uuid).await?)?
        }
    };
    let model = listener.models.choose(&job).await?;
    Ok(Candidate { job: Arc::new(job), model })
}
