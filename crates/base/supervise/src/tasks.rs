//! Background tasks that do not die silently: a panic is caught, reported and seen, and the task begins anew after a pause. Nor do they hang
//! silently: each says before every step by when it will be heard again, and one that keeps silent for longer is seen.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

use crate::Backoff;

/// Between a panic and the next start.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));
/// A task that ran this long before it panicked begins with short pauses again.
const STEADY: Duration = Duration::from_mins(5);

/// All background tasks of one service. They often hold the service themselves, so they must be ended.
pub struct Tasks {
    shared: Arc<Shared>,
    loops: Mutex<JoinSet<()>>,
    outlasting: Mutex<JoinSet<()>>,
    /// Names of the loops that begin nothing and that work under way cannot do without. They go on until it is done.
    outlasting_names: &'static [&'static str],
}

struct Shared {
    states: Mutex<BTreeMap<&'static str, State>>,
    /// Work with an end, such as the start of one machine.
    errands: Mutex<JoinSet<()>>,
    /// Told of every panic, with the name of the loop or the kind of work.
    panicked: Box<dyn Fn(&'static str) + Send + Sync>,
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
    /// `panicked` is told of every panic, with the name of the loop or the kind of work: a closed set, so it can be a metric's label.
    pub fn new(panicked: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        let shared = Shared {
            states: Mutex::default(),
            errands: Mutex::default(),
            panicked: Box::new(panicked),
        };
        Self {
            shared: Arc::new(shared),
            loops: Mutex::default(),
            outlasting: Mutex::default(),
            outlasting_names: &[],
        }
    }

    /// Loops of these names begin nothing, and work under way waits for what they see: they go on until it is done.
    #[must_use]
    pub fn outlasting_work(self, names: &'static [&'static str]) -> Self {
        Self { outlasting_names: names, ..self }
    }

    /// Runs `body` for as long as the service lives. It is begun again if it panics; if it returns, that was its end.
    pub fn supervise<F>(&self, name: &'static str, body: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        shared.set(name, |state| state.is_running = true);
        let kind =
            if self.outlasting_names.contains(&name) { &self.outlasting } else { &self.loops };
        lock(kind).spawn(async move {
            let mut attempts = PAUSES.attempts();
            loop {
                let began = Instant::now();
                let ended = match begin(&body) {
                    Ok(run) => AbortOnDrop(tokio::spawn(run)).join().await.map_err(Ended::of),
                    Err(panic) => Err(Ended::Panicked(panic)),
                };
                let Err(ended) = ended else {
                    // A loop that returned on purpose is not reported as dead.
                    lock(&shared.states).remove(name);
                    return;
                };
                shared.set(name, |state| (state.is_running, state.beat) = (false, None));
                let Ended::Panicked(panic) = ended else { return };
                shared.report(name, "panicked and begins anew", &*panic);
                if began.elapsed() >= STEADY {
                    attempts.reset();
                }
                if let Some(pause) = attempts.failed() {
                    sleep(pause).await;
                }
                shared.set(name, |state| {
                    state.is_running = true;
                    state.restarts += 1;
                });
            }
        });
    }

    /// A loop goes on, and is heard again `within` this long at the latest: the next step is bounded by deadlines of its own that add up to less.
    pub fn beat(&self, name: &'static str, within: Duration) {
        let at = Instant::now();
        self.shared.heard(name, Some(Beat { at, due: at.checked_add(within) }));
    }

    /// A loop goes on to wait for something that may take any time.
    pub fn rest(&self, name: &'static str) {
        self.shared.heard(name, None);
    }

    /// Work with an end. `kind` is from a closed set; a panic is counted under it and ends only this piece of work.
    pub fn errand(&self, kind: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        let mut errands = lock(&self.shared.errands);
        while errands.try_join_next().is_some() {}
        errands.spawn(async move { shared.run(kind, work).await });
    }

    /// As an errand, but nobody waits for its end at shutdown: the next start takes it up again.
    pub fn aside(&self, kind: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        let mut loops = lock(&self.loops);
        while loops.try_join_next().is_some() {}
        loops.spawn(async move { shared.run(kind, work).await });
    }

    pub fn errands(&self) -> usize {
        let mut errands = lock(&self.shared.errands);
        while errands.try_join_next().is_some() {}
        errands.len()
    }

    /// Ends the loops, so that nothing new is begun, and gives running errands this long to finish. Returns how many did not. All tasks have ended
    /// then, unless one does not come to a wait before the time is over.
    pub async fn drain(&self, grace: Duration) -> usize {
        let deadline = Instant::now() + grace;
        lock(&self.loops).abort_all();
        let _ = timeout_at(deadline, joined(&self.loops)).await;
        let left = match timeout_at(deadline, joined(&self.shared.errands)).await {
            Ok(()) => 0,
            Err(_) => self.errands(),
        };
        self.end();
        let _ = timeout_at(deadline, joined(&self.outlasting)).await;
        left
    }

    /// Waits until each loop has come to its own end; one that does not end by itself is waited for in vain.
    pub async fn finished(&self) {
        joined(&self.loops).await;
    }

    /// Ends everything at its next wait.
    pub fn end(&self) {
        lock(&self.loops).abort_all();
        lock(&self.outlasting).abort_all();
        lock(&self.shared.errands).abort_all();
    }

    pub fn health(&self) -> Vec<TaskHealth> {
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

    /// To its end; a panic is caught and reported.
    async fn run(&self, kind: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let ended = AbortOnDrop(tokio::spawn(work)).join().await.map_err(Ended::of);
        if let Err(Ended::Panicked(panic)) = ended {
            self.report(kind, "panicked", &*panic);
        }
    }

    /// A log or a metric that panics in its turn must not end the supervision.
    fn report(&self, name: &'static str, how: &str, panic: &(dyn Any + Send)) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.panicked)(name)));
        let _ = catch_unwind(AssertUnwindSafe(|| {
            tracing::error!(task = name, "{how}: {}", words(panic));
        }));
    }
}

/// Why a task did not come to its own end.
enum Ended {
    Panicked(Box<dyn Any + Send>),
    Cancelled,
}

impl Ended {
    fn of(error: JoinError) -> Self {
        error.try_into_panic().map_or(Self::Cancelled, Self::Panicked)
    }
}

/// Also what `body` does before its first wait can panic.
fn begin<F>(body: &impl Fn() -> F) -> Result<F, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(body))
}

/// Waits until each of them has ended. They may be added to meanwhile.
async fn joined(tasks: &Mutex<JoinSet<()>>) {
    while poll_fn(|cx| lock(tasks).poll_join_next(cx)).await.is_some() {}
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

    use super::*;

    fn tasks() -> Tasks {
        Tasks::new(|_| {})
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

    #[tokio::test(start_paused = true)]
    async fn draining_ends_as_soon_as_the_last_piece_of_work_has() {
        let tasks = tasks();
        let began = Instant::now();
        for _ in 0..20 {
            tasks.errand("spawn", sleep(Duration::from_secs(2)));
        }
        tasks.supervise("mainRoutine", std::future::pending);
        assert_eq!(tasks.drain(Duration::from_secs(30)).await, 0, "nothing was left");
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        assert_eq!(tasks.errands(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_begins_more_work_is_waited_for() {
        let tasks = Arc::new(tasks());
        let on = Arc::clone(&tasks);
        tasks.errand("first", async move {
            sleep(Duration::from_secs(1)).await;
            on.errand("second", sleep(Duration::from_secs(1)));
        });
        let began = Instant::now();
        assert_eq!(tasks.drain(Duration::from_secs(30)).await, 0);
        assert_eq!(began.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_panics_does_not_end_the_supervision() {
        let tasks = Tasks::new(|_| panic!("stderr cannot be written"));
        let begun = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&begun);
        tasks.supervise("mainRoutine", move || {
            let before = count.fetch_add(1, Ordering::SeqCst);
            async move {
                assert!(before > 0, "the first run breaks");
                std::future::pending::<()>().await;
            }
        });
        sleep(Duration::from_secs(5)).await;
        assert_eq!(begun.load(Ordering::SeqCst), 2);
        assert!(tasks.health()[0].is_running);
    }
}
