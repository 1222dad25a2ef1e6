//! The workers of one controller: they take keys and run passes while this process leads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use roost_supervise::Chain;
use roost_workqueue::{Order, Taken};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{Instrument, debug, error, info_span, warn};

use crate::cause::Cause;
use crate::controller::{Awaited, ControllerSettings, Lead, SharedClock, SharedRandom};
use crate::draft::Home;
use crate::intake::Intake;
use crate::key::Key;
use crate::metrics::ControllerMetrics;
use crate::next::{Remedial, Remedy};
use crate::object::Object;
use crate::pass::Pass;
use crate::reconciler::Reconciler;
use crate::verdict::{Outcome, judge};

/// How far the work may go. It only ever moves down this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Working,
    /// No new keys; running passes finish.
    Draining,
    /// Running passes are dropped where they are.
    Stopped,
}

#[derive(Debug, Clone)]
pub(crate) struct Run(pub(crate) watch::Receiver<Phase>);

impl Run {
    /// Returns when the phase is reached, also when nobody is left to say so.
    pub(crate) async fn reaches(&self, phase: Phase) {
        let _ = self.0.clone().wait_for(|now| *now >= phase).await;
    }
}

pub(crate) struct Worker<R: Reconciler> {
    pub(crate) name: String,
    pub(crate) settings: ControllerSettings,
    pub(crate) intake: Arc<Intake<R::Object>>,
    pub(crate) awaited: Vec<Awaited>,
    pub(crate) reconciler: Arc<R>,
    pub(crate) resource: <R::Object as kube::Resource>::DynamicType,
    pub(crate) home: Home<R::Object>,
    pub(crate) clock: SharedClock,
    pub(crate) random: SharedRandom,
    pub(crate) metrics: ControllerMetrics,
}

impl<R: Reconciler> Lead for Arc<Worker<R>> {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, run: Run) -> BoxFuture<'static, ()> {
        let worker = Arc::clone(self);
        Box::pin(async move { worker.run_all(run).await })
    }
}

impl<R: Reconciler> Worker<R> {
    async fn run_all(self: Arc<Self>, run: Run) {
        let synced = join_all(self.awaited.iter().map(|awaited| awaited()));
        tokio::select! {
            () = run.reaches(Phase::Draining) => return,
            _ = synced => {}
        }
        // What was queued while somebody else led may have been dropped with a pass of ours before that.
        self.intake.put_all(Cause::InitialList);
        let count = self.settings.workers.max(1);
        self.metrics.max_concurrent.set(i64::try_from(count).unwrap_or(i64::MAX));
        let mut workers = tokio::task::JoinSet::new();
        for number in 0..count {
            let (worker, run) = (Arc::clone(&self), run.clone());
            workers.spawn(async move { worker.work(number, run).await });
        }
        let resync = Arc::clone(&self).resync();
        tokio::select! {
            () = resync => {}
            () = run.reaches(Phase::Draining) => {}
        }
        while workers.join_next().await.is_some() {}
        self.metrics.max_concurrent.set(0);
    }

    async fn resync(self: Arc<Self>) {
        let Some(period) = self.settings.resync else { return std::future::pending().await };
        let mut random = self.random.fork("resync");
        loop {
            sleep(random.duration(period.mul_f64(0.9), period.mul_f64(1.1))).await;
            self.intake.put_all(Cause::Resync);
        }
    }

    async fn work(&self, number: usize, run: Run) {
        // Never the only worker: urgent keys need one.
        let share = self.settings.oldest_one_in;
        let takes_oldest = share > 0 && number > 0 && number % share == share - 1;
        let order = if takes_oldest { Order::Age } else { Order::Priority };
        loop {
            let taken = tokio::select! {
                biased;
                () = run.reaches(Phase::Draining) => return,
                taken = self.intake.queue.get_by(order) => taken,
            };
            let Some(taken) = taken else { return };
            self.metrics.active.inc();
            tokio::select! {
                biased;
                () = run.reaches(Phase::Stopped) => debug!(key = %taken.key(), "pass of {} is dropped", taken.key()),
                () = self.pass(&taken) => {}
            }
            self.metrics.active.dec();
        }
    }

    async fn pass(&self, taken: &Taken<Key>) {
        let key = taken.key();
        let span = info_span!("reconcile", controller = %self.name, %key);
        let began = Instant::now();
        let outcome = self.outcome(key).instrument(span.clone()).await;
        self.metrics.seconds.observe(began.elapsed().as_secs_f64());
        let verdict = judge(outcome, self.clock.now());
        self.metrics.count(verdict.counted);
        if verdict.is_forgiven {
            taken.forget();
        }
        let last = taken.priority();
        let priority = self.intake.priority_of(key, Cause::Requeued { last });
        if let Some(add) = verdict.requeue.add(priority) {
            self.intake.queue.add_with(add, [key.clone()]);
        }
    }

    async fn outcome(&self, key: &Key) -> Outcome {
        let pass = Pass {
            key: key.clone(),
            object: self.home.store.get(key),
            started: self.clock.now(),
            resource: self.resource.clone(),
            home: self.home.clone(),
        };
        let limit: Duration = self.settings.timeout;
        let running = AssertUnwindSafe(timeout(limit, self.reconciler.reconcile(&pass)));
        match running.catch_unwind().await {
            Ok(Ok(Ok(next))) => Outcome::Next(next),
            Ok(Ok(Err(error))) => self.failed(key, &error),
            Ok(Err(_)) => {
                self.metrics.errors.inc();
                self.metrics.timeouts.inc();
                warn!(%key, "pass of {key} was dropped after {limit:?}");
                Outcome::TimedOut
            }
            Err(panic) => {
                self.metrics.errors.inc();
                self.metrics.panics.inc();
                let message = panic_message(panic.as_ref());
                error!(%key, "pass of {key} panicked: {message}");
                Outcome::Panicked
            }
        }
    }

    fn failed(&self, key: &Key, error: &R::Error) -> Outcome {
        let remedy = error.remedy();
        let why = Chain(error);
        match remedy {
            Remedy::Backoff => {
                self.metrics.errors.inc();
                warn!(%key, "{key}: {why}");
            }
            Remedy::Person => {
                self.metrics.errors.inc();
                self.metrics.terminal_errors.inc();
                error!(%key, "{key} needs somebody's help: {why}");
            }
            Remedy::After(_) | Remedy::AwaitChange => debug!(%key, "{key}: {why}"),
        }
        Outcome::Error(remedy)
    }
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

impl<R: Reconciler> std::fmt::Debug for Worker<R>
where
    R::Object: Object,
{
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}
