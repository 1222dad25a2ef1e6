//! What was decided about pods and their VMs: logs, events, `roost explain` and the page tell the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use roost_clock::Clock;
use roost_views::{DecisionQuery, DecisionView, SubjectKind, Verdict};

/// Some hours of a busy node.
const KEPT: usize = 1000;

/// What the door calls itself in decisions.
pub(crate) const DOOR: &str = "kubelet";
/// What it calls one request.
pub(crate) const NOUN: &str = "pod";

/// The last decisions, oldest first. A handle; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    clock: Arc<dyn Clock>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    decisions: VecDeque<DecisionView>,
    last: u64,
}

impl Journal {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, kept: Arc::default() }
    }

    /// About a pod, `namespace/name`.
    pub(crate) fn pod(&self, verdict: Verdict, pod: &str, vm: Option<&str>, reason: &str) {
        self.enter(SubjectKind::Request(NOUN.to_owned()), pod, verdict, vm, reason);
    }

    /// About a VM that no pod wants.
    pub(crate) fn vm(&self, verdict: Verdict, vm: &str, reason: &str) {
        self.enter(SubjectKind::Vm, vm, verdict, Some(vm), reason);
    }

    /// A person has told the service something.
    pub(crate) fn steered(&self, reason: &str) {
        self.enter(SubjectKind::Service, DOOR, Verdict::Steered, None, reason);
    }

    fn enter(
        &self,
        subject_kind: SubjectKind,
        subject: &str,
        verdict: Verdict,
        vm: Option<&str>,
        reason: &str,
    ) {
        let at = self.clock.now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let seq = kept.last;
        let is_about =
            |said: &DecisionView| said.subject_kind == subject_kind && said.subject == subject;
        let before = kept.decisions.iter().rposition(is_about);
        // What repeats itself is one decision that was made often.
        let same = before.filter(|place| {
            let said = &kept.decisions[*place];
            said.verdict == verdict && said.reason == reason
        });
        let mut decision = DecisionView {
            seq,
            at,
            door: DOOR.to_owned(),
            subject: subject.to_owned(),
            subject_kind,
            subject_name: None,
            verdict,
            reason: reason.to_owned(),
            bound_by: None,
            gates: Vec::new(),
            next_look: None,
            vm: vm.map(str::to_owned),
            times: 1,
            since: at,
        };
        if let Some(before) = same.and_then(|place| kept.decisions.remove(place)) {
            decision.times = before.times.saturating_add(1);
            decision.since = before.since;
        } else if kept.decisions.len() == KEPT {
            kept.decisions.pop_front();
        }
        kept.decisions.push_back(decision);
    }

    /// Oldest first.
    pub(crate) fn find(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_asked = |said: &&DecisionView| {
            let subject = query.subject.as_deref();
            subject.is_none_or(|it| said.subject == it || said.vm.as_deref() == Some(it))
                && query.verdict.as_deref().is_none_or(|it| said.verdict.as_str() == it)
                && query.bound_by.as_deref().is_none_or(|it| said.bound_by.as_deref() == Some(it))
                && (!query.events || said.verdict.is_event())
                && query.after.is_none_or(|after| said.seq > after)
        };
        let mut found: Vec<_> = kept.decisions.iter().filter(is_asked).cloned().collect();
        let first = found.len().saturating_sub(query.limit.unwrap_or(usize::MAX));
        found.split_off(first)
    }

    pub(crate) fn of(&self, subject: &str) -> Vec<DecisionView> {
        let subject = Some(subject.to_owned());
        self.find(&DecisionQuery { subject, ..DecisionQuery::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_itself_is_told_once_and_the_oldest_goes() {
        let journal = Journal::new(Arc::new(roost_clock::SystemClock));
        for _ in 0..3 {
            journal.pod(Verdict::Failed, "ns/a", None, "no space");
        }
        journal.pod(Verdict::Spawned, "ns/a", Some("vk-a"), "it runs");
        let said = journal.of("ns/a");
        assert_eq!(said.iter().map(|it| (it.seq, it.times)).collect::<Vec<_>>(), [(3, 3), (4, 1)]);
        assert_eq!(journal.of("vk-a").len(), 1, "also by the VM that came of it");
        for number in 0..KEPT {
            journal.pod(Verdict::Spawned, &format!("ns/{number}"), None, "it runs");
        }
        assert!(journal.of("ns/a").is_empty());
        let newest = DecisionQuery { limit: Some(2), ..DecisionQuery::default() };
        let newest: Vec<_> = journal.find(&newest).into_iter().map(|it| it.subject).collect();
        assert_eq!(newest, ["ns/998", "ns/999"]);
    }
}
