use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::line::{Line, Ticket};
use crate::record::Slot;

/// Keys that can be taken: highest level first, by ticket within one. A level without keys is not there.
#[derive(Debug)]
pub(crate) struct Levels {
    levels: BTreeMap<Reverse<i32>, Line<(Ticket, Slot)>>,
    keys: usize,
}

impl Levels {
    pub(crate) fn new() -> Self {
        Self { levels: BTreeMap::new(), keys: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys
    }

    pub(crate) fn insert(&mut self, level: i32, ticket: Ticket, slot: Slot) {
        self.levels.entry(Reverse(level)).or_insert_with(Line::new).insert((ticket, slot));
        self.keys += 1;
    }

    pub(crate) fn pop(&mut self, shown: impl Fn(Slot) -> Ticket) -> Option<Slot> {
        let mut level = self.levels.first_entry()?;
        let (_, slot) = level.get_mut().pop(shown)?;
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

    pub(crate) fn clear(&mut self) {
        self.levels.clear();
        self.keys = 0;
    }
}
