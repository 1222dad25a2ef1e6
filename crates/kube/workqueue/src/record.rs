use hashbrown::HashTable;

use crate::line::Ticket;
use crate::moment::Moment;

/// Where a record lives in [`Records`].
pub(crate) type Slot = u32;

/// All that is known of one key.
#[derive(Debug)]
pub(crate) struct Record<K> {
    pub(crate) key: K,
    hash: Hash,
    /// As asked: the highest since the key was last handed out.
    pub(crate) priority: i32,
    /// The priority, or what it became by ageing.
    pub(crate) level: i32,
    /// The place within the level.
    pub(crate) ticket: Ticket,
    pub(crate) place: Place,
    /// Handed out and not yet done.
    pub(crate) is_taken: bool,
    /// When the key is due while it waits, and when it became ready otherwise.
    pub(crate) since: Moment,
    pub(crate) label: u8,
}

/// Half of a hash, enough for the keys of a queue, so that a record of a key of two pointers fits a line of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash(u32);

impl Hash {
    pub(crate) fn of(hash: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "both halves are as good")]
        Self((hash >> 32) as u32 ^ hash as u32)
    }

    /// The table takes its tags from the upper bits and its places from the lower ones.
    fn spread(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not queued; the record is there because the key is taken.
    Nowhere,
    /// Until the record's `since`.
    Waiting,
    Ready,
    /// Ready, but taken at the moment: passed over until it is done.
    Parked,
}

/// The tickets that a slot shows. Apart from the records, because lines look at these of many slots.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown {
    /// In its level.
    pub(crate) level: Ticket,
    /// In the line by age.
    pub(crate) age: Ticket,
}

/// Records by slot and by key. A slot is used again after its record is gone.
#[derive(Debug)]
pub(crate) struct Records<K> {
    /// Slots by the hash of their key, so that a key is stored once.
    index: HashTable<Slot>,
    slots: Vec<Option<Record<K>>>,
    pub(crate) shown: Vec<Shown>,
    free: Vec<Slot>,
}

impl<K: Eq> Records<K> {
    pub(crate) fn new() -> Self {
        Self { index: HashTable::new(), slots: Vec::new(), shown: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn find(&self, hash: Hash, key: &K) -> Option<Slot> {
        let is_it = |slot: &Slot| {
            let record = self.at(*slot);
            record.hash == hash && record.key == *key
        };
        self.index.find(hash.spread(), is_it).copied()
    }

    /// A key that is not there yet.
    pub(crate) fn insert(&mut self, hash: Hash, key: K, priority: i32, now: Moment) -> Slot {
        let record = Record {
            key,
            hash,
            priority,
            level: priority,
            ticket: 0,
            place: Place::Nowhere,
            is_taken: false,
            since: now,
            label: 0,
        };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(record);
            slot
        } else {
            let slot = Slot::try_from(self.slots.len()).expect("fewer than four billion keys");
            self.slots.push(Some(record));
            self.shown.push(Shown::default());
            slot
        };
        let slots = &self.slots;
        self.index.insert_unique(hash.spread(), slot, |slot| {
            slots[*slot as usize].as_ref().map_or(0, |record| record.hash.spread())
        });
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        let Some(record) = self.slots[slot as usize].take() else { return };
        if let Ok(entry) = self.index.find_entry(record.hash.spread(), |known| *known == slot) {
            entry.remove();
        }
        if self.index.is_empty() {
            // From the start again: keys that come one after the other then lie one after the other. Lines that are
            // empty hold no slot, so nobody looks for one that is gone.
            self.slots.clear();
            self.shown.clear();
            self.free.clear();
            return;
        }
        self.shown[slot as usize] = Shown::default();
        self.free.push(slot);
    }

    pub(crate) fn at(&self, slot: Slot) -> &Record<K> {
        self.slots[slot as usize].as_ref().expect(LIVE)
    }

    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Record<K> {
        self.slots[slot as usize].as_mut().expect(LIVE)
    }

    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.index.iter().copied().collect()
    }
}

const LIVE: &str = "a slot loses its tickets before its record";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_record_of_a_namespace_and_a_name_fits_a_line_of_the_cache() {
        assert!(size_of::<Option<Record<(Arc<str>, Arc<str>)>>>() <= 64);
    }
}
