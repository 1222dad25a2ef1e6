//! Work that was started and left: which object waits for what, and how it ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use roost_controller::{Key, Trigger};
use roost_fleet::MachineError;
use roost_supervise::{Backoff, Chain};
use tokio::time::Instant;

use crate::flow::power_state::Asked;
use crate::flow::{Done, Flow, Halt};
use crate::planted::{self, Bug};

/// A handle; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    trigger: OnceLock<Trigger>,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<Key, Running>,
    ended: BTreeMap<Key, Ended>,
    asked: BTreeMap<Key, Asked>,
    reverted: BTreeSet<Key>,
    customized: BTreeSet<Key>,
    failed: BTreeMap<(Key, Done), Failed>,
    /// The last request for another configuration, by a print of it, and how often in a row vCenter has taken just that one.
    requested: BTreeMap<Key, Requested>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Requested {
    print: u64,
    taken: u32,
    last: Timestamp,
}

/// So often the same request may be needed: somebody may have undone it.
const TAKEN_IN_VAIN: u32 = 3;
/// How long it is not sent after that.
const IN_VAIN: Backoff = Backoff::new(Duration::from_mins(1), Duration::from_hours(1));

/// A step that failed, and may not be begun again before its time. The queue's own back-off does not count it: starting a step is a success.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failed {
    error: String,
    times: u32,
    not_before: Timestamp,
}

/// Some failures pass at once; a server that is full is not asked every second for ever.
const AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(2));

/// A step that goes on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) step: Done,
    pub(crate) since: Timestamp,
}

/// A step that has ended, until a pass has taken it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) step: Done,
    pub(crate) since: Timestamp,
    pub(crate) error: Option<String>,
}

/// A step that has begun. Dropped before its end is told, as with a pass that is given up in the middle of its request, it does not run any more, and the
/// object is looked at again: nobody knows how far the request came.
#[derive(Debug)]
#[must_use]
pub(crate) struct Begun {
    steps: Steps,
    key: Key,
    now: Timestamp,
    started: Instant,
    is_open: bool,
}

impl Begun {
    /// What is to be told of the step's end. It says nothing when it is dropped.
    pub(crate) fn told<T>(&self) -> impl FnOnce(Result<T, MachineError>) + Send + use<T> {
        let (steps, key, now, begun) =
            (self.steps.clone(), self.key.clone(), self.now, self.started);
        move |ended| {
            let error = ended.err().map(|error| Chain(&error).to_string());
            steps.end(&key, error, now + begun.elapsed());
        }
    }

    /// For work that goes on by itself: the step ends with it, however it ends.
    pub(crate) fn into_told<T>(self) -> impl FnOnce(Result<T, MachineError>) + Send + use<T> {
        move |ended| {
            self.told()(ended);
            self.goes_on();
        }
    }

    /// Somebody else tells of its end.
    pub(crate) fn goes_on(mut self) {
        self.is_open = false;
    }

    /// It could not be started, and the pass says so.
    pub(crate) fn never_began(mut self) {
        self.is_open = false;
        self.steps.state().running.remove(&self.key);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.is_open {
            self.steps.state().running.remove(&self.key);
            self.steps.signal(&self.key);
        }
    }
}

impl Steps {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever is called when a step has ended.
    pub(crate) fn call(&self, trigger: Trigger) {
        let _ = self.shared.trigger.set(trigger);
    }

    pub(crate) fn running(&self, key: &Key) -> Option<Running> {
        self.state().running.get(key).copied()
    }

    /// A step that has failed before has its pause.
    pub(crate) fn may_begin(&self, key: &Key, step: Done, now: Timestamp) -> Flow {
        let not_before = self.state().failed.get(&(key.clone(), step)).map(|of| of.not_before);
        match not_before.filter(|at| *at > now) {
            Some(_) if planted::is(Bug::ForgetsErrors) => Err(Halt::Done(Done::HasOutstandingTask)),
            Some(at) => Err(Halt::RequeueAt(at)),
            None => Ok(()),
        }
    }

    /// Why a step failed when it was last tried.
    pub(crate) fn last_error(&self, key: &Key, step: Done) -> Option<String> {
        self.state().failed.get(&(key.clone(), step)).map(|failed| failed.error.clone())
    }

    /// Notes that a step begins. It runs for as long as what is returned is held, or the step was handed to whoever tells of its end.
    pub(crate) fn begin(&self, key: &Key, step: Done, now: Timestamp) -> Begun {
        self.state().running.insert(key.clone(), Running { step, since: now });
        Begun { steps: self.clone(), key: key.clone(), now, started: Instant::now(), is_open: true }
    }

    pub(crate) fn end(&self, key: &Key, error: Option<String>, now: Timestamp) {
        {
            let mut state = self.state();
            let Some(running) = state.running.remove(key) else { return };
            let of = (key.clone(), running.step);
            if let Some(error) = error.clone() {
                let times = state.failed.get(&of).map_or(0, |of| of.times) + 1;
                let not_before = now + AGAIN.pause(times);
                state.failed.insert(of, Failed { error, times, not_before });
            } else {
                state.failed.remove(&of);
                if running.step == Done::Reconfigured
                    && let Some(requested) = state.requested.get_mut(key)
                {
                    (requested.taken, requested.last) = (requested.taken + 1, now);
                }
            }
            if running.step == Done::RevertStarted && error.is_none() {
                state.reverted.insert(key.clone());
            }
            if running.step == Done::Customized && error.is_none() {
                state.customized.insert(key.clone());
            }
            let ended = Ended { step: running.step, since: running.since, error };
            state.ended.insert(key.clone(), ended);
        }
        self.signal(key);
    }

    pub(crate) fn signal(&self, key: &Key) {
        if let Some(trigger) = self.shared.trigger.get() {
            trigger.signal(key.clone());
        }
    }

    pub(crate) fn take_ended(&self, key: &Key) -> Option<Ended> {
        self.state().ended.remove(key)
    }

    /// Whether a revert has ended that nobody has taken up yet. After a crash it is done once more, which changes nothing.
    pub(crate) fn take_reverted(&self, key: &Key) -> bool {
        self.state().reverted.remove(key)
    }

    /// Whether a customization has ended that nobody has taken up yet.
    pub(crate) fn take_customized(&self, key: &Key) -> bool {
        self.state().customized.remove(key)
    }

    /// What the guest was asked to do by itself.
    pub(crate) fn asked(&self, key: &Key) -> Option<Asked> {
        self.state().asked.get(key).copied()
    }

    pub(crate) fn note_asked(&self, key: &Key, asked: Option<Asked>) {
        match asked {
            Some(asked) => self.state().asked.insert(key.clone(), asked),
            None => self.state().asked.remove(key),
        };
    }

    /// A request for another configuration is sent.
    pub(crate) fn note_request(&self, key: &Key, print: u64) {
        let mut state = self.state();
        let is_same = state.requested.get(key).is_some_and(|before| before.print == print);
        if !is_same {
            let last = Timestamp::UNIX_EPOCH;
            state.requested.insert(key.clone(), Requested { print, taken: 0, last });
        }
    }

    /// Whether this request was taken so often, so lately, that it makes no difference.
    pub(crate) fn is_in_vain(&self, key: &Key, print: u64, now: Timestamp) -> bool {
        let requested = self.state().requested.get(key).copied();
        requested
            .filter(|of| of.print == print && of.taken >= TAKEN_IN_VAIN)
            .is_some_and(|of| now < of.last + IN_VAIN.pause(of.taken - TAKEN_IN_VAIN + 1))
    }

    /// The object is gone.
    pub(crate) fn forget(&self, key: &Key) {
        let mut state = self.state();
        state.ended.remove(key);
        state.asked.remove(key);
        state.reverted.remove(key);
        state.customized.remove(key);
        state.failed.retain(|(of, _), _| of != key);
        state.requested.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_runs_until_it_is_told_to_have_ended_and_is_taken_up_once() {
        let (steps, key, now) = (Steps::default(), Key::new("a", "b"), Timestamp::UNIX_EPOCH);
        let told = steps.begin(&key, Done::Reconfigured, now).into_told::<()>();
        assert_eq!(steps.running(&key).unwrap().step, Done::Reconfigured);
        assert_eq!(steps.take_ended(&key), None);
        told(Ok(()));
        assert_eq!(steps.running(&key), None);
        let ended = Ended { step: Done::Reconfigured, since: now, error: None };
        assert_eq!(steps.take_ended(&key), Some(ended));
        assert_eq!(steps.take_ended(&key), None);
    }

    #[test]
    fn a_step_that_is_given_up_on_the_way_does_not_run_for_ever() {
        let (steps, key, now) = (Steps::default(), Key::new("a", "b"), Timestamp::UNIX_EPOCH);
        let is_running = || steps.running(&key).is_some();
        let begun = steps.begin(&key, Done::PowerStateUpdated, now);
        let told = begun.told::<()>();
        assert!(is_running());
        // As when the future of a pass is dropped.
        drop((told, begun));
        assert!(!is_running(), "in its request");
        drop(steps.begin(&key, Done::CreateStarted, now).into_told::<()>());
        assert!(!is_running(), "in its work");
        let begun = steps.begin(&key, Done::PowerStateUpdated, now);
        let told = begun.told::<()>();
        begun.goes_on();
        assert!(is_running(), "the request was taken");
        told(Ok(()));
        assert!(!is_running());
        steps.begin(&key, Done::PowerStateUpdated, now).never_began();
        assert!(!is_running());
    }

    /// vcsim takes `managedBy` and does not keep it.
    #[test]
    fn a_request_that_makes_no_difference_is_sent_seldom() {
        let (steps, key) = (Steps::default(), Key::new("a", "b"));
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        let send = |print: u64, now: i64, error: Option<&str>| {
            steps.note_request(&key, print);
            let running = Running { step: Done::Reconfigured, since: at(now) };
            steps.state().running.insert(key.clone(), running);
            steps.end(&key, error.map(str::to_owned), at(now));
        };
        for now in [0, 1, 2] {
            assert!(!steps.is_in_vain(&key, 7, at(now)), "{now}");
            send(7, now, None);
        }
        assert!(steps.is_in_vain(&key, 7, at(3)));
        assert!(!steps.is_in_vain(&key, 8, at(3)), "another one may make a difference");
        assert!(!steps.is_in_vain(&key, 7, at(120)), "it is tried again");
        send(8, 4, None);
        assert!(!steps.is_in_vain(&key, 7, at(5)), "something has changed");
        for now in 10..20 {
            send(9, now, Some("no"));
        }
        assert!(!steps.is_in_vain(&key, 9, at(20)), "what fails has a pause of another kind");
    }

    #[test]
    fn a_step_that_keeps_failing_is_begun_less_and_less_often_and_others_are_not() {
        let (steps, key) = (Steps::default(), Key::new("a", "b"));
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        let fail = |now: i64, error: Option<&str>| {
            steps
                .state()
                .running
                .insert(key.clone(), Running { step: Done::CreateStarted, since: at(now) });
            steps.end(&key, error.map(str::to_owned), at(now));
        };
        let may = |step: Done, now: i64| steps.may_begin(&key, step, at(now)).is_ok();
        assert!(may(Done::CreateStarted, 0));
        for (now, pause) in [(0, 1), (10, 2), (20, 4)] {
            fail(now, Some("full"));
            assert!(!may(Done::CreateStarted, now + pause - 1), "{pause}");
            assert!(may(Done::CreateStarted, now + pause), "{pause}");
        }
        assert_eq!(steps.last_error(&key, Done::CreateStarted).as_deref(), Some("full"));
        assert!(may(Done::Reconfigured, 20), "another step is another matter");
        fail(30, None);
        assert!(may(Done::CreateStarted, 30), "what went well has no pause");
        assert_eq!(steps.last_error(&key, Done::CreateStarted), None);
    }
}
