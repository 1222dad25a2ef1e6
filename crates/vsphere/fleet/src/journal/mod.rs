//! Every verdict is a record. Logs, metrics, `roost explain` and the web page read the same one.

mod decision;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::broadcast;

pub use self::decision::{Decided, Decision, Draft, NextLook, Subject};

/// The last decisions, and the last of each subject. A handle; clones share the journal.
#[derive(Debug, Clone)]
pub struct Journal {
    inner: Arc<Mutex<Inner>>,
    news: broadcast::Sender<Arc<Decision>>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalSize {
    pub decisions: usize,
    /// Subjects whose last decision is kept although newer ones of others have pushed it out.
    pub subjects: usize,
}

impl Default for JournalSize {
    /// A decision with ten gates is about a kilobyte.
    fn default() -> Self {
        Self { decisions: 4_096, subjects: 8_192 }
    }
}

#[derive(Debug)]
struct Inner {
    size: JournalSize,
    last_seq: u64,
    ring: VecDeque<Arc<Decision>>,
    latest: BTreeMap<Subject, Latest>,
    /// How often anything was decided.
    touches: u64,
    /// The subjects of `latest` by when they were last decided on, oldest first.
    by_age: BTreeMap<u64, Subject>,
}

/// The last word on a subject.
#[derive(Debug)]
struct Latest {
    decision: Arc<Decision>,
    touched: u64,
}

/// Which decisions are asked for. What is unset does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub subject: Option<Subject>,
    pub verdict: Option<Decided>,
    pub bound_by: Option<String>,
    /// Only what has happened; see [`Decided::is_event`].
    pub events: bool,
    /// Only those after this number.
    pub after: Option<u64>,
    /// The newest so many of them.
    pub limit: Option<usize>,
}

impl Query {
    pub fn of(subject: Subject) -> Self {
        Self { subject: Some(subject), ..Self::default() }
    }

    fn wants(&self, decision: &Decision) -> bool {
        self.subject.as_ref().is_none_or(|subject| *subject == decision.subject)
            && self.verdict.is_none_or(|verdict| verdict == decision.verdict)
            && self.bound_by.as_deref().is_none_or(|gate| decision.bound_by == Some(gate))
            && (!self.events || decision.verdict.is_event())
            && self.after.is_none_or(|after| decision.seq > after)
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self::new(JournalSize::default())
    }
}

impl Journal {
    pub fn new(size: JournalSize) -> Self {
        let inner = Inner {
            size,
            last_seq: 0,
            ring: VecDeque::new(),
            latest: BTreeMap::new(),
            touches: 0,
            by_age: BTreeMap::new(),
        };
        // A reader that falls this far behind reads the journal again instead.
        let (news, _) = broadcast::channel(256);
        Self { inner: Arc::new(Mutex::new(inner)), news }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a decision and tells whoever listens. The same verdict for the same reason as the subject's last one takes that
    /// one's place and counts how often. What still has to wait has one entry, with the gate that it waits for now.
    pub fn record(&self, draft: Draft, now: Timestamp) -> Arc<Decision> {
        let decision = self.inner().enter(draft, now);
        if decision.times == 1 {
            tracing::info!(seq = decision.seq, verdict = decision.verdict.as_str(), "{decision}");
        } else {
            tracing::debug!(seq = decision.seq, times = decision.times, "{decision}");
        }
        // What is decided again and again is told ever more seldom. Nobody has to listen.
        if decision.times.is_power_of_two() {
            let _ = self.news.send(Arc::clone(&decision));
        }
        decision
    }

    /// Why a subject is as it is.
    pub fn latest(&self, subject: &Subject) -> Option<Arc<Decision>> {
        self.inner().latest.get(subject).map(|latest| Arc::clone(&latest.decision))
    }

    /// Oldest first.
    pub fn find(&self, query: &Query) -> Vec<Arc<Decision>> {
        let inner = self.inner();
        let newest = inner.ring.iter().rev().filter(|decision| query.wants(decision));
        let mut found: Vec<_> = newest.take(query.limit.unwrap_or(usize::MAX)).cloned().collect();
        // What was pushed out of the ring may still be some subject's last word.
        if found.is_empty()
            && let Some(Latest { decision, .. }) =
                query.subject.as_ref().and_then(|subject| inner.latest.get(subject))
            && query.wants(decision)
        {
            found.push(Arc::clone(decision));
        }
        found.reverse();
        found
    }

    /// Decisions from here on; of one that repeats itself the first, second, fourth, eighth and so on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Decision>> {
        self.news.subscribe()
    }

    pub fn len(&self) -> usize {
        self.inner().ring.len()
    }

    pub fn is_empty(&self) -> bool {
        self.inner().ring.is_empty()
    }
}

impl Inner {
    fn enter(&mut self, draft: Draft, now: Timestamp) -> Arc<Decision> {
        let before = self.latest.get(&draft.subject).map(|latest| Arc::clone(&latest.decision));
        let same = before.as_deref().filter(|before| draft.says_the_same(before));
        let (times, since) =
            same.map_or((1, now), |before| (before.times.saturating_add(1), before.since));
        let seq = if let Some(before) = same {
            before.seq
        } else {
            self.last_seq += 1;
            self.last_seq
        };
        // One that waits for another gate by now has not come any further: what it waited for before is no news to anybody.
        let waits_on = before.as_deref().filter(|before| {
            before.verdict == Decided::Deferred && draft.verdict == Decided::Deferred
        });
        let replaced = same.or(waits_on).map(|before| before.seq);
        let Draft { subject, verdict, reason, gates, bound_by, next_look, vm } = draft;
        let decision = Arc::new(Decision {
            seq,
            at: now,
            subject,
            verdict,
            reason,
            gates,
            bound_by,
            next_look,
            vm,
            times,
            since,
        });
        self.place(&decision, replaced);
        self.remember(&decision);
        decision
    }

    /// Where it stood if it repeats itself, at the end if it is new.
    fn place(&mut self, decision: &Arc<Decision>, replaced: Option<u64>) {
        let stood = replaced
            .and_then(|seq| self.ring.binary_search_by_key(&seq, |decision| decision.seq).ok());
        match stood {
            Some(at) if replaced == Some(decision.seq) => {
                self.ring[at] = Arc::clone(decision);
                return;
            }
            Some(at) => {
                self.ring.remove(at);
            }
            // Pushed out by others long ago: the last word is kept elsewhere.
            None if replaced == Some(decision.seq) => return,
            None => {}
        }
        self.ring.push_back(Arc::clone(decision));
        if self.ring.len() > self.size.decisions {
            self.ring.pop_front();
        }
    }

    fn remember(&mut self, decision: &Arc<Decision>) {
        self.touches += 1;
        let touched = self.touches;
        let subject = decision.subject.clone();
        let latest = Latest { decision: Arc::clone(decision), touched };
        if let Some(before) = self.latest.insert(subject.clone(), latest) {
            self.by_age.remove(&before.touched);
        }
        self.by_age.insert(touched, subject);
        if self.latest.len() > self.size.subjects
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.latest.remove(&oldest);
        }
    }
}
