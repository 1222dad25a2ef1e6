use std::time::Duration;

use serde::Serialize;

/// What a deletion rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A person deleted what it was for. Needs no second look; only that it is ours.
    Asked,
    /// The VM's own annotation says that we gave it up.
    Marked,
    /// It has done its work and stopped by itself.
    Finished,
    /// It has lived longer than it may. Rests on clocks.
    Expired,
    /// The other side does not know it. Rests on the other side's list, which may lack what it should have.
    Absent,
}

impl Basis {
    pub const ALL: [Self; 5] =
        [Self::Asked, Self::Marked, Self::Finished, Self::Expired, Self::Absent];

    /// Those that rest on what we make of views, and not on a person's word.
    pub const INFERRED: [Self; 4] = [Self::Marked, Self::Finished, Self::Expired, Self::Absent];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Marked => "marked",
            Self::Finished => "finished",
            Self::Expired => "expired",
            Self::Absent => "absent",
        }
    }
}

/// When deletions are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardRules {
    /// A view of either side that is older is not acted on.
    pub max_age: Duration,
    /// After a longer time without a look, what was seen before it counts for nothing: the process slept or a clock moved.
    pub max_gap: Duration,
    /// Its grace is not waited for.
    pub asked: BasisRules,
    pub marked: BasisRules,
    pub finished: BasisRules,
    pub expired: BasisRules,
    pub absent: BasisRules,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasisRules {
    /// From the first sighting to the deletion.
    pub grace: Duration,
    /// `None`: no budget. They are paced by how many whoever deletes begins at the same time.
    pub per_minute: Option<u32>,
    pub beyond: Beyond,
    /// More than this share of all our VMs within a minute freezes deletion.
    pub share: Option<Share>,
}

/// What becomes of deletions beyond the budget of a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// They wait for the next minute.
    Wait,
    /// Deletion freezes until a person has looked.
    Freeze,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub percent: u32,
    /// So many are always within the share: half of two VMs is one.
    pub at_least: u32,
}

impl Share {
    pub(super) fn of(self, own_vms: usize) -> u64 {
        (own_vms as u64 * u64::from(self.percent) / 100).max(self.at_least.into())
    }
}

impl GuardRules {
    pub fn of(&self, basis: Basis) -> BasisRules {
        match basis {
            Basis::Asked => self.asked,
            Basis::Marked => self.marked,
            Basis::Finished => self.finished,
            Basis::Expired => self.expired,
            Basis::Absent => self.absent,
        }
    }
}

impl Default for GuardRules {
    /// What a VM says itself is believed soon and only paced. What rests on clocks or
    /// on somebody's list waits longer and freezes early, because when that is wrong it is wrong for all VMs at once.
    fn default() -> Self {
        let own_word = BasisRules {
            grace: Duration::ZERO,
            per_minute: Some(60),
            beyond: Beyond::Wait,
            share: None,
        };
        Self {
            // The stream is heard from every minute; three lets one answer fail.
            max_age: Duration::from_mins(3),
            max_gap: Duration::from_mins(15),
            asked: own_word,
            marked: own_word,
            // It stopped by itself: that is a fact, not an inference. Hundreds may stop together, and each holds an address.
            finished: BasisRules { per_minute: None, ..own_word },
            expired: BasisRules {
                grace: Duration::from_mins(1),
                per_minute: Some(20),
                beyond: Beyond::Freeze,
                share: Some(Share { percent: 30, at_least: 5 }),
            },
            absent: BasisRules {
                grace: Duration::from_mins(2),
                per_minute: Some(10),
                beyond: Beyond::Freeze,
                share: Some(Share { percent: 20, at_least: 3 }),
            },
        }
    }
}
