use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A set that is walked in the order its members came in, so that a run does not depend on a hash.
#[derive(Debug, Clone)]
pub(crate) struct OrderedSet<T> {
    order: BTreeMap<u64, T>,
    places: HashMap<T, u64>,
    next: u64,
}

impl<T> Default for OrderedSet<T> {
    fn default() -> Self {
        Self { order: BTreeMap::new(), places: HashMap::new(), next: 0 }
    }
}

impl<T: Clone + Eq + Hash> OrderedSet<T> {
    /// `false` if it was there.
    pub(crate) fn insert(&mut self, item: T) -> bool {
        let std::collections::hash_map::Entry::Vacant(place) = self.places.entry(item) else {
            return false;
        };
        self.order.insert(self.next, place.key().clone());
        place.insert(self.next);
        self.next += 1;
        true
    }

    pub(crate) fn remove(&mut self, item: &T) -> bool {
        self.places.remove(item).is_some_and(|place| self.order.remove(&place).is_some())
    }

    pub(crate) fn contains(&self, item: &T) -> bool {
        self.places.contains_key(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.order.values()
    }
}

impl<T: Clone + Eq + Hash> FromIterator<T> for OrderedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut set = Self::default();
        for item in items {
            set.insert(item);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_out_in_the_order_they_came_in() {
        let mut set: OrderedSet<&str> = ["c", "a", "b", "a"].into_iter().collect();
        assert!(set.remove(&"a") && !set.remove(&"a"));
        assert!(set.insert("a") && !set.insert("b"));
        assert_eq!(set.iter().copied().collect::<Vec<_>>(), ["c", "b", "a"]);
    }
}
