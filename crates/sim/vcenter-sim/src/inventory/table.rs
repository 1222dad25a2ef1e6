use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use roost_vim_wire::MoRef;

/// Objects of one kind: found by id at once, walked in the order they were made, so that a run does not depend on a hash.
#[derive(Debug, Clone)]
pub(crate) struct Table<T> {
    serials: HashMap<Arc<str>, u32>,
    rows: BTreeMap<u32, (MoRef, T)>,
    next: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { serials: HashMap::new(), rows: BTreeMap::new(), next: 0 }
    }
}

impl<T> Table<T> {
    pub(crate) fn insert(&mut self, moref: &MoRef, row: T) -> u32 {
        let serial = self.next;
        self.next += 1;
        self.serials.insert(Arc::clone(&moref.id), serial);
        self.rows.insert(serial, (moref.clone(), row));
        serial
    }

    pub(crate) fn remove(&mut self, moref: &MoRef) -> Option<T> {
        let serial = self.serials.remove(&moref.id)?;
        self.rows.remove(&serial).map(|(_, row)| row)
    }

    /// The object of this id, if it is of this kind: a reference with a wrong kind is no reference.
    pub(crate) fn get(&self, moref: &MoRef) -> Option<&T> {
        let (found, row) = self.rows.get(self.serials.get(&moref.id)?)?;
        (found.kind == moref.kind).then_some(row)
    }

    pub(crate) fn get_mut(&mut self, moref: &MoRef) -> Option<&mut T> {
        let (found, row) = self.rows.get_mut(self.serials.get(&moref.id)?)?;
        (found.kind == moref.kind).then_some(row)
    }

    pub(crate) fn contains(&self, moref: &MoRef) -> bool {
        self.get(moref).is_some()
    }

    pub(crate) fn serial(&self, moref: &MoRef) -> Option<u32> {
        self.serials.get(&moref.id).copied()
    }

    pub(crate) fn moref_at(&self, serial: u32) -> Option<&MoRef> {
        self.rows.get(&serial).map(|(moref, _)| moref)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&MoRef, &T)> {
        self.rows.values().map(|(moref, row)| (moref, row))
    }

    pub(crate) fn refs(&self) -> impl Iterator<Item = &MoRef> {
        self.rows.values().map(|(moref, _)| moref)
    }
}
