//! What is asked of the vCenter, for those who watch what the hatchery costs it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use roost_vim::{CallRecord, Hooks, LoginOutcome, Outcome};
use tokio::time::Instant;

use super::past::Past;
use super::view::{Calls, CallsPast};
use crate::metrics::OwnMetrics;

/// Of so many calls the median is taken.
const LATENCIES: usize = 128;
/// Waits for news at the server, up to a minute: its time says nothing about the server.
const LONG_POLL: &str = "WaitForUpdatesEx";

/// Counts every request, and hands each on to the metrics.
#[derive(Debug)]
pub(crate) struct CallMeter {
    own: OwnMetrics,
    since: Instant,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    logins: u64,
    calls: u64,
    faults: u64,
    /// How many in which second since the start; of the last minute only, oldest first.
    seconds: VecDeque<(u64, u64)>,
    latencies_ms: VecDeque<u64>,
    past: Past,
}

impl CallMeter {
    pub(crate) fn new(own: OwnMetrics) -> Self {
        Self { own, since: Instant::now(), counted: Mutex::default() }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last half hour, by the wall clock that shows `now`.
    pub(crate) fn past(&self, now: Timestamp) -> CallsPast {
        self.counted().past.view(self.since.elapsed(), now)
    }

    pub(crate) fn view(&self) -> Calls {
        let second = self.since.elapsed().as_secs();
        let mut counted = self.counted();
        counted.forget_before(second);
        let mut latencies: Vec<u64> = counted.latencies_ms.iter().copied().collect();
        latencies.sort_unstable();
        Calls {
            logins: counted.logins,
            calls: counted.calls,
            last_minute: counted.seconds.iter().map(|(_, calls)| calls).sum(),
            faults: counted.faults,
            latency_ms: latencies.get(latencies.len() / 2).copied(),
        }
    }
}

impl Counted {
    fn forget_before(&mut self, second: u64) {
        while self.seconds.front().is_some_and(|(at, _)| second - at >= 60) {
            self.seconds.pop_front();
        }
    }

    fn count(&mut self, record: &CallRecord, second: u64) {
        self.calls += 1;
        self.faults += u64::from(record.outcome == Outcome::Fault);
        self.forget_before(second);
        match self.seconds.back_mut() {
            Some((at, calls)) if *at == second => *calls += 1,
            _ => self.seconds.push_back((second, 1)),
        }
        if record.method != LONG_POLL && record.outcome == Outcome::Done {
            if self.latencies_ms.len() == LATENCIES {
                self.latencies_ms.pop_front();
            }
            self.latencies_ms.push_back(record.took.as_millis().try_into().unwrap_or(u64::MAX));
        }
    }
}

impl Hooks for CallMeter {
    fn call_finished(&self, record: &CallRecord) {
        self.own.call_finished(record);
        let at = self.since.elapsed();
        let mut counted = self.counted();
        counted.count(record, at.as_secs());
        counted.past.called(record.method, record.took, at);
    }

    fn fault(&self, method: &'static str, kind: &'static str) {
        self.own.fault(method, kind);
        self.counted().past.failed(method, kind, self.since.elapsed());
    }

    fn login(&self, outcome: LoginOutcome) {
        self.own.login(outcome);
        if outcome == LoginOutcome::LoggedIn {
            let mut counted = self.counted();
            counted.logins += 1;
            counted.past.logged_in(self.since.elapsed());
        }
    }

    fn stream_resynced(&self) {
        self.own.stream_resynced();
    }

    fn background_panicked(&self, what: &'static str) {
        self.own.background_panicked(what);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::registry::Registry;
    use roost_vim::CallClass;

    use super::*;
    use crate::metrics::Metrics;

    fn call(method: &'static str, millis: u64, outcome: Outcome) -> CallRecord {
        CallRecord {
            method,
            class: CallClass::Read,
            took: Duration::from_millis(millis),
            bytes_sent: 0,
            bytes_received: 0,
            outcome,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_minute_moves_and_the_long_poll_is_no_latency() {
        let meter = CallMeter::new(Metrics::register(&mut Registry::default(), "h1").own);
        meter.login(LoginOutcome::LoggedIn);
        meter.call_finished(&call("Login", 30, Outcome::Done));
        meter.call_finished(&call(LONG_POLL, 60_000, Outcome::Done));
        tokio::time::advance(Duration::from_secs(59)).await;
        meter.call_finished(&call("PowerOnVM_Task", 10, Outcome::Fault));
        let seen = meter.view();
        assert_eq!((seen.logins, seen.calls, seen.last_minute, seen.faults), (1, 3, 3, 1));
        assert_eq!(seen.latency_ms, Some(30));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((meter.view().calls, meter.view().last_minute), (3, 1));
    }
}
