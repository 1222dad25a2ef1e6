//! What a VM's events say, for VMs that say nothing themselves.

use jiff::Timestamp;

use super::{Reason, Verdict, expire};
use crate::config::Lifetimes;
use crate::time::later;

/// The three kinds that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// `VmStartingEvent`
    Starting,
    /// `VmPoweredOffEvent`
    PoweredOff,
    /// `VmRenamedEvent`
    Renamed,
}

impl EventKind {
    pub const ALL: [Self; 3] = [Self::Starting, Self::PoweredOff, Self::Renamed];

    /// The event's class in the API.
    pub fn class(self) -> &'static str {
        match self {
            Self::Starting => "VmStartingEvent",
            Self::PoweredOff => "VmPoweredOffEvent",
            Self::Renamed => "VmRenamedEvent",
        }
    }

    pub fn of_class(class: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.class() == class)
    }
}

/// The latest time of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventTimes {
    pub started: Option<Timestamp>,
    pub powered_off: Option<Timestamp>,
    pub renamed: Option<Timestamp>,
}

impl EventTimes {
    /// From kind, time and message. What happened to the VM while it was a spare is left out: its messages name it by the spare's name. The
    /// rename that made it a worker has that name in it as well, and is what tells when; so renames stay.
    pub fn collect<'a>(events: impl IntoIterator<Item = (EventKind, Timestamp, &'a str)>) -> Self {
        let mut times = Self::default();
        for (kind, at, message) in events {
            if message.contains("provision-") && kind != EventKind::Renamed {
                continue;
            }
            let latest = match kind {
                EventKind::Starting => &mut times.started,
                EventKind::PoweredOff => &mut times.powered_off,
                EventKind::Renamed => &mut times.renamed,
            };
            *latest = (*latest).max(Some(at));
        }
        times
    }

    /// `None` when they say nothing.
    pub(super) fn judge(
        self,
        registered: bool,
        lifetimes: &Lifetimes,
        now: Timestamp,
    ) -> Option<Verdict> {
        let Some(start) = self.started else {
            let renamed = self.renamed?;
            return Some(expire(later(renamed, lifetimes.registration), Reason::NeverStarted, now));
        };
        // A power-off from before the start is that of an earlier life.
        let has_stopped = self.powered_off.is_some_and(|off| off >= start);
        Some(match (registered, has_stopped) {
            (true, _) => expire(later(start, lifetimes.worker), Reason::TooOld, now),
            (false, true) => Verdict::Delete(Reason::Finished),
            (false, false) => {
                expire(later(start, lifetimes.registration), Reason::NeverRegistered, now)
            }
        })
    }
}
