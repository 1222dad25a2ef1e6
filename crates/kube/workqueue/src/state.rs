//! The rules of the queue, without locks, tasks or clocks: every step is told what time it is.
//!
//! A key has one record. It is in one of two orders: `ready` by level (highest first) and ticket, or `waiting` by due time,
//! priority and ticket. A key is given a ticket when it is new, when its level rises and when its delay ends; adding it
//! again otherwise keeps its place.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash as Hashable};

use hashbrown::DefaultHashBuilder;
use tokio::time::Instant;

use crate::add::{Add, Delay};
use crate::backoff::Failures;
use crate::levels::{Levels, Standing};
use crate::line::{Line, Ticket};
use crate::moment::Moment;
use crate::record::{Hash, Place, Records, Slot};
use crate::settings::{Ageing, Order, Settings};
use crate::tally::Tally;

#[derive(Debug)]
pub(crate) struct State<K> {
    hasher: DefaultHashBuilder,
    records: Records<K>,
    ready: Levels,
    waiting: BTreeMap<(Moment, Reverse<i32>, Ticket), Slot>,
    /// All keys that can be taken, by how long they could have been.
    by_age: Line<(Ticket, Slot)>,
    /// No key is due to rise before this.
    next_rise: Moment,
    parked: usize,
    last_ticket: Ticket,
    ageing: Option<Ageing>,
    is_closed: bool,
    pub(crate) failures: Failures<K>,
    pub(crate) tally: Tally,
}

/// Whom a change concerns among those who wait for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Nobody,
    /// A key can be taken.
    One,
    /// The next due time came nearer: everyone sleeps by it.
    All,
}

/// A key handed out, with the slot that gives it back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handed<K> {
    pub(crate) key: K,
    pub(crate) priority: i32,
    pub(crate) slot: Slot,
}

impl<K: Eq + Hashable + Clone> State<K> {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            records: Records::new(),
            ready: Levels::new(),
            waiting: BTreeMap::new(),
            by_age: Line::new(),
            next_rise: Moment::default(),
            parked: 0,
            last_ticket: 0,
            // A wait of nothing would let keys rise for ever within one step.
            ageing: settings.ageing.filter(|ageing| !ageing.after.is_zero()),
            is_closed: false,
            failures: Failures::new(settings.backoff),
            tally: Tally::new(settings.labels),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Keys that are ready, taken ones that were added again included.
    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.parked
    }

    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.waiting.first_key_value().map(|((due, ..), _)| *due)
    }

    pub(crate) fn add(&mut self, now: Moment, epoch: Instant, add: Add, key: K) -> Wake {
        if self.is_closed {
            return Wake::Nobody;
        }
        let due = self.due(now, epoch, add, &key);
        if due.is_some() {
            self.tally.retries += 1;
        }
        let hash = Hash::of(self.hasher.hash_one(&key));
        let slot = match self.records.find(hash, &key) {
            Some(slot) if self.records.at(slot).place != Place::Nowhere => {
                return self.merge(slot, add.priority, due, now);
            }
            Some(slot) => slot,
            None => self.records.insert(hash, key, add.priority, now),
        };
        self.set_priority(slot, add.priority);
        self.enqueue(slot, due, now)
    }

    /// When the key is due, `None` for at once. Of delay and back-off the shorter one counts.
    fn due(&mut self, now: Moment, epoch: Instant, add: Add, key: &K) -> Option<Moment> {
        let asked = match add.delay {
            Delay::None => None,
            Delay::For(delay) => (!delay.is_zero()).then(|| now.plus(delay)),
            Delay::Until(at) => Some(Moment::between(epoch, at)),
        };
        let due = if add.rate_limited {
            let limited = now.plus(self.failures.next_delay(key));
            Some(asked.map_or(limited, |asked| asked.min(limited)))
        } else {
            asked
        };
        due.filter(|due| *due > now)
    }

    fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// With a fresh ticket. The record is in no order.
    fn set_priority(&mut self, slot: Slot, priority: i32) {
        let (ticket, label) = (self.ticket(), self.tally.label(priority));
        let record = self.records.at_mut(slot);
        (record.priority, record.ticket, record.label) = (priority, ticket, label);
    }

    /// A key that is queued already: the earlier time and the higher priority win.
    fn merge(&mut self, slot: Slot, priority: i32, due: Option<Moment>, now: Moment) -> Wake {
        let record = self.records.at_mut(slot);
        let rises = priority > record.priority;
        if record.place == Place::Waiting {
            let known = record.since;
            let is_sooner = due.is_none_or(|due| due < known);
            if !rises && !is_sooner {
                return Wake::Nobody;
            }
            self.waiting.remove(&(known, Reverse(record.priority), record.ticket));
            if rises {
                self.set_priority(slot, priority);
            }
            return self.enqueue(slot, due.map(|due| due.min(known)), now);
        }
        if rises {
            let label = self.tally.label(priority);
            self.tally.relabelled(record.label, label);
            (record.priority, record.label) = (priority, label);
            if priority > record.level {
                self.lift(slot, priority, now);
            }
        }
        Wake::Nobody
    }

    /// To the tail of a higher level.
    fn lift(&mut self, slot: Slot, level: i32, now: Moment) {
        let ticket = self.ticket();
        let record = self.records.at_mut(slot);
        let old = std::mem::replace(&mut record.level, level);
        record.ticket = ticket;
        if record.place == Place::Ready {
            self.leave_level(slot, old);
            self.enter_level(slot, now);
        }
    }

    fn enter_level(&mut self, slot: Slot, now: Moment) {
        let record = self.records.at(slot);
        let (level, ticket) = (record.level, record.ticket);
        self.records.shown[slot as usize].level = ticket;
        self.ready.insert(level, Standing { ticket, slot, since: now });
    }

    fn leave_level(&mut self, slot: Slot, level: i32) {
        self.records.shown[slot as usize].level = 0;
        let shown = &self.records.shown;
        self.ready.lost_one(level, |slot| shown[slot as usize].level);
    }

    /// A record that is in no order goes where its due time says.
    fn enqueue(&mut self, slot: Slot, due: Option<Moment>, now: Moment) -> Wake {
        let record = self.records.at_mut(slot);
        if let Some(due) = due {
            (record.place, record.since) = (Place::Waiting, due);
            let first = self.waiting.first_key_value();
            let is_first = first.is_none_or(|((first, ..), _)| due < *first);
            self.waiting.insert((due, Reverse(record.priority), record.ticket), slot);
            return if is_first { Wake::All } else { Wake::Nobody };
        }
        record.since = now;
        record.level = record.priority;
        self.tally.became_ready(record.label);
        if record.is_taken {
            record.place = Place::Parked;
            self.parked += 1;
            return Wake::Nobody;
        }
        self.offer(slot, now);
        Wake::One
    }

    fn offer(&mut self, slot: Slot, now: Moment) {
        self.records.at_mut(slot).place = Place::Ready;
        self.enter_level(slot, now);
        let ticket = self.ticket();
        self.records.shown[slot as usize].age = ticket;
        self.by_age.push((ticket, slot));
    }

    /// Keys whose delay is over become ready, in the order of their due times.
    pub(crate) fn ripen(&mut self, now: Moment) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now
        {
            let slot = first.remove();
            self.records.at_mut(slot).ticket = self.ticket();
            self.enqueue(slot, None, now);
        }
    }

    /// Lets keys rise that have stood at their level for long enough. Those at the head of a level stand there longest, so only
    /// heads are looked at, and only when the first of them is due.
    fn age(&mut self, now: Moment) {
        let Some(Ageing { after, ceiling }) = self.ageing else { return };
        if now < self.next_rise {
            return;
        }
        self.next_rise = now.plus(after);
        // Upwards, so that a key rises by one level and not by all at once.
        for level in self.ready.upwards() {
            let Some(above) = self.ready.above(level).filter(|above| *above <= ceiling) else {
                continue;
            };
            loop {
                let shown = &self.records.shown;
                let Some(head) = self.ready.head(level, |slot| shown[slot as usize].level) else {
                    break;
                };
                let due = head.since.plus(after);
                if due > now {
                    self.next_rise = self.next_rise.min(due);
                    break;
                }
                self.lift(head.slot, above, now);
            }
        }
    }

    pub(crate) fn take(&mut self, now: Moment, order: Order) -> Option<Handed<K>> {
        self.ripen(now);
        self.age(now);
        let shown = &self.records.shown;
        let slot = match order {
            Order::Priority => {
                let slot = self.ready.pop(|slot| shown[slot as usize].level)?;
                self.records.shown[slot as usize].age = 0;
                let shown = &self.records.shown;
                self.by_age.lost_one(|slot| shown[slot as usize].age);
                slot
            }
            Order::Age => {
                let (_, slot) = self.by_age.pop(|slot| shown[slot as usize].age)?;
                self.records.shown[slot as usize].level = 0;
                let (level, shown) = (self.records.at(slot).level, &self.records.shown);
                self.ready.lost_one(level, |slot| shown[slot as usize].level);
                slot
            }
        };
        self.records.shown[slot as usize] = crate::record::Shown::default();
        let record = self.records.at_mut(slot);
        (record.place, record.is_taken) = (Place::Nowhere, true);
        self.tally.taken(slot, record.label, now.since(record.since), now);
        Some(Handed { key: record.key.clone(), priority: record.priority, slot })
    }

    pub(crate) fn done(&mut self, now: Moment, slot: Slot) -> Wake {
        self.tally.done(slot, now);
        let record = self.records.at_mut(slot);
        record.is_taken = false;
        match record.place {
            Place::Nowhere => {
                self.records.remove(slot);
                Wake::Nobody
            }
            Place::Parked => {
                self.parked -= 1;
                self.offer(slot, now);
                Wake::One
            }
            Place::Waiting | Place::Ready => Wake::Nobody,
        }
    }

    /// Drops all that is queued. Keys that are taken stay known until they are done.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.ready.clear();
        self.waiting.clear();
        self.by_age.clear();
        self.parked = 0;
        self.tally.cleared();
        for slot in self.records.slots() {
            if self.records.at(slot).is_taken {
                self.records.at_mut(slot).place = Place::Nowhere;
            } else {
                self.records.remove(slot);
            }
        }
    }
}
