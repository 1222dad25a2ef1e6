use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::view::{CallMinute, CallsPast, Fault, MethodCalls};

/// What is shown of the past.
const MINUTES: u64 = 30;
const FAULTS: usize = 50;
/// Of so many calls of each method the median is taken.
const LATENCIES: usize = 32;

/// What was asked of the vCenter lately. Times are since the start, by tokio's clock.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// By the minute since the start.
    minutes: BTreeMap<u64, Counts>,
    methods: BTreeMap<&'static str, Method>,
    faults: VecDeque<(Duration, &'static str, &'static str)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    calls: u64,
    faults: u64,
    logins: u64,
}

#[derive(Debug, Default)]
struct Method {
    calls: u64,
    faults: u64,
    latencies_ms: VecDeque<u64>,
}

impl Past {
    fn minute(&mut self, at: Duration) -> &mut Counts {
        let minute = at.as_secs() / 60;
        self.minutes.retain(|kept, _| *kept + MINUTES > minute);
        self.minutes.entry(minute).or_default()
    }

    pub(super) fn called(&mut self, method: &'static str, took: Duration, at: Duration) {
        self.minute(at).calls += 1;
        let known = self.methods.entry(method).or_default();
        known.calls += 1;
        if known.latencies_ms.len() == LATENCIES {
            known.latencies_ms.pop_front();
        }
        known.latencies_ms.push_back(took.as_millis().try_into().unwrap_or(u64::MAX));
    }

    pub(super) fn failed(&mut self, method: &'static str, kind: &'static str, at: Duration) {
        self.minute(at).faults += 1;
        self.methods.entry(method).or_default().faults += 1;
        if self.faults.len() == FAULTS {
            self.faults.pop_front();
        }
        self.faults.push_back((at, method, kind));
    }

    pub(super) fn logged_in(&mut self, at: Duration) {
        self.minute(at).logins += 1;
    }

    /// `at` is now, as a time since the start; minutes without a call are there with zeros.
    pub(super) fn view(&self, at: Duration, now: Timestamp) -> CallsPast {
        let ago = |then: Duration| {
            let ago = SignedDuration::try_from(at.saturating_sub(then)).unwrap_or_default();
            now.saturating_sub(ago).unwrap_or(now)
        };
        let this = at.as_secs() / 60;
        let minutes = (this + 1).saturating_sub(MINUTES)..=this;
        let mut methods: Vec<MethodCalls> = self
            .methods
            .iter()
            .map(|(method, known)| {
                let mut latencies: Vec<u64> = known.latencies_ms.iter().copied().collect();
                latencies.sort_unstable();
                MethodCalls {
                    method,
                    calls: known.calls,
                    faults: known.faults,
                    latency_ms: latencies.get(latencies.len() / 2).copied(),
                }
            })
            .collect();
        methods.sort_by_key(|known| std::cmp::Reverse(known.calls));
        CallsPast {
            minutes: minutes
                .map(|minute| {
                    let Counts { calls, faults, logins } =
                        self.minutes.get(&minute).copied().unwrap_or_default();
                    let began = ago(Duration::from_secs(minute * 60));
                    CallMinute { began, calls, faults, logins }
                })
                .collect(),
            methods,
            faults: self
                .faults
                .iter()
                .map(|(then, method, kind)| Fault { at: ago(*then), method, kind })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_hour_is_kept_minute_by_minute() {
        let mut past = Past::default();
        let secs = Duration::from_secs;
        past.logged_in(secs(1));
        past.called("Login", secs(1), secs(1));
        past.called("CloneVM_Task", Duration::from_millis(30), secs(65));
        past.failed("CloneVM_Task", "InvalidState", secs(65));
        let now = Timestamp::UNIX_EPOCH + secs(70);
        let seen = past.view(secs(70), now);
        let minutes: Vec<_> =
            seen.minutes.iter().map(|it| (it.calls, it.faults, it.logins)).collect();
        assert_eq!(minutes, [(1, 0, 1), (1, 1, 0)]);
        assert_eq!(seen.minutes[0].began, Timestamp::UNIX_EPOCH);
        assert_eq!(seen.faults[0].at, Timestamp::UNIX_EPOCH + secs(65));
        let clone = seen.methods.iter().find(|it| it.method == "CloneVM_Task");
        assert_eq!(clone.map(|it| (it.calls, it.faults, it.latency_ms)), Some((1, 1, Some(30))));
        let later = past.view(secs(3 * 3_600), now);
        assert_eq!((later.minutes.len(), later.minutes[0].calls), (30, 0));
    }
}
