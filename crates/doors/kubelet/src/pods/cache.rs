//! Snapshots that were pulled and are kept for the next clone. Only those: whatever a person or a hibernation has saved is not ours to delete.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use roost_microvm::SnapshotRecord;
use tokio::sync::Notify;

use super::host::Host;

/// What is known of the pulled snapshots on this host.
#[derive(Debug)]
pub(crate) struct SnapshotCache {
    /// Bytes.
    pub(crate) limit: u64,
    used: AtomicU64,
    uses: Mutex<BTreeMap<String, Use>>,
    /// What is there, as of the last look: name and bytes.
    kept: Mutex<BTreeMap<String, u64>>,
    /// Something was pulled and is still held: a look would be too early.
    has_grown: AtomicBool,
    grown: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    holders: u32,
    last: Timestamp,
}

/// Somebody clones from it, so that it stays. Until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    cache: &'a SnapshotCache,
    name: String,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.cache.uses().get_mut(&self.name) {
            held.holders = held.holders.saturating_sub(1);
        }
        if self.cache.has_grown.swap(false, Ordering::Relaxed) {
            self.cache.grown.notify_one();
        }
    }
}

impl SnapshotCache {
    pub(crate) fn new(limit: u64) -> Self {
        let (used, has_grown) = (AtomicU64::new(0), AtomicBool::new(false));
        let (uses, kept) = (Mutex::default(), Mutex::default());
        Self { limit, used, uses, kept, has_grown, grown: Notify::new() }
    }

    fn uses(&self) -> MutexGuard<'_, BTreeMap<String, Use>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hold(&self, name: &str, now: Timestamp) -> Held<'_> {
        let mut uses = self.uses();
        let held = uses.entry(name.to_owned()).or_insert(Use { holders: 0, last: now });
        *held = Use { holders: held.holders + 1, last: now };
        Held { cache: self, name: name.to_owned() }
    }

    /// A pulled snapshot that is kept for the next clone: its bytes, and when it was last used.
    pub(crate) fn kept(&self, name: &str) -> Option<(u64, Option<Timestamp>)> {
        let bytes = *self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(name)?;
        Some((bytes, self.uses().get(name).map(|known| known.last)))
    }

    /// Something was pulled. It is looked at when nobody holds it any more.
    pub(crate) fn grow(&self) {
        self.has_grown.store(true, Ordering::Relaxed);
    }

    /// Bytes, as of the last look.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Those that go, so that the others fit: the ones that nobody has used for longest, and none that somebody uses.
    fn surplus(&self, sized: Vec<(SnapshotRecord, u64)>) -> Vec<SnapshotRecord> {
        let mut used: u64 = sized.iter().map(|(_, size)| size).sum();
        let uses = self.uses();
        let last = |snapshot: &SnapshotRecord| match uses.get(&snapshot.name) {
            Some(known) => known.last,
            None => snapshot.created_at.unwrap_or(Timestamp::UNIX_EPOCH),
        };
        let is_free = |(snapshot, _): &(SnapshotRecord, u64)| {
            uses.get(&snapshot.name).is_none_or(|known| known.holders == 0)
        };
        let mut free: Vec<_> = sized.into_iter().filter(is_free).collect();
        free.sort_by_key(|(snapshot, _)| last(snapshot));
        let mut surplus = Vec::new();
        for (snapshot, size) in free {
            if used <= self.limit {
                break;
            }
            used = used.saturating_sub(size);
            surplus.push(snapshot);
        }
        self.used.store(used, Ordering::Relaxed);
        surplus
    }
}

impl Host {
    /// At the start, and whenever something was pulled and cloned from.
    pub(crate) async fn keep_cache(&self) {
        loop {
            self.trim_cache().await;
            self.cache.grown.notified().await;
        }
    }

    async fn trim_cache(&self) {
        let all = match self.runtime.snapshots().await {
            Ok(all) => all,
            Err(error) => {
                tracing::warn!("the snapshots of this host cannot be listed: {error}");
                return;
            }
        };
        let pulled = all.into_iter().filter(SnapshotRecord::is_pulled);
        let sized: Vec<_> =
            pulled.map(|it| (it.clone(), self.runtime.snapshot_size(&it))).collect();
        let mut kept: BTreeMap<_, _> =
            sized.iter().map(|(snapshot, bytes)| (snapshot.name.clone(), *bytes)).collect();
        for snapshot in self.cache.surplus(sized) {
            let name = &snapshot.name;
            match self.runtime.snapshot_remove(name).await {
                Ok(()) => {
                    kept.remove(name);
                    tracing::info!(snapshot = name, "removed a snapshot that nobody used lately");
                    self.metrics.cache_evictions.inc();
                }
                Err(error) => tracing::warn!(snapshot = name, "it stays: {error}"),
            }
        }
        *self.cache.kept.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        self.metrics.cache_bytes.set(i64::try_from(self.cache.used()).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(name: &str, second: i64) -> (SnapshotRecord, u64) {
        let created_at = Some(Timestamp::from_second(second).unwrap());
        (SnapshotRecord { name: name.to_owned(), created_at, ..SnapshotRecord::default() }, 10)
    }

    #[test]
    fn the_longest_unused_goes_first_and_what_is_used_stays() {
        let cache = SnapshotCache::new(20);
        let all = || vec![snapshot("a", 1), snapshot("b", 2), snapshot("c", 3), snapshot("d", 4)];
        let gone = |cache: &SnapshotCache| {
            let names: Vec<String> = cache.surplus(all()).into_iter().map(|it| it.name).collect();
            names.join(" ")
        };
        assert_eq!((gone(&cache).as_str(), cache.used()), ("a b", 20));
        let now = Timestamp::from_second(9).unwrap();
        let held = cache.hold("a", now);
        assert_eq!(gone(&cache), "b c", "a is being cloned from");
        drop(held);
        assert_eq!(gone(&cache), "b c", "a was used last");
        let _all = ["a", "b", "c"].map(|name| cache.hold(name, now));
        assert_eq!((gone(&cache).as_str(), cache.used()), ("d", 30), "more than fits is in use");
    }
}
