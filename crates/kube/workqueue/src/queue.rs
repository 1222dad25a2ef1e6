use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::add::Add;
use crate::metrics::{Metrics, Report};
use crate::moment::Moment;
use crate::record::Slot;
use crate::settings::{Order, Settings};
use crate::state::{State, Wake};
use crate::tally::Tally;

/// The queue. Cheap to clone; all clones are the same queue.
pub struct Workqueue<K: Eq + Hash + Clone> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    epoch: Instant,
    // Held for a few hundred nanoseconds and never across an await, so a plain mutex is the fastest.
    state: Mutex<State<K>>,
    changed: Notify,
}

impl<K: Eq + Hash + Clone> Clone for Workqueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Eq + Hash + Clone> fmt::Debug for Workqueue<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Workqueue").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<K: Eq + Hash + Clone> Workqueue<K> {
    pub fn new(settings: &Settings) -> Self {
        let state = Mutex::new(State::new(settings));
        let shared = Shared { epoch: Instant::now(), state, changed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Ready at once, at priority 0.
    pub fn add(&self, key: K) {
        self.add_with(Add::default(), [key]);
    }

    /// Does nothing once the queue is shut down.
    pub fn add_with(&self, add: Add, keys: impl IntoIterator<Item = K>) {
        let (mut ready, mut is_sooner) = (0, false);
        // Before the lock: others need not wait for the clock.
        let now = self.shared.now();
        let mut state = self.shared.lock();
        for key in keys {
            match state.add(now, self.shared.epoch, add, key) {
                Wake::Nobody => {}
                Wake::One => ready += 1,
                Wake::All => is_sooner = true,
            }
        }
        drop(state);
        if is_sooner {
            self.shared.wake(Wake::All);
        }
        self.shared.wake_workers(ready);
    }

    /// Waits for a key. `None` once the queue is shut down. Nothing is lost when the future is dropped.
    pub async fn get(&self) -> Option<Taken<K>> {
        self.get_by(Order::Priority).await
    }

    pub async fn get_by(&self, order: Order) -> Option<Taken<K>> {
        loop {
            if let Poll::Done(taken) = self.poll(order) {
                return taken;
            }
            let mut changed = pin!(self.shared.changed.notified());
            // From here on a change is not missed; what changed before is seen by the next look.
            changed.as_mut().enable();
            match self.poll(order) {
                Poll::Done(taken) => return taken,
                Poll::Nothing { next_due: None } => changed.await,
                Poll::Nothing { next_due: Some(due) } => {
                    tokio::select! {
                        () = changed => {}
                        () = sleep_until(due) => {}
                    }
                }
            }
        }
    }

    /// A key if one is ready.
    pub fn try_get(&self, order: Order) -> Option<Taken<K>> {
        match self.poll(order) {
            Poll::Done(taken) => taken,
            Poll::Nothing { .. } => None,
        }
    }

    fn poll(&self, order: Order) -> Poll<K> {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        if state.is_closed() {
            return Poll::Done(None);
        }
        let known = state.len();
        let Some(handed) = state.take(now, order) else {
            let next_due =
                state.next_due().map(|due| self.shared.epoch + due.since(Moment::default()));
            return Poll::Nothing { next_due };
        };
        // Several delays may have ended at once: each of the keys is worth a worker.
        let ripened = state.len().saturating_sub(known);
        drop(state);
        self.shared.wake_workers(ripened);
        let queue = self.clone();
        Poll::Done(Some(Taken {
            key: handed.key,
            priority: handed.priority,
            slot: handed.slot,
            queue,
        }))
    }

    /// The key works again: its next back-off starts from the beginning.
    pub fn forget(&self, key: &K) {
        self.shared.lock().failures.forget(key);
    }

    /// Rate-limited adds of the key since it was last forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.lock().failures.of(key)
    }

    /// Keys that are ready, taken ones that were added again included; those with a delay are not.
    pub fn len(&self) -> usize {
        let mut state = self.shared.lock();
        self.shared.ripen(&mut state);
        state.len()
    }

    /// Keys that are ready, by the label of their priority.
    pub fn depths(&self) -> Vec<(String, u64)> {
        let mut state = self.shared.lock();
        self.shared.ripen(&mut state);
        let depths = state.tally.depths.iter();
        depths.map(|depth| (depth.label.to_string(), depth.keys)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops what is queued and sends everyone home who waits for a key.
    pub fn shut_down(&self) {
        self.shared.lock().close();
        self.shared.changed.notify_waiters();
    }
}

impl<K: Eq + Hash + Clone + Send + 'static> Workqueue<K> {
    /// A queue whose metrics carry this name, as `name` and as `controller`.
    pub fn measured(settings: &Settings, name: &str, metrics: &Metrics) -> Self {
        let queue = Self::new(settings);
        let report: Arc<dyn Report> = Arc::clone(&queue.shared) as _;
        metrics.watch(name, &report);
        queue
    }
}

enum Poll<K: Eq + Hash + Clone> {
    Done(Option<Taken<K>>),
    Nothing { next_due: Option<Instant> },
}

impl<K: Eq + Hash + Clone> Shared<K> {
    fn now(&self) -> Moment {
        Moment::between(self.epoch, Instant::now())
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            Wake::One => self.changed.notify_one(),
            Wake::All => self.changed.notify_waiters(),
        }
    }

    fn wake_workers(&self, keys: usize) {
        for _ in 0..keys {
            self.changed.notify_one();
        }
    }

    fn ripen(&self, state: &mut State<K>) -> Moment {
        let (now, known) = (self.now(), state.len());
        state.ripen(now);
        self.wake_workers(state.len() - known);
        now
    }
}

impl<K> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone + Send + 'static> Report for Shared<K> {
    fn report(&self) -> (Tally, Moment) {
        let mut state = self.lock();
        let now = self.ripen(&mut state);
        (state.tally.clone(), now)
    }
}

/// A key that is in the hands of a worker. Nobody else is given it until this is dropped, also when the
/// worker panics; if it was added in the meantime, it can then be taken again.
#[derive(Debug)]
pub struct Taken<K: Eq + Hash + Clone> {
    key: K,
    priority: i32,
    slot: Slot,
    queue: Workqueue<K>,
}

impl<K: Eq + Hash + Clone> Taken<K> {
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The highest priority that was asked for since the key was last handed out.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Gives the key back.
    pub fn done(self) {}

    /// Gives the key back and adds it again in one step.
    pub fn requeue(self, add: Add) {
        self.queue.add_with(add, [self.key.clone()]);
    }

    /// Resets the back-off of the key.
    pub fn forget(&self) {
        self.queue.forget(&self.key);
    }
}

impl<K: Eq + Hash + Clone> Drop for Taken<K> {
    fn drop(&mut self) {
        let shared = &self.queue.shared;
        let now = shared.now();
        let wake = shared.lock().done(now, self.slot);
        shared.wake(wake);
    }
}
