use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::line::{Entry, Line, Ticket};
use crate::moment::Moment;
use crate::record::Slot;

/// A key at its level, and since when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) ticket: Ticket,
    pub(crate) slot: Slot,
    pub(crate) since: Moment,
}

impl Entry for Standing {
    fn ticket(&self) -> Ticket {
        self.ticket
    }

    fn slot(&self) -> Slot {
        self.slot
    }
}

/// Keys that can be taken: highest level first, by ticket within one. A level without keys is not there.
#[derive(Debug)]
pub(crate) struct Levels {
    levels: BTreeMap<Reverse<i32>, Line<Standing>>,
    keys: usize,
}

impl Levels {
    pub(crate) fn new() -> Self {
        Self { levels: BTreeMap::new(), keys: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys
    }

    pub(crate) fn insert(&mut self, level: i32, standing: Standing) {
        self.levels.entry(Reverse(level)).or_insert_with(Line::new).insert(standing);
        self.keys += 1;
    }

    pub(crate) fn pop(&mut self, shown: impl Fn(Slot) -> Ticket) -> Option<Slot> {
        let mut level = self.levels.first_entry()?;
        let slot = level.get_mut().pop(shown)?.slot;
        if level.get().is_empty() {
            level.remove();
        }
        self.keys -= 1;
        Some(slot)
    }

    /// A key of the level lost its ticket.
    pub(crate) fn lost_one(&mut self, level: i32, shown: impl Fn(Slot) -> Ticket) {
        if let Some(line) = self.levels.get_mut(&Reverse(level)) {
            line.lost_one(shown);
            self.keys -= 1;
            if line.is_empty() {
                self.levels.remove(&Reverse(level));
            }
        }
    }

    /// The next level in use above this one.
    pub(crate) fn above(&self, level: i32) -> Option<i32> {
        self.levels.range(..Reverse(level)).next_back().map(|(Reverse(above), _)| *above)
    }

    /// From the lowest to the highest.
    pub(crate) fn upwards(&self) -> Vec<i32> {
        self.levels.keys().rev().map(|Reverse(level)| *level).collect()
    }

    /// The one that stands at the head of a level.
    pub(crate) fn head(&mut self, level: i32, shown: impl Fn(Slot) -> Ticket) -> Option<Standing> {
        self.levels.get_mut(&Reverse(level))?.first(shown)
    }

    pub(crate) fn clear(&mut self) {
        self.levels.clear();
        self.keys = 0;
    }
}
