use hashbrown::HashTable;

use crate::line::Ticket;
use crate::moment::Moment;

/// Where a record lives in [`Records`].
pub(crate) type Slot = u32;

/// All that is known of one key.
#[derive(Debug)]
pub(crate) struct Record<K> {
    pub(crate) key: K,
    hash: u64,
    /// As asked: the highest since the key was last handed out.
    pub(crate) priority: i32,
    /// The priority, or what it became by ageing.
    pub(crate) level: i32,
    /// The place within the level.
    pub(crate) ticket: Ticket,
    pub(crate) place: Place,
    /// Handed out and not yet done.
    pub(crate) is_taken: bool,
    /// When the key became ready.
    pub(crate) ready_since: Moment,
    pub(crate) label: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not queued; the record is there because the key is taken.
    Nowhere,
    Waiting {
        due: Moment,
    },
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

    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<Slot> {
        self.index.find(hash, |slot| self.at(*slot).key == *key).copied()
    }

    /// A key that is not there yet.
    pub(crate) fn insert(&mut self, hash: u64, key: K, priority: i32, now: Moment) -> Slot {
        let record = Record {
            key,
            hash,
            priority,
            level: priority,
            ticket: 0,
            place: Place::Nowhere,
            is_taken: false,
            ready_since: now,
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
        self.index.insert_unique(hash, slot, |slot| {
            slots[*slot as usize].as_ref().map_or(0, |record| record.hash)
        });
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        let Some(record) = self.slots[slot as usize].take() else { return };
        if let Ok(entry) = self.index.find_entry(record.hash, |known| *known == slot) {
            entry.remove();
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
