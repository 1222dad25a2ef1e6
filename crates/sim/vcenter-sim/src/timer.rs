//! Work for later, in an order that a seed replays.
//!
//! tokio wakes the tasks of one instant in an order that is its own business. All delayed work therefore sits in one
//! queue with one driver, which runs what is due by deadline and, within one, in the order it was set.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::world::{Handle, Shared, World};

type Work = Box<dyn FnOnce(&mut World, &Handle) + Send>;

#[derive(Default)]
pub(crate) struct Timers {
    queue: Mutex<Queue>,
    earlier: Notify,
}

#[derive(Default)]
struct Queue {
    due: BTreeMap<(Instant, u64), Work>,
    set: u64,
}

impl Timers {
    pub(crate) fn set(&self, delay: Duration, work: Work) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // tokio cannot sleep longer than some years; nothing simulated does.
        let deadline = Instant::now() + delay.min(MAX_DELAY);
        let key = (deadline, queue.set);
        queue.set += 1;
        queue.due.insert(key, work);
        if queue.due.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.earlier.notify_one();
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.due.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn pop_due(&self, now: Instant) -> Option<Work> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let first = queue.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

const MAX_DELAY: Duration = Duration::from_hours(365 * 24);

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("next", &self.next_deadline()).finish_non_exhaustive()
    }
}

/// Runs what falls due until the simulator is dropped.
pub(crate) async fn drive(shared: Weak<Shared>, timers: std::sync::Arc<Timers>) {
    loop {
        match timers.next_deadline() {
            None => timers.earlier.notified().await,
            Some(deadline) => {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(deadline) => {}
                    () = timers.earlier.notified() => continue,
                }
            }
        }
        let Some(shared) = shared.upgrade() else { return };
        while let Some(work) = timers.pop_due(Instant::now()) {
            shared.run_guarded(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roost_clock::SimClock;

    use super::*;
    use crate::options::Options;

    #[tokio::test(start_paused = true)]
    async fn timers_run_by_deadline_and_then_in_the_order_they_were_set() {
        let handle = Shared::start(Options::default(), Arc::new(SimClock::new()));
        let order: Arc<Mutex<Vec<&str>>> = Arc::default();
        let note = |name: &'static str| {
            let order = Arc::clone(&order);
            move |_: &mut World, _: &Handle| order.lock().unwrap().push(name)
        };
        let second = Duration::from_secs(1);
        handle.after(second * 2, note("late"));
        for name in ["first", "second", "third"] {
            handle.after(second, note(name));
        }
        let nested = note("at the same instant");
        handle.after(second, move |_, handle| handle.after(Duration::ZERO, nested));
        handle.after(Duration::ZERO, note("at once"));
        tokio::time::sleep(second * 3).await;
        let expected = ["at once", "first", "second", "third", "at the same instant", "late"];
        assert_eq!(*order.lock().unwrap(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_still_to_run_does_not_keep_the_simulator() {
        let handle = Shared::start(Options::default(), Arc::new(SimClock::new()));
        let ran: Arc<Mutex<bool>> = Arc::default();
        let note = Arc::clone(&ran);
        handle.after(Duration::from_secs(1), move |_, _| *note.lock().unwrap() = true);
        tokio::task::yield_now().await;
        let gone = Arc::downgrade(&handle);
        drop(handle);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(gone.upgrade().is_none());
        assert!(!*ran.lock().unwrap());
    }
}
