//! First in, first out, with what was removed from the middle left behind and skipped.
//!
//! An entry counts while its ticket is the one that its slot shows. Removing is then no more than taking the ticket off the
//! slot; when half of a line is dead it is swept. So a key costs a few words in a row instead of pointers into cold memory.

use std::collections::VecDeque;

use crate::record::Slot;

/// Proof of a place in a line; each is given out once. 0 is none.
pub(crate) type Ticket = u64;

/// Lines shorter than this are not worth sweeping.
const SWEEP_FROM: usize = 64;

#[derive(Debug)]
pub(crate) struct Line<T> {
    entries: VecDeque<T>,
    live: usize,
}

/// Something that stands in a line.
pub(crate) trait Entry: Copy {
    fn ticket(&self) -> Ticket;
    fn slot(&self) -> Slot;
}

impl Entry for (Ticket, Slot) {
    fn ticket(&self) -> Ticket {
        self.0
    }

    fn slot(&self) -> Slot {
        self.1
    }
}

impl<T: Entry> Line<T> {
    pub(crate) fn new() -> Self {
        Self { entries: VecDeque::new(), live: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(crate) fn push(&mut self, entry: T) {
        self.entries.push_back(entry);
        self.live += 1;
    }

    /// At the place that its ticket says: at the end nearly always.
    pub(crate) fn insert(&mut self, entry: T) {
        let is_last = self.entries.back().is_none_or(|last| last.ticket() < entry.ticket());
        if is_last {
            return self.push(entry);
        }
        let place = self.entries.partition_point(|known| known.ticket() < entry.ticket());
        self.entries.insert(place, entry);
        self.live += 1;
    }

    /// The first that counts. `shown` is the ticket that a slot shows.
    pub(crate) fn first(&mut self, shown: impl Fn(Slot) -> Ticket) -> Option<T> {
        while let Some(first) = self.entries.front() {
            if shown(first.slot()) == first.ticket() {
                return Some(*first);
            }
            self.entries.pop_front();
        }
        None
    }

    pub(crate) fn pop(&mut self, shown: impl Fn(Slot) -> Ticket) -> Option<T> {
        let first = self.first(shown)?;
        self.entries.pop_front();
        self.live -= 1;
        if self.live == 0 {
            self.entries.clear();
        }
        Some(first)
    }

    /// One entry lost its ticket.
    pub(crate) fn lost_one(&mut self, shown: impl Fn(Slot) -> Ticket) {
        self.live -= 1;
        if self.live == 0 {
            // None is left that a slot could be looked up for.
            self.entries.clear();
        } else if self.entries.len() > SWEEP_FROM && self.entries.len() > 2 * self.live {
            self.entries.retain(|entry| shown(entry.slot()) == entry.ticket());
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.live = 0;
    }
}
