//! First in, first out, with removal from the middle in constant time: the links of the list are in
//! the records themselves, so a key costs no allocation and leaves nothing behind when it goes.

use crate::record::{Record, Records, Slot};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Links {
    before: Option<Link>,
    after: Option<Link>,
}

/// A slot plus one, so that an `Option` of it takes four bytes.
type Link = std::num::NonZeroU32;

fn pack(slot: Slot) -> Option<Link> {
    Link::new(slot.wrapping_add(1))
}

fn unpack(link: Link) -> Slot {
    link.get() - 1
}

/// Which pair of links a list uses.
pub(crate) type Pick<K> = fn(&mut Record<K>) -> &mut Links;

#[derive(Debug)]
pub(crate) struct Line<K> {
    pick: Pick<K>,
    first: Option<Slot>,
    last: Option<Slot>,
}

impl<K> Line<K> {
    pub(crate) fn new(pick: Pick<K>) -> Self {
        Self { pick, first: None, last: None }
    }

    pub(crate) fn first(&self) -> Option<Slot> {
        self.first
    }

    pub(crate) fn push(&mut self, records: &mut Records<K>, slot: Slot) {
        *(self.pick)(records.at_mut(slot)) =
            Links { before: self.last.and_then(pack), after: None };
        match self.last {
            Some(last) => (self.pick)(records.at_mut(last)).after = pack(slot),
            None => self.first = Some(slot),
        }
        self.last = Some(slot);
    }

    pub(crate) fn remove(&mut self, records: &mut Records<K>, slot: Slot) {
        let Links { before, after } = std::mem::take((self.pick)(records.at_mut(slot)));
        match before.map(unpack) {
            Some(before) => (self.pick)(records.at_mut(before)).after = after,
            None => self.first = after.map(unpack),
        }
        match after.map(unpack) {
            Some(after) => (self.pick)(records.at_mut(after)).before = before,
            None => self.last = before.map(unpack),
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.first, self.last) = (None, None);
    }
}
