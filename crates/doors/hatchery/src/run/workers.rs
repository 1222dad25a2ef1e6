//! The workers that CDS knows, as one whole reading of both lists or none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{CallError, WorkerStatus, v1, v2};
use roost_fleet::{Freshness, Mirror};
use roost_supervise::{ClockWatch, Tasks};
use tokio::time::Instant;

use super::about::About;
use super::holding::WorkerFacts;
use super::scheduler::{Scheduler, lock};
use super::signals::Signals;
use crate::door::{HATCHERY, PENDING, WORKERS};
use crate::pool::{Listed, StartedVm, Views};

/// Decisions rest on a reading no older than this.
pub(crate) const BELIEVED_FOR: Duration = Duration::from_secs(45);
/// Without workers, and nobody who waits for one.
const AT_REST: Duration = Duration::from_secs(30);
/// While workers are at work.
const SLOW: Duration = Duration::from_secs(15);
/// While workers are on their way: a worker that has registered makes room for the next.
const FAST: Duration = Duration::from_secs(3);

/// Both lists as they were read at one time. A protocol that is not spoken has no list.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerLists {
    pub(crate) v1: Option<Vec<v1::Worker>>,
    pub(crate) v2: Option<Vec<v2::Worker>>,
    /// When the first of them was asked for.
    pub(crate) as_of: Timestamp,
    /// Which reading it was: a later one has a higher number, whatever the clock says.
    reading: u64,
    /// The same time as `as_of`, by a clock that nobody sets.
    read_at: Option<Instant>,
}

impl WorkerLists {
    fn named(&self) -> impl Iterator<Item = (&str, WorkerStatus)> {
        let v1 = self.v1.iter().flatten().map(|worker| (worker.name.as_str(), worker.status));
        let v2 = self.v2.iter().flatten().map(|worker| (worker.name.as_str(), worker.status));
        v1.chain(v2)
    }

    pub(super) fn facts(&self) -> WorkerFacts {
        let mut facts = WorkerFacts::default();
        for (name, status) in self.named() {
            let name: Arc<str> = name.into();
            if status == WorkerStatus::Disabled {
                facts.disabled.insert(Arc::clone(&name));
            }
            facts.registered.insert(name);
        }
        facts
    }

    /// Those that take a worker's slot.
    pub(super) fn counting(&self) -> impl Iterator<Item = Arc<str>> {
        self.named()
            .filter(|(_, status)| *status != WorkerStatus::Disabled)
            .map(|(name, _)| name.into())
    }

    pub(crate) fn len(&self) -> usize {
        self.named().count()
    }

    pub(crate) fn views<'a>(&'a self, vms: Listed<Vec<StartedVm<'a>>>) -> Views<'a> {
        Views {
            vms,
            v1: self.v1.as_deref().map_or(Listed::NotSpoken, Listed::Whole),
            v2: self.v2.as_deref().map_or(Listed::NotSpoken, Listed::Whole),
        }
    }
}

/// Reads the lists. Has the last whole reading, and what is wrong if a later one failed.
#[derive(Debug)]
pub(crate) struct Workers {
    about: Arc<About>,
    pub(super) cds: roost_cds::Client,
    mirror: Mirror,
    pub(super) scheduler: Arc<Scheduler>,
    signals: Arc<Signals>,
    latest: Mutex<Latest>,
    /// One reading at a time; whoever comes meanwhile takes its result.
    reading: tokio::sync::Mutex<()>,
    /// How many have begun.
    begun: AtomicU64,
}

#[derive(Debug, Default, Clone)]
struct Latest {
    lists: Option<Arc<WorkerLists>>,
    trouble: Option<String>,
}

impl Workers {
    pub(super) fn new(
        about: &Arc<About>,
        cds: &roost_cds::Client,
        mirror: &Mirror,
        scheduler: &Arc<Scheduler>,
        signals: &Arc<Signals>,
    ) -> Self {
        Self {
            about: Arc::clone(about),
            cds: cds.clone(),
            mirror: mirror.clone(),
            scheduler: Arc::clone(scheduler),
            signals: Arc::clone(signals),
            latest: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            begun: AtomicU64::default(),
        }
    }

    pub(super) fn hatchery(&self) -> &str {
        self.about.hatchery()
    }

    pub(crate) fn latest(&self) -> Option<Arc<WorkerLists>> {
        lock(&self.latest).lists.clone()
    }

    /// The last whole reading if decisions may rest on it.
    pub(crate) fn believed(&self) -> Result<Arc<WorkerLists>, String> {
        let Latest { lists, trouble } = lock(&self.latest).clone();
        match lists {
            Some(lists) if lists.read_at.is_some_and(|at| at.elapsed() <= BELIEVED_FOR) => {
                Ok(lists)
            }
            _ => Err(trouble.unwrap_or_else(|| "the workers were not read yet".to_owned())),
        }
    }

    /// For the guard: failed readings make it incomplete.
    pub(crate) fn freshness(&self) -> Freshness {
        let Latest { lists, trouble } = lock(&self.latest).clone();
        let fresh = lists
            .map_or_else(Freshness::default, |lists| Freshness::complete(lists.as_of, lists.len()));
        match trouble {
            Some(trouble) => fresh.failed(trouble),
            None => fresh,
        }
    }

    /// Reads both lists, unless a reading that began after this call was made by somebody else.
    pub(crate) async fn read(&self) -> Result<Arc<WorkerLists>, CallError> {
        // Counted, not timed: a clock that is set back would make every later reading an old one.
        let asked = self.begun.load(Ordering::SeqCst);
        let _one = self.reading.lock().await;
        if let Some(lists) = self.latest().filter(|lists| lists.reading > asked) {
            return Ok(lists);
        }
        let reading = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let (as_of, read_at) = (self.about.clock.now(), Some(Instant::now()));
        let read = async {
            let v1 = match self.cds.v1() {
                Some(client) => Some(client.workers().await?),
                None => None,
            };
            let v2 = match self.cds.v2() {
                Some(client) => Some(client.workers().await?),
                None => None,
            };
            Ok::<_, CallError>(WorkerLists { v1, v2, as_of, reading, read_at })
        };
        match read.await {
            Ok(lists) => {
                let lists = Arc::new(lists);
                *lock(&self.latest) = Latest { lists: Some(Arc::clone(&lists)), trouble: None };
                let now = self.about.clock.now();
                let mut scheduler = self.scheduler.lock();
                let snapshot = self.mirror.snapshot();
                scheduler.hear(&lists, &snapshot, now);
                drop(scheduler);
                self.signals.plan.notify_one();
                Ok(lists)
            }
            Err(error) => {
                lock(&self.latest).trouble = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Reads the lists for ever: seldom at rest, often while workers are awaited.
    pub(super) async fn follow(&self, tasks: &Tasks) {
        let mut watch = ClockWatch::new(Arc::clone(&self.about.clock));
        loop {
            if let Some(jump) = watch.jump() {
                let way = if jump.is_negative() { "back" } else { "ahead" };
                let secs = jump.abs().as_secs();
                tracing::warn!(secs, "the clock of this machine jumped {way} by {secs} s");
            }
            tasks.beat("worker-lists", self.about.patience() + AT_REST);
            let read = self.read().await;
            if let Err(error) = &read {
                tracing::warn!("reading the workers from CDS failed: {error}");
            }
            let taken =
                self.scheduler.lock().ledger.lock().taken(HATCHERY, self.about.clock.now()).by_vms;
            // A reading that failed is made up for before decisions run out of a fresh one.
            let pause = match (taken.of(PENDING) > 0, taken.of(WORKERS) > 0 || read.is_err()) {
                (true, _) => FAST,
                (false, true) => SLOW,
                (false, false) => AT_REST,
            };
            tokio::select! {
                biased;
                () = self.signals.workers.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}
