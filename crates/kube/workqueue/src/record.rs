use crate::age::Links;
use crate::moment::Moment;

/// Where a record lives in [`Records`].
pub(crate) type Slot = u32;

/// All that is known of one key.
#[derive(Debug)]
pub(crate) struct Record<K> {
    pub(crate) key: K,
    /// As asked: the highest since the key was last handed out.
    pub(crate) priority: i32,
    /// The priority, or what it became by ageing.
    pub(crate) level: i32,
    /// The place within the level.
    pub(crate) seq: u64,
    pub(crate) place: Place,
    /// Handed out and not yet done.
    pub(crate) is_taken: bool,
    /// When the key became ready.
    pub(crate) ready_since: Moment,
    /// When the key came to its level.
    pub(crate) level_since: Moment,
    /// Among all keys that can be taken, by how long.
    pub(crate) by_age: Links,
    /// Among the same keys, by how long they are at their level.
    pub(crate) by_level_age: Links,
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

/// Records by slot. A slot is used again after its record is gone.
#[derive(Debug)]
pub(crate) struct Records<K> {
    slots: Vec<Option<Record<K>>>,
    free: Vec<Slot>,
}

impl<K> Records<K> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, record: Record<K>) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(record);
            return slot;
        }
        let slot = Slot::try_from(self.slots.len()).expect("fewer than four billion keys");
        self.slots.push(Some(record));
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Record<K>> {
        let record = self.slots[slot as usize].take();
        if record.is_some() {
            self.free.push(slot);
        }
        record
    }

    pub(crate) fn at(&self, slot: Slot) -> &Record<K> {
        self.slots[slot as usize].as_ref().expect(LIVE)
    }

    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Record<K> {
        self.slots[slot as usize].as_mut().expect(LIVE)
    }
}

const LIVE: &str = "a slot is dropped from every order before its record is";
