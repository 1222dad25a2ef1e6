use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use roost_supervise::Backoff;

use crate::config::SpareModel;
use crate::time::{is_ahead, later};

/// After the first failure; doubled by each that follows.
const FIRST: Duration = Duration::from_secs(30);
/// A template that somebody mends is tried again within this time.
const MOST: Duration = Duration::from_mins(30);

/// Templates whose spares fail, and until when they are left alone. Upstream tries at once, for ever.
#[derive(Debug, Clone, Default)]
pub struct Backoffs {
    failing: BTreeMap<SpareModel, Failing>,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    times: u32,
    until: Timestamp,
}

impl Backoffs {
    /// Returns until when the template is left alone.
    pub fn failed(&mut self, model: &SpareModel, now: Timestamp) -> Timestamp {
        let times = self.failing.get(model).map_or(0, |failing| failing.times);
        let times = times.saturating_add(1);
        let failing = Failing { times, until: later(now, Backoff::new(FIRST, MOST).pause(times)) };
        self.failing.insert(model.clone(), failing);
        failing.until
    }

    /// Something else than the template was in the way: it rests for a while, and nothing is held against it.
    pub fn interrupted(&mut self, model: &SpareModel, now: Timestamp) -> Timestamp {
        let times = self.failing.get(model).map_or(0, |failing| failing.times);
        let until = later(now, FIRST);
        self.failing.insert(model.clone(), Failing { times, until });
        until
    }

    pub fn succeeded(&mut self, model: &SpareModel) {
        self.failing.remove(model);
    }

    /// Until when nothing is made from it, and how often it failed in a row.
    pub fn blocked(&self, model: &SpareModel, now: Timestamp) -> Option<(Timestamp, u32)> {
        let failing =
            self.failing.get(model).filter(|failing| is_ahead(failing.until, now, MOST))?;
        Some((failing.until, failing.times))
    }

    /// Those that failed and have not succeeded since, with how often in a row.
    pub fn failing(&self) -> impl Iterator<Item = (&SpareModel, u32)> {
        let failing = self.failing.iter().filter(|(_, failing)| failing.times > 0);
        failing.map(|(model, failing)| (model, failing.times))
    }

    /// Forgets templates that no pool asks for any more.
    pub fn retain(&mut self, is_asked_for: impl Fn(&SpareModel) -> bool) {
        self.failing.retain(|model, _| is_asked_for(model));
    }
}
