//! Background tasks that do not die silently: a panic is caught, counted and seen, and the task begins anew after a pause (W10). Nor do they hang
//! silently: each says before every step by when it will be heard again, and one that keeps silent for longer is seen.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

use crate::metrics::OwnMetrics;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A task that ran this long before it panicked begins with short pauses again.
const STEADY: Duration = Duration::from_mins(5);

/// Loops that begin nothing and that work under way cannot do without: it waits for what they see. They go on until it is done.
const SENSES: [&str; 2] = ["inventory", "worker-lists"];

/// All tasks of a hatchery. They hold it themselves, so it must be ended.
pub(crate) struct Tasks {
    shared: Arc<Shared>,
    loops: Mutex<JoinSet<()>>,
    senses: Mutex<JoinSet<()>>,
}

struct Shared {
    states: Mutex<BTreeMap<&'static str, State>>,
    /// Work with an end, such as the start of one worker.
    errands: Mutex<JoinSet<()>>,
    errand_ended: Notify,
    metrics: OwnMetrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct State {
    is_running: bool,
    restarts: u64,
    /// `None`: it waits for something that may take any time, or has not begun yet.
    beat: Option<Beat>,
}

/// The last that was heard of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beat {
    at: Instant,
    /// By when it is heard again unless it hangs.
    due: Option<Instant>,
}

/// How a supervised task is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskHealth {
    pub name: &'static str,
    pub is_running: bool,
    pub restarts: u64,
    /// How long nothing was heard of it, if that is longer than its own deadlines allow: it hangs.
    pub silent: Option<Duration>,
}

impl Tasks {
    pub(crate) fn new(metrics: OwnMetrics) -> Self {
        let shared = Shared {
            states: Mutex::default(),
            errands: Mutex::default(),
            errand_ended: Notify::new(),
            metrics,
        };
        Self { shared: Arc::new(shared), loops: Mutex::default(), senses: Mutex::default() }
    }

    /// Runs `body` for as long as the hatchery lives. It is begun again if it panics; if it returns, that was its end.
    pub(crate) fn supervise<F>(&self, name: &'static str, body: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        shared.set(name, |state| state.is_running = true);
        let kind = if SENSES.contains(&name) { &self.senses } else { &self.loops };
        lock(kind).spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                let began = Instant::now();
                let ended = AbortOnDrop(tokio::spawn(body())).join().await;
                let Err(error) = ended else {
                    // What has come to its end is missed by nobody.
                    lock(&shared.states).remove(name);
                    return;
                };
                shared.set(name, |state| (state.is_running, state.beat) = (false, None));
                let Ok(panic) = error.try_into_panic() else { return };
                tracing::error!(task = name, "panicked and begins anew: {}", words(&*panic));
                shared.metrics.task_restarted(name);
                if began.elapsed() >= STEADY {
                    pause = FIRST_PAUSE;
                }
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                shared.set(name, |state| {
                    state.is_running = true;
                    state.restarts += 1;
                });
            }
        });
    }

    /// A loop goes on, and is heard again `within` this long at the latest: the next step is bounded by deadlines of its own that add up to less.
    pub(crate) fn beat(&self, name: &'static str, within: Duration) {
        let at = Instant::now();
        self.shared.heard(name, Some(Beat { at, due: at.checked_add(within) }));
    }

    /// A loop goes on to wait for something that may take any time.
    pub(crate) fn rest(&self, name: &'static str) {
        self.shared.heard(name, None);
    }

    /// Work with an end. `kind` is from a closed set; a panic is counted under it and ends only this piece of work.
    pub(crate) fn errand(
        &self,
        kind: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let shared = Arc::clone(&self.shared);
        let mut errands = lock(&self.shared.errands);
        while errands.try_join_next().is_some() {}
        errands.spawn(async move {
            shared.run(kind, work).await;
            shared.errand_ended.notify_waiters();
        });
    }

    /// As an errand, but nobody waits for its end at shutdown: the next start takes it up again.
    pub(crate) fn aside(
        &self,
        kind: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let shared = Arc::clone(&self.shared);
        let mut loops = lock(&self.loops);
        while loops.try_join_next().is_some() {}
        loops.spawn(async move { shared.run(kind, work).await });
    }

    pub(crate) fn errands(&self) -> usize {
        let mut errands = lock(&self.shared.errands);
        while errands.try_join_next().is_some() {}
        errands.len()
    }

    /// Ends the loops, so that nothing new is begun, and gives running errands this long to finish. Returns how many did not.
    pub(crate) async fn drain(&self, grace: Duration) -> usize {
        lock(&self.loops).abort_all();
        let deadline = Instant::now() + grace;
        loop {
            let ended = self.shared.errand_ended.notified();
            let left = self.errands();
            if left == 0 || timeout_at(deadline, ended).await.is_err() {
                self.end();
                return left;
            }
        }
    }

    /// Ends everything at its next wait.
    pub(crate) fn end(&self) {
        lock(&self.loops).abort_all();
        lock(&self.senses).abort_all();
        lock(&self.shared.errands).abort_all();
    }

    pub(crate) fn health(&self) -> Vec<TaskHealth> {
        let now = Instant::now();
        let health = |(name, state): (&&'static str, &State)| TaskHealth {
            name,
            is_running: state.is_running,
            restarts: state.restarts,
            silent: state.silence(now),
        };
        lock(&self.shared.states).iter().map(health).collect()
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.health()).finish()
    }
}

impl State {
    fn silence(&self, now: Instant) -> Option<Duration> {
        let beat = self.beat.filter(|beat| beat.due.is_some_and(|due| due < now))?;
        Some(now.duration_since(beat.at))
    }
}

impl Shared {
    /// Nothing of a task that has come to its end.
    fn heard(&self, name: &'static str, beat: Option<Beat>) {
        if let Some(state) = lock(&self.states).get_mut(name) {
            state.beat = beat;
        }
    }

    fn set(&self, name: &'static str, change: impl FnOnce(&mut State)) {
        change(lock(&self.states).entry(name).or_default());
    }

    /// To its end; a panic is caught and counted.
    async fn run(&self, kind: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let ended = AbortOnDrop(tokio::spawn(work)).join().await;
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            tracing::error!(task = kind, "panicked: {}", words(&*panic));
            self.metrics.task_restarted(kind);
        }
    }
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop(JoinHandle<()>);

impl AbortOnDrop {
    async fn join(mut self) -> Result<(), JoinError> {
        (&mut self.0).await
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use prometheus_client::registry::Registry;

    use super::*;
    use crate::metrics::Metrics;

    fn tasks() -> Tasks {
        Tasks::new(Metrics::register(&mut Registry::default(), "h1").own)
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_is_seen_and_begins_anew_after_a_pause() {
        let (tasks, begun) = (tasks(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&begun);
        tasks.supervise("mainRoutine", move || {
            let count = Arc::clone(&count);
            async move {
                assert!(count.fetch_add(1, Ordering::SeqCst) >= 2, "it breaks twice");
                std::future::pending::<()>().await;
            }
        });
        sleep(Duration::from_millis(500)).await;
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        assert!(!tasks.health()[0].is_running, "between two runs it does not run");
        sleep(Duration::from_secs(10)).await;
        assert_eq!(begun.load(Ordering::SeqCst), 3);
        let (name, silent) = ("mainRoutine", None);
        let health = TaskHealth { name, is_running: true, restarts: 2, silent };
        assert_eq!(tasks.health(), [health]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_not_heard_in_time_hangs_and_one_that_rests_does_not() {
        let tasks = Arc::new(tasks());
        let minute = Duration::from_mins(1);
        let on = Arc::clone(&tasks);
        tasks.supervise("goes-on", move || {
            let on = Arc::clone(&on);
            async move {
                loop {
                    on.beat("goes-on", minute);
                    sleep(minute).await;
                }
            }
        });
        let on = Arc::clone(&tasks);
        tasks.supervise("hangs", move || {
            on.beat("hangs", minute);
            std::future::pending()
        });
        let on = Arc::clone(&tasks);
        tasks.supervise("rests", move || {
            on.beat("rests", minute);
            on.rest("rests");
            std::future::pending()
        });
        tasks.supervise("never-said-anything", std::future::pending);
        let silent = || -> Vec<_> {
            let health = tasks.health().into_iter();
            health.filter_map(|task| Some((task.name, task.silent?))).collect()
        };
        sleep(Duration::from_secs(59)).await;
        assert_eq!(silent(), []);
        sleep(minute * 60).await;
        let [("hangs", since)] = silent()[..] else { panic!("{:?}", silent()) };
        assert!(since > minute * 60, "{since:?}");
        // What has come to its end is not awaited either.
        tasks.beat("ended", minute);
        assert_eq!(tasks.health().len(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_what_is_under_way_and_not_longer_than_it_may() {
        let (tasks, done) = (tasks(), Arc::new(AtomicU32::new(0)));
        for secs in [5, 3600] {
            let done = Arc::clone(&done);
            tasks.errand("spawn", async move {
                sleep(Duration::from_secs(secs)).await;
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        tasks.errand("spawn", async { panic!("one that breaks holds up nobody") });
        assert_eq!(tasks.drain(Duration::from_secs(30)).await, 1);
        sleep(Duration::from_hours(2)).await;
        assert_eq!(done.load(Ordering::SeqCst), 1, "what did not finish in time was ended");
    }
}
