use std::collections::HashMap;

use roost_vim_wire::MoRef;

pub(super) type FilterId = u64;

/// From an object to the filters that look at it: a change asks here and nowhere else.
#[derive(Debug, Default)]
pub(super) struct Interest(HashMap<MoRef, Vec<FilterId>>);

impl Interest {
    pub(super) fn of(&self, obj: &MoRef) -> Vec<FilterId> {
        self.0.get(obj).cloned().unwrap_or_default()
    }

    pub(super) fn add(&mut self, obj: &MoRef, filter: FilterId) {
        let filters = self.0.entry(obj.clone()).or_default();
        if !filters.contains(&filter) {
            filters.push(filter);
        }
    }

    pub(super) fn remove(&mut self, obj: &MoRef, filter: FilterId) {
        if let Some(filters) = self.0.get_mut(obj) {
            filters.retain(|known| *known != filter);
            if filters.is_empty() {
                self.0.remove(obj);
            }
        }
    }
}
