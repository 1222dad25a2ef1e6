use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use roost_views::{DecisionView, HistoryView, Overview, RequestView, SteeringView, VmView};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::terminal::{Detail, Lost, Opened, Picture, Said};

/// All that is known of a service, shared by those who ask and the view.
#[derive(Debug)]
pub(super) struct Known {
    facts: Mutex<Facts>,
    /// Something was opened or ordered: asked for at once.
    pub(super) at_once: Notify,
}

#[derive(Debug, Clone)]
pub(super) struct Facts {
    overview: Overview,
    /// When it came, on our own clock.
    came: Instant,
    pub(super) steering: SteeringView,
    pub(super) requests: Vec<RequestView>,
    pub(super) vms: Vec<VmView>,
    pub(super) decisions: Vec<DecisionView>,
    pub(super) history: HistoryView,
    pub(super) opened: Option<Opened>,
    /// What it is about, so that nobody is shown one request as another.
    pub(super) detail: Option<(Opened, Detail)>,
    pub(super) said: Option<Said>,
    lost: Option<(Instant, String)>,
    /// Events come.
    is_heard: bool,
}

/// The lists, which no event tells of.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) steering: SteeringView,
    pub(super) requests: Vec<RequestView>,
    pub(super) vms: Vec<VmView>,
}

impl Known {
    pub(super) fn new(facts: Facts) -> Self {
        Self { facts: Mutex::new(facts), at_once: Notify::new() }
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        // Whoever panicked has left whole values.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    pub(super) fn new(overview: Overview, lists: Lists, decisions: Vec<DecisionView>) -> Self {
        let Lists { steering, requests, vms } = lists;
        Self {
            overview,
            came: Instant::now(),
            steering,
            requests,
            vms,
            decisions,
            history: HistoryView::default(),
            opened: None,
            detail: None,
            said: None,
            lost: None,
            is_heard: false,
        }
    }

    /// The service was heard, and will be.
    pub(super) fn heard(&mut self, overview: Overview) {
        (self.overview, self.came, self.lost) = (overview, Instant::now(), None);
        self.is_heard = true;
    }

    /// The service has told its lists.
    pub(super) fn told(&mut self, lists: Lists) {
        Lists { steering: self.steering, requests: self.requests, vms: self.vms } = lists;
        // An answer that did not come is forgotten with the next one, unless events do not come either.
        if self.is_heard {
            self.lost = None;
        }
    }

    /// Events come no more.
    pub(super) fn unheard(&mut self, why: String) {
        self.is_heard = false;
        self.lost(why);
    }

    /// A decision that is made again and again is one line.
    pub(super) fn decided(&mut self, decision: DecisionView) {
        let same = |last: &DecisionView| {
            last.subject == decision.subject
                && last.verdict == decision.verdict
                && last.since == decision.since
        };
        self.decisions.retain(|last| !same(last));
        self.decisions.push(decision);
        let beyond = self.decisions.len().saturating_sub(Picture::DECISIONS * 2);
        self.decisions.drain(..beyond);
    }

    pub(super) fn lost(&mut self, why: String) {
        let since = self.lost.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        self.lost = Some((since, why));
    }

    pub(super) fn loss(&self) -> Option<Lost> {
        let (since, why) = self.lost.as_ref()?;
        let for_secs = since.elapsed().as_secs();
        Some(Lost { since: self.overview().now, for_secs, why: why.clone() })
    }

    /// The overview as it is by now: time has passed since it came. While the service cannot be heard, nobody knows what has.
    pub(super) fn overview(&self) -> Overview {
        let until = self.lost.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        let passed = until.saturating_duration_since(self.came);
        let mut overview = self.overview.clone();
        overview.now = later(overview.now, passed);
        let waits = &mut overview.queue.oldest_waiting_secs;
        *waits = waits.map(|secs| secs + passed.as_secs());
        overview
    }
}

fn later(now: Timestamp, passed: Duration) -> Timestamp {
    let passed = SignedDuration::try_from(passed).unwrap_or_default();
    now.checked_add(passed).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use roost_views::{DeletionsView, Gauges, LinkView, QueueView, SubjectKind, Verdict};
    use tokio::time::advance;

    use super::*;

    fn overview(secs: i64) -> Overview {
        Overview {
            service: "nest".into(),
            version: "0.1.0".into(),
            now: Timestamp::from_second(secs).unwrap(),
            started: Timestamp::UNIX_EPOCH,
            ready: true,
            observes_only: false,
            what_binds: None,
            needs: Vec::new(),
            outages: Vec::new(),
            queue: QueueView { waiting: 1, oldest_waiting_secs: Some(5), ..QueueView::default() },
            lanes: Vec::new(),
            pools: Vec::new(),
            capacity: Gauges::default(),
            addresses: None,
            deletions: DeletionsView::default(),
            link: LinkView::default(),
            recent: Vec::new(),
            doors: Vec::new(),
        }
    }

    fn facts() -> Facts {
        let lists =
            Lists { steering: SteeringView::default(), requests: Vec::new(), vms: Vec::new() };
        Facts::new(overview(100), lists, Vec::new())
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_between_overviews_and_stands_still_while_the_service_cannot_be_heard() {
        let mut facts = facts();
        advance(Duration::from_secs(10)).await;
        assert_eq!(facts.overview().now.as_second(), 110);
        assert_eq!(facts.overview().queue.oldest_waiting_secs, Some(15));
        facts.lost("connection refused".into());
        advance(Duration::from_secs(30)).await;
        facts.lost("connection refused again".into());
        assert_eq!(facts.overview().now.as_second(), 110);
        let loss = facts.loss().unwrap();
        assert_eq!(loss.for_secs, 30, "since the first time");
        assert_eq!(loss.since.as_second(), 110);
        assert_eq!(loss.why, "connection refused again");
        facts.heard(overview(150));
        assert_eq!((facts.overview().now.as_second(), facts.loss()), (150, None));
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_that_did_not_come_is_forgotten_with_the_next_but_not_while_events_are_missing()
     {
        let lists =
            || Lists { steering: SteeringView::default(), requests: Vec::new(), vms: Vec::new() };
        let mut facts = facts();
        facts.heard(overview(100));
        facts.lost("timed out".into());
        facts.told(lists());
        assert_eq!(facts.loss(), None);
        facts.unheard("connection refused".into());
        facts.told(lists());
        assert_eq!(facts.loss().unwrap().why, "connection refused");
        facts.heard(overview(100));
        assert_eq!(facts.loss(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_decided_again_and_again_is_one_line_and_old_ones_go() {
        let mut facts = facts();
        let decision = |seq: u64, subject: &str| DecisionView {
            seq,
            at: Timestamp::UNIX_EPOCH,
            door: "bakery".into(),
            subject_kind: SubjectKind::Request("job".into()),
            subject: subject.into(),
            subject_name: None,
            verdict: Verdict::Deferred,
            reason: String::new(),
            bound_by: None,
            gates: Vec::new(),
            next_look: None,
            vm: None,
            times: 1,
            since: Timestamp::UNIX_EPOCH,
        };
        for (seq, subject) in [(1, "a"), (2, "b"), (3, "a")] {
            facts.decided(decision(seq, subject));
        }
        let seqs: Vec<u64> = facts.decisions.iter().map(|decision| decision.seq).collect();
        assert_eq!(seqs, [2, 3]);
        for seq in 4..1_000 {
            facts.decided(decision(seq, &seq.to_string()));
        }
        assert_eq!(facts.decisions.len(), Picture::DECISIONS * 2);
        assert_eq!(facts.decisions.last().unwrap().seq, 999);
    }
}
