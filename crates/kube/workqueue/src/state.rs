//! The rules of the queue, without locks, tasks or clocks: every step is told what time it is.
//!
//! Two orders: `ready` by level (highest first) and number, `waiting` by due time, then as `ready`. A key has
//! one record, which is in at most one of them. A number is given to a key when it is new, when its
//! level rises and when its delay ends; adding it again otherwise keeps its place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::add::{Add, Delay};
use crate::age::Line;
use crate::backoff::Failures;
use crate::moment::Moment;
use crate::record::{Place, Record, Records, Slot};
use crate::settings::{Ageing, Order, Settings};
use crate::tally::Tally;

#[derive(Debug)]
pub(crate) struct State<K> {
    index: HashMap<K, Slot>,
    records: Records<K>,
    ready: BTreeMap<(Reverse<i32>, u64), Slot>,
    waiting: BTreeMap<(Moment, Reverse<i32>, u64), Slot>,
    by_age: Line<K>,
    by_level_age: Line<K>,
    parked: usize,
    next_seq: u64,
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

impl<K: Eq + Hash + Clone> State<K> {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            index: HashMap::new(),
            records: Records::new(),
            ready: BTreeMap::new(),
            waiting: BTreeMap::new(),
            by_age: Line::new(|record| &mut record.by_age),
            by_level_age: Line::new(|record| &mut record.by_level_age),
            parked: 0,
            next_seq: 0,
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

    pub(crate) fn add(
        &mut self,
        now: Moment,
        epoch: tokio::time::Instant,
        add: Add,
        key: K,
    ) -> Wake {
        if self.is_closed {
            return Wake::Nobody;
        }
        let due = self.due(now, epoch, add, &key);
        if due.is_some() {
            self.tally.retries += 1;
        }
        match self.index.get(&key) {
            Some(&slot) if self.records.at(slot).place != Place::Nowhere => {
                self.merge(slot, add.priority, due, now)
            }
            Some(&slot) => {
                let (seq, label) = (self.number(), self.tally.label(add.priority));
                let record = self.records.at_mut(slot);
                (record.priority, record.seq, record.label) = (add.priority, seq, label);
                self.enqueue(slot, due, now)
            }
            None => {
                let record = Record {
                    key: key.clone(),
                    priority: add.priority,
                    level: add.priority,
                    seq: self.number(),
                    place: Place::Nowhere,
                    is_taken: false,
                    ready_since: now,
                    level_since: now,
                    by_age: crate::age::Links::default(),
                    by_level_age: crate::age::Links::default(),
                    label: self.tally.label(add.priority),
                };
                let slot = self.records.insert(record);
                self.index.insert(key, slot);
                self.enqueue(slot, due, now)
            }
        }
    }

    /// When the key is due, `None` for at once. Of delay and back-off the shorter one counts.
    fn due(
        &mut self,
        now: Moment,
        epoch: tokio::time::Instant,
        add: Add,
        key: &K,
    ) -> Option<Moment> {
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

    fn number(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }

    /// A key that is queued already: the earlier time and the higher priority win.
    fn merge(&mut self, slot: Slot, priority: i32, due: Option<Moment>, now: Moment) -> Wake {
        let (was, place) = {
            let record = self.records.at(slot);
            (record.priority, record.place)
        };
        let rises = priority > was;
        if let Place::Waiting { due: known } = place {
            let is_sooner = due.is_none_or(|due| due < known);
            if !rises && !is_sooner {
                return Wake::Nobody;
            }
            self.leave_waiting(slot);
            if rises {
                let (seq, label) = (self.number(), self.tally.label(priority));
                let record = self.records.at_mut(slot);
                (record.priority, record.seq, record.label) = (priority, seq, label);
            }
            return self.enqueue(slot, due.map(|due| due.min(known)), now);
        }
        if rises {
            let label = self.tally.label(priority);
            let record = self.records.at_mut(slot);
            self.tally.relabelled(record.label, label);
            (record.priority, record.label) = (priority, label);
            let level = record.level;
            if priority > level {
                self.lift(slot, priority, now);
            }
        }
        Wake::Nobody
    }

    /// To the tail of a higher level.
    fn lift(&mut self, slot: Slot, level: i32, now: Moment) {
        let seq = self.number();
        let record = self.records.at_mut(slot);
        let old = (Reverse(record.level), record.seq);
        (record.level, record.seq, record.level_since) = (level, seq, now);
        if record.place == Place::Ready {
            self.ready.remove(&old);
            self.ready.insert((Reverse(level), seq), slot);
            if self.ageing.is_some() {
                self.by_level_age.remove(&mut self.records, slot);
                self.by_level_age.push(&mut self.records, slot);
            }
        }
    }

    /// A record that is in no order goes where its due time says.
    fn enqueue(&mut self, slot: Slot, due: Option<Moment>, now: Moment) -> Wake {
        let record = self.records.at_mut(slot);
        if let Some(due) = due {
            record.place = Place::Waiting { due };
            let is_first =
                self.waiting.first_key_value().is_none_or(|((first, ..), _)| due < *first);
            self.waiting.insert((due, Reverse(record.priority), record.seq), slot);
            return if is_first { Wake::All } else { Wake::Nobody };
        }
        record.ready_since = now;
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
        let record = self.records.at_mut(slot);
        record.place = Place::Ready;
        record.level_since = now;
        self.ready.insert((Reverse(record.level), record.seq), slot);
        self.by_age.push(&mut self.records, slot);
        if self.ageing.is_some() {
            self.by_level_age.push(&mut self.records, slot);
        }
    }

    fn leave_waiting(&mut self, slot: Slot) {
        let record = self.records.at(slot);
        if let Place::Waiting { due } = record.place {
            self.waiting.remove(&(due, Reverse(record.priority), record.seq));
        }
    }

    /// Keys whose delay is over become ready, in the order of their due times.
    pub(crate) fn ripen(&mut self, now: Moment) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now
        {
            let slot = first.remove();
            let seq = self.number();
            self.records.at_mut(slot).seq = seq;
            self.enqueue(slot, None, now);
        }
    }

    fn age(&mut self, now: Moment) {
        let Some(ageing) = self.ageing else { return };
        while let Some(slot) = self.by_level_age.first()
            && self.records.at(slot).level_since.plus(ageing.after) <= now
        {
            let level = self.records.at(slot).level;
            let above = self.ready.range(..(Reverse(level), 0)).next_back();
            match above.map(|((Reverse(above), _), _)| *above) {
                Some(above) if above <= ageing.ceiling => self.lift(slot, above, now),
                // Nothing to rise to: it is asked again after the same time.
                _ => {
                    self.records.at_mut(slot).level_since = now;
                    self.by_level_age.remove(&mut self.records, slot);
                    self.by_level_age.push(&mut self.records, slot);
                }
            }
        }
    }

    pub(crate) fn take(&mut self, now: Moment, order: Order) -> Option<Handed<K>> {
        self.ripen(now);
        self.age(now);
        let slot = match order {
            Order::Priority => self.ready.pop_first()?.1,
            Order::Age => {
                let slot = self.by_age.first()?;
                let record = self.records.at(slot);
                self.ready.remove(&(Reverse(record.level), record.seq));
                slot
            }
        };
        self.by_age.remove(&mut self.records, slot);
        if self.ageing.is_some() {
            self.by_level_age.remove(&mut self.records, slot);
        }
        let record = self.records.at_mut(slot);
        (record.place, record.is_taken) = (Place::Nowhere, true);
        self.tally.taken(slot, record.label, now.since(record.ready_since), now);
        Some(Handed { key: record.key.clone(), priority: record.priority, slot })
    }

    pub(crate) fn done(&mut self, now: Moment, slot: Slot) -> Wake {
        self.tally.done(slot, now);
        let record = self.records.at_mut(slot);
        record.is_taken = false;
        match record.place {
            Place::Nowhere => {
                if let Some(record) = self.records.remove(slot) {
                    self.index.remove(&record.key);
                }
                Wake::Nobody
            }
            Place::Parked => {
                self.parked -= 1;
                self.offer(slot, now);
                Wake::One
            }
            Place::Waiting { .. } | Place::Ready => Wake::Nobody,
        }
    }

    /// Drops all that is queued. Keys that are taken stay known until they are done.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.ready.clear();
        self.waiting.clear();
        self.by_age.clear();
        self.by_level_age.clear();
        self.parked = 0;
        self.tally.cleared();
        let records = &mut self.records;
        self.index.retain(|_, slot| {
            let is_taken = records.at(*slot).is_taken;
            if is_taken {
                records.at_mut(*slot).place = Place::Nowhere;
            } else {
                records.remove(*slot);
            }
            is_taken
        });
    }
}
