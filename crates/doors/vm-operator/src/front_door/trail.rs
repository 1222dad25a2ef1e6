//! Where a pass is in the flowcharts, and what the last passes did. Only for people: nothing is decided by it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use roost_controller::{Key, Next, Remedial, Remedy};
use roost_fleet::NextLook;
use roost_supervise::Chain;
use roost_views::Verdict;

use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, find};
use crate::flow::{Done, Flow, Halt, PassError};

/// Passes that did something, kept of each object. Those that found nothing to do are not counted among them.
const KEPT: usize = 8;

/// A flowchart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chart {
    Reconcile,
    Normal,
    Delete,
    CreateOrUpdate,
    Create,
    Update,
}

impl Chart {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Reconcile => "reconcile",
            Self::Normal => "normal",
            Self::Delete => "delete",
            Self::CreateOrUpdate => "create or update",
            Self::Create => "create",
            Self::Update => "update",
        }
    }
}

/// A box of a flowchart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowStep {
    pub(crate) chart: Chart,
    pub(crate) step: &'static str,
}

impl fmt::Display for FlowStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.chart.as_str(), self.step)
    }
}

tokio::task_local! {
    /// The pass that this task is at.
    static PASS: (Passes, Key);
}

/// The pass of this task has come to a box.
pub(crate) fn at(chart: Chart, step: &'static str) {
    let _ = PASS.try_with(|(passes, key)| {
        if let Some(walk) = passes.lock().get_mut(key).and_then(|record| record.running.as_mut()) {
            walk.at = FlowStep { chart, step };
        }
    });
}

/// How the flow of this task's pass ended.
pub(crate) fn ended(flow: &Flow<Next>) {
    let Some((verdict, words)) = said_of(flow) else { return };
    let _ = PASS.try_with(|(passes, key)| {
        if let Some(walk) = passes.lock().get_mut(key).and_then(|record| record.running.as_mut()) {
            walk.said = Some((verdict, words));
        }
    });
}

/// A pass that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    pub(crate) at: FlowStep,
    pub(crate) since: Timestamp,
    said: Option<(Verdict, String)>,
}

/// A pass that did something, or could not. The same in a row is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) at: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) times: u32,
    pub(crate) step: FlowStep,
    pub(crate) verdict: Verdict,
    pub(crate) words: String,
}

/// What is known of the passes of one object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) running: Option<Walk>,
    /// Where the last pass ended.
    pub(crate) last: Option<(FlowStep, Timestamp)>,
    pub(crate) next: NextLook,
    /// Oldest first.
    pub(crate) past: VecDeque<Passed>,
    /// The wait for an address, as far as this process saw it.
    pub(crate) address: Option<Wait>,
}

impl Record {
    /// What the last pass did, unless it found nothing to do.
    pub(crate) fn last_word(&self) -> Option<&Passed> {
        let (_, at) = self.last?;
        self.past.back().filter(|passed| passed.at == at)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) began: Timestamp,
    pub(crate) ended: Option<Timestamp>,
}

/// A handle; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passes(Arc<Mutex<BTreeMap<Key, Record>>>);

impl Passes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(&self, key: &Key) -> Record {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    /// Lets a pass be seen while it runs, and remembers how it ended.
    pub(crate) async fn follow(
        &self,
        key: &Key,
        now: impl Fn() -> Timestamp,
        pass: impl Future<Output = Result<Next, PassError>>,
    ) -> Result<Next, PassError> {
        let at = FlowStep { chart: Chart::Reconcile, step: "get the object" };
        let walk = Walk { at, since: now(), said: None };
        self.lock().entry(key.clone()).or_default().running = Some(walk);
        // A pass that is dropped is not under way any more.
        let _over = Over { passes: self, key };
        let ended = PASS.scope((self.clone(), key.clone()), pass).await;
        self.note(key, &ended, now());
        ended
    }

    fn note(&self, key: &Key, ended: &Result<Next, PassError>, now: Timestamp) {
        let mut all = self.lock();
        let Some(record) = all.get_mut(key) else { return };
        let Some(walk) = record.running.take() else { return };
        record.last = Some((walk.at, now));
        record.next = next_look(ended, now);
        let said = match (walk.said, ended) {
            (None, Err(error)) => Some((Verdict::Failed, Chain(error).to_string())),
            (said, _) => said,
        };
        let Some((verdict, words)) = said else { return };
        if let Some(before) = record.past.back_mut()
            && (before.step, before.verdict, &before.words) == (walk.at, verdict, &words)
        {
            before.times = before.times.saturating_add(1);
            before.at = now;
            return;
        }
        if record.past.len() == KEPT {
            record.past.pop_front();
        }
        let step = walk.at;
        record.past.push_back(Passed { at: now, since: now, times: 1, step, verdict, words });
    }

    /// What a pass left behind: no object, no record. The wait for an address has no condition of its own.
    pub(crate) fn observe(&self, key: &Key, vm: Option<&VirtualMachine>, now: Timestamp) {
        let mut all = self.lock();
        let Some(vm) = vm else {
            all.remove(key);
            return;
        };
        let Some(record) = all.get_mut(key) else { return };
        if vm.waits_for_address() {
            let synced = find(vm.conditions(), ConditionType::PowerStateSynced);
            let began = synced.map_or(now, |synced| synced.last_transition_time.0);
            if record.address.is_none_or(|wait| wait.ended.is_some()) {
                record.address = Some(Wait { began, ended: None });
            }
        } else if vm.has_primary_ip()
            && let Some(wait) = &mut record.address
        {
            wait.ended.get_or_insert(now);
        }
    }
}

struct Over<'a> {
    passes: &'a Passes,
    key: &'a Key,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.passes.lock().get_mut(self.key) {
            record.running = None;
        }
    }
}

fn next_look(ended: &Result<Next, PassError>, now: Timestamp) -> NextLook {
    let after = |delay: Duration| NextLook::At(now.saturating_add(delay).unwrap_or(now));
    match ended {
        Ok(Next::AwaitChange) => NextLook::OnChange,
        Ok(Next::Now) => NextLook::At(now),
        Ok(Next::After(delay)) => after(*delay),
        Ok(Next::At(at)) => NextLook::At(*at),
        Err(error) => match error.remedy() {
            Remedy::Person => NextLook::OnPerson,
            Remedy::After(delay) => after(delay),
            // The queue knows how long it backs off; that it does is enough here.
            Remedy::Backoff | Remedy::AwaitChange => NextLook::OnChange,
        },
    }
}

/// `None`: nothing was to be done.
fn said_of(flow: &Flow<Next>) -> Option<(Verdict, String)> {
    let said = |verdict, words: &str| Some((verdict, words.to_owned()));
    match flow {
        Ok(_) => None,
        Err(Halt::Done(done)) => said(verdict_of(*done), words_of(*done)),
        Err(Halt::NoRequeue(why)) => said(Verdict::Refused, why),
        // What is missing stands in the conditions.
        Err(Halt::Requeue(_) | Halt::RequeueAt(_)) => {
            said(Verdict::Deferred, "something that it needs is not there yet")
        }
        Err(Halt::ReconcileInProgress) => said(Verdict::Deferred, "a VM is being made for it"),
        Err(Halt::TooManyCreates) => said(Verdict::Deferred, TOO_MANY_CREATES),
        Err(Halt::CacheNotReady) => said(Verdict::Deferred, "its image is being copied"),
        Err(Halt::Failed(failure)) => Some((Verdict::Failed, Chain(failure).to_string())),
    }
}

pub(crate) const TOO_MANY_CREATES: &str = "as many VMs as allowed are being made at present";

fn verdict_of(done: Done) -> Verdict {
    match done {
        Done::CreateStarted => Verdict::Spawned,
        Done::DeleteStarted => Verdict::Deleted,
        Done::HasOutstandingTask | Done::NotSeenYet => Verdict::Deferred,
        _ => Verdict::Changed,
    }
}

/// What was done, for people.
pub(crate) fn words_of(done: Done) -> &'static str {
    match done {
        Done::CreateStarted => "vCenter makes the VM",
        Done::Reconfigured => "vCenter changes its configuration",
        Done::UpgradedHardwareVersion => "vCenter upgrades its hardware version",
        Done::Customized => "vCenter customizes the guest",
        Done::PowerStateUpdated => "vCenter changes its power state",
        Done::Restarted => "the guest restarts",
        Done::SnapshotStarted => "vCenter takes a snapshot",
        Done::RevertStarted => "vCenter reverts to a snapshot",
        Done::PromotionStarted => "vCenter promotes its disks",
        Done::DeleteStarted => "vCenter deletes the VM",
        Done::CleanedUp => "our marks are taken off the VM",
        Done::HasOutstandingTask => "another task of vCenter is at the VM",
        Done::NotSeenYet => "vCenter has not shown the VM closely yet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    async fn pass(passes: &Passes, key: &Key, second: i64, flow: Flow<Next>) {
        let walked = async {
            super::at(Chart::Create, "placement");
            ended(&flow);
            let shown = passes.of(key).running.unwrap();
            assert_eq!(shown.at.to_string(), "create: placement", "seen while it runs");
            match flow {
                Ok(next) => Ok(next),
                Err(Halt::NoRequeue(why)) => Err(PassError::NeedsPerson(why)),
                Err(_) => Ok(Next::AwaitChange),
            }
        };
        let _ = passes.follow(key, || at(second), walked).await;
    }

    #[tokio::test]
    async fn the_same_in_a_row_is_one_and_passes_without_work_are_none() {
        let (passes, key) = (Passes::default(), Key::new("a", "b"));
        for second in [1, 2, 3] {
            pass(&passes, &key, second, Err(Halt::TooManyCreates)).await;
        }
        pass(&passes, &key, 4, Err(Halt::Done(Done::CreateStarted))).await;
        pass(&passes, &key, 5, Ok(Next::AwaitChange)).await;
        let record = passes.of(&key);
        assert_eq!(record.running, None);
        assert_eq!(record.last.unwrap().1, at(5));
        assert_eq!(record.last_word(), None, "the last pass had nothing to do");
        let said: Vec<_> =
            record.past.iter().map(|it| (it.verdict, it.times, it.since, it.at)).collect();
        assert_eq!(
            said,
            [(Verdict::Deferred, 3, at(1), at(3)), (Verdict::Spawned, 1, at(4), at(4))]
        );
        for second in 10..30 {
            pass(&passes, &key, second, Err(Halt::NoRequeue(format!("no {second}")))).await;
        }
        let record = passes.of(&key);
        assert_eq!((record.past.len(), record.next), (KEPT, NextLook::OnPerson));
        assert_eq!(record.last_word().unwrap().words, "no 29");
        passes.observe(&key, None, at(30));
        assert!(passes.of(&key).past.is_empty(), "an object that is gone is forgotten");
    }

    #[tokio::test]
    async fn a_pass_that_is_dropped_is_not_under_way() {
        let (passes, key) = (Passes::default(), Key::new("a", "b"));
        let pass = passes.follow(&key, || at(1), std::future::pending());
        let _ = tokio::time::timeout(Duration::from_millis(1), pass).await;
        assert_eq!(passes.of(&key).running, None);
    }
}
