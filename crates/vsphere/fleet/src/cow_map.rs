//! A sorted map whose snapshots cost one reference count.
//!
//! Entries lie in leaves of at most [`LEAF`] entries, leaves in one spine. A snapshot shares everything; the first change
//! after it copies the spine and the one leaf it touches, so a change costs in the order of the square root of the
//! entries at worst and a binary search when nobody holds a snapshot. Two snapshots of one map are compared in the time of
//! what differs, because shared leaves are skipped.
//!
//! It is sorted rather than hashed so that two runs of one seed see the same order.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// With 10,000 entries the spine has some 200 leaves: copying either costs about the same.
const LEAF: usize = 64;

type Leaf<K, V> = Vec<(K, V)>;

#[derive(Debug)]
pub(crate) struct CowMap<K, V> {
    /// No leaf is empty; keys ascend within a leaf and from leaf to leaf.
    spine: Arc<Vec<Arc<Leaf<K, V>>>>,
    len: usize,
}

impl<K, V> Clone for CowMap<K, V> {
    fn clone(&self) -> Self {
        Self { spine: Arc::clone(&self.spine), len: self.len }
    }
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        Self { spine: Arc::default(), len: 0 }
    }
}

/// What one key is in a newer map beside an older one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference<'a, K, V> {
    Added(&'a K, &'a V),
    Replaced(&'a K, &'a V),
    Removed(&'a K),
}

impl<K, V> CowMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        Iter { spine: &self.spine, leaf: 0, at: 0 }
    }

    /// From the first key that does not come before what is sought. `before` must be true for a prefix of the keys.
    pub(crate) fn seek(&self, before: impl Fn(&K) -> bool) -> Iter<'_, K, V> {
        // The leaf before the first one that starts at or after the place may hold it in its tail.
        let leaf = self.spine.partition_point(|leaf| before(&leaf[0].0)).saturating_sub(1);
        let at =
            self.spine.get(leaf).map_or(0, |leaf| leaf.partition_point(|(key, _)| before(key)));
        let mut iter = Iter { spine: &self.spine, leaf, at };
        iter.settle();
        iter
    }
}

impl<K: Ord, V> CowMap<K, V> {
    fn leaf_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.spine.partition_point(|leaf| leaf[0].0.borrow() <= key).saturating_sub(1)
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let leaf = self.spine.get(self.leaf_of(key))?;
        let at = leaf.binary_search_by(|(own, _)| own.borrow().cmp(key)).ok()?;
        Some(&leaf[at].1)
    }

    /// What differs between this map and an `older` state of it. Values that `same` calls equal are left out.
    pub(crate) fn since<'a>(
        &'a self,
        older: &'a Self,
        same: impl Fn(&V, &V) -> bool,
    ) -> Vec<Difference<'a, K, V>> {
        let (mut old, mut new) = (older.iter(), self.iter());
        let mut found = Vec::new();
        loop {
            if Iter::skip_shared(&mut old, &mut new) {
                continue;
            }
            match (old.peek(), new.peek()) {
                (None, None) => return found,
                (Some((key, _)), None) => {
                    found.push(Difference::Removed(key));
                    old.step();
                }
                (None, Some((key, value))) => {
                    found.push(Difference::Added(key, value));
                    new.step();
                }
                (Some((gone, was)), Some((key, value))) => match gone.cmp(key) {
                    Ordering::Less => {
                        found.push(Difference::Removed(gone));
                        old.step();
                    }
                    Ordering::Greater => {
                        found.push(Difference::Added(key, value));
                        new.step();
                    }
                    Ordering::Equal => {
                        if !same(was, value) {
                            found.push(Difference::Replaced(key, value));
                        }
                        old.step();
                        new.step();
                    }
                },
            }
        }
    }
}

impl<K: Ord + Clone, V: Clone> CowMap<K, V> {
    /// Returns what the key had before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.leaf_of(&key);
        let spine = Arc::make_mut(&mut self.spine);
        let Some(leaf) = spine.get_mut(at) else {
            spine.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let leaf = Arc::make_mut(leaf);
        match leaf.binary_search_by(|(own, _)| own.cmp(&key)) {
            Ok(found) => return Some(std::mem::replace(&mut leaf[found].1, value)),
            Err(place) => leaf.insert(place, (key, value)),
        }
        self.len += 1;
        if leaf.len() > LEAF {
            let upper = leaf.split_off(LEAF / 2);
            spine.insert(at + 1, Arc::new(upper));
        }
        None
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // Looked up first: a key that is not there must not copy anything.
        let at = self.leaf_of(key);
        let place = self.spine.get(at)?.binary_search_by(|(own, _)| own.borrow().cmp(key)).ok()?;
        let spine = Arc::make_mut(&mut self.spine);
        let leaf = Arc::make_mut(&mut spine[at]);
        let (_, value) = leaf.remove(place);
        self.len -= 1;
        if leaf.is_empty() {
            spine.remove(at);
        } else if spine.get(at + 1).is_some_and(|next| spine[at].len() + next.len() <= LEAF / 2) {
            let next = spine.remove(at + 1);
            Arc::make_mut(&mut spine[at]).extend(next.iter().cloned());
        }
        Some(value)
    }
}

#[derive(Debug)]
pub(crate) struct Iter<'a, K, V> {
    spine: &'a [Arc<Leaf<K, V>>],
    leaf: usize,
    at: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn peek(&self) -> Option<(&'a K, &'a V)> {
        self.spine.get(self.leaf)?.get(self.at).map(|(key, value)| (key, value))
    }

    fn step(&mut self) {
        self.at += 1;
        self.settle();
    }

    fn settle(&mut self) {
        if self.spine.get(self.leaf).is_some_and(|leaf| self.at >= leaf.len()) {
            self.leaf += 1;
            self.at = 0;
        }
    }

    /// Steps both over a leaf that both are at the start of.
    fn skip_shared(a: &mut Self, b: &mut Self) -> bool {
        let shared = a.at == 0
            && b.at == 0
            && matches!((a.spine.get(a.leaf), b.spine.get(b.leaf)), (Some(x), Some(y)) if Arc::ptr_eq(x, y));
        if shared {
            a.leaf += 1;
            b.leaf += 1;
        }
        shared
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.peek()?;
        self.step();
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn agree(map: &CowMap<u16, u8>, model: &BTreeMap<u16, u8>) {
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(model.iter()));
        assert!(map.spine.iter().all(|leaf| !leaf.is_empty() && leaf.len() <= LEAF));
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map_and_its_snapshots_do_not_move(
            steps in prop::collection::vec((any::<bool>(), 0..400_u16, any::<u8>()), 0..800),
            cut in 0..800_usize,
            probe in 0..410_u16,
        ) {
            let (mut map, mut model) = (CowMap::default(), BTreeMap::new());
            let mut kept = (map.clone(), model.clone());
            for (index, (insert, key, value)) in steps.into_iter().enumerate() {
                if index == cut {
                    kept = (map.clone(), model.clone());
                }
                if insert {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                } else {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                }
            }
            agree(&map, &model);
            agree(&kept.0, &kept.1);
            prop_assert_eq!(map.get(&probe), model.get(&probe));
            prop_assert!(map.seek(|key| *key < probe).eq(model.range(probe..)));

            let mut replayed = kept.1;
            for difference in map.since(&kept.0, |a, b| a == b) {
                match difference {
                    Difference::Added(key, value) => prop_assert!(replayed.insert(*key, *value).is_none()),
                    Difference::Replaced(key, value) => prop_assert!(replayed.insert(*key, *value).is_some()),
                    Difference::Removed(key) => prop_assert!(replayed.remove(key).is_some()),
                }
            }
            prop_assert_eq!(replayed, model);
        }
    }

    #[test]
    fn a_change_copies_one_leaf() {
        let mut map = CowMap::default();
        for key in 0..10_000_u32 {
            map.insert(key, key);
        }
        let before = map.clone();
        map.insert(5_000, 0);
        let shared =
            map.spine.iter().filter(|leaf| before.spine.iter().any(|old| Arc::ptr_eq(leaf, old)));
        assert_eq!(shared.count(), map.spine.len() - 1);
        assert_eq!(map.since(&before, |a, b| a == b), [Difference::Replaced(&5_000, &0)]);
    }
}
