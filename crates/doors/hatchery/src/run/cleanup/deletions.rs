use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_fleet::{Basis, Candidate, Evidence, Freeze, Guard, Power, Resume, Verdict, VmId};
use roost_supervise::Backoff;
use tokio::sync::Notify;

use crate::retire::{EventTimes, Reason};
use crate::run::context::Context;
use crate::run::scheduler::lock;
use crate::run::view::{GuardState, Seen};
use crate::time::{is_ahead, is_recent, later};

/// After the first failure to delete a VM; doubled by each that follows.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// What CDS said is believed for this long. It is asked again at every look.
const ABSENT_FOR: Duration = Duration::from_mins(1);

/// What is known about deletions beside the VMs themselves. All of it may be lost: VMs say what they are, and are then looked at anew.
#[derive(Debug)]
pub(crate) struct Deletions {
    state: Mutex<State>,
    /// Whether one that may go waits for another to be gone.
    wants_room: AtomicBool,
    /// Rings when there is room for one that waits.
    room: Notify,
}

#[derive(Debug)]
struct State {
    guard: Guard,
    under_way: BTreeMap<VmId, Reason>,
    failed: BTreeMap<VmId, Failed>,
    /// With the power that the VM had when its events were read.
    events: BTreeMap<VmId, (Power, EventTimes)>,
    /// VMs of whose worker and job CDS knew nothing, and when it was asked.
    absent: BTreeMap<VmId, (Timestamp, Absence)>,
}

/// What a worker is missing from, beside the job that CDS was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// From a list with others in it.
    FromList,
    /// There was nobody in the list, which says nothing of anybody.
    FromEmptyList,
}

#[derive(Debug, Clone, Copy)]
struct Failed {
    times: u32,
    until: Timestamp,
}

impl Deletions {
    pub(crate) fn new(guard: Guard) -> Self {
        let state = State {
            guard,
            under_way: BTreeMap::new(),
            failed: BTreeMap::new(),
            events: BTreeMap::new(),
            absent: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), wants_room: AtomicBool::new(false), room: Notify::new() }
    }

    /// Why nothing is deleted until a person has looked.
    pub(crate) fn frozen(&self) -> Option<Freeze> {
        lock(&self.state).guard.frozen().cloned()
    }

    /// How the guard stands, without the names of its candidates.
    pub(crate) fn guard(&self, now: Timestamp) -> GuardState {
        let state = lock(&self.state);
        let guard = &state.guard;
        let budget = |basis| (basis, guard.rules().of(basis), guard.spent_lately(basis, now));
        let seen = guard.sightings().map(|(vm, sighting)| Seen {
            vm: vm.clone(),
            name: None,
            sighting: sighting.clone(),
        });
        GuardState {
            frozen: guard.frozen().cloned(),
            budgets: Basis::ALL.map(budget).to_vec(),
            candidates: seen.collect(),
        }
    }

    pub(super) fn wants_room(&self, wants: bool) {
        self.wants_room.store(wants, Ordering::Relaxed);
    }

    /// Waits until one that waits for another to be gone can be begun.
    pub(super) async fn has_room(&self) {
        self.room.notified().await;
    }

    /// VMs that are being deleted at this moment, each with why.
    pub(crate) fn under_way(&self) -> BTreeMap<VmId, Reason> {
        lock(&self.state).under_way.clone()
    }

    pub(super) fn resume(&self, found: Resume) -> Option<Freeze> {
        lock(&self.state).guard.resume(found)
    }

    pub(super) fn consider(
        &self,
        candidates: &[Candidate],
        evidence: Evidence<'_>,
        now: Timestamp,
    ) -> Vec<Verdict> {
        let mut state = lock(&self.state);
        let is_candidate = |vm: &VmId| candidates.iter().any(|candidate| candidate.vm == *vm);
        state.failed.retain(|vm, _| is_candidate(vm));
        state.guard.consider(candidates, evidence, now)
    }

    /// Until when a VM is left alone that could not be deleted.
    pub(super) fn left_alone(&self, vm: &VmId, now: Timestamp) -> Option<Timestamp> {
        let state = lock(&self.state);
        state
            .failed
            .get(vm)
            .map(|failed| failed.until)
            .filter(|until| is_ahead(*until, now, LONGEST_PAUSE))
    }

    /// Returns until when the VM is left alone.
    pub(super) fn failed(&self, vm: &VmId, now: Timestamp) -> Timestamp {
        let mut state = lock(&self.state);
        let times = state.failed.get(vm).map_or(0, |failed| failed.times);
        let times = times.saturating_add(1);
        let until = later(now, Backoff::new(FIRST_PAUSE, LONGEST_PAUSE).pause(times));
        state.failed.insert(vm.clone(), Failed { times, until });
        until
    }

    pub(super) fn events_of(&self, vm: &VmId, power: Power) -> Option<EventTimes> {
        let state = lock(&self.state);
        state.events.get(vm).filter(|(at, _)| *at == power).map(|(_, times)| *times)
    }

    pub(super) fn keep_events(&self, vm: &VmId, power: Power, times: EventTimes) {
        lock(&self.state).events.insert(vm.clone(), (power, times));
    }

    pub(super) fn forget_events(&self, is_gone: impl Fn(&VmId) -> bool) {
        lock(&self.state).events.retain(|vm, _| !is_gone(vm));
    }

    /// CDS knew nothing of the VM's worker, nor of its job.
    pub(super) fn note_absent(&self, vm: &VmId, absence: Absence, at: Timestamp) {
        lock(&self.state).absent.insert(vm.clone(), (at, absence));
    }

    /// CDS says that it may be at work, or could not be asked.
    pub(super) fn may_be_at_work(&self, vm: &VmId) {
        lock(&self.state).absent.remove(vm);
    }

    /// `None` while CDS did not say lately that it knows nothing of it.
    pub(super) fn absence(&self, vm: &VmId, now: Timestamp) -> Option<Absence> {
        let state = lock(&self.state);
        let (at, absence) = state.absent.get(vm)?;
        is_recent(*at, now, ABSENT_FOR).then_some(*absence)
    }

    pub(super) fn keep_absent(&self, is_absent: impl Fn(&VmId) -> bool) {
        lock(&self.state).absent.retain(|vm, _| is_absent(vm));
    }
}

/// A VM that is being deleted, until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    cx: Arc<Context>,
    vm: VmId,
}

impl UnderWay {
    pub(super) fn begin(cx: &Arc<Context>, vm: &VmId, reason: &Reason) -> Self {
        lock(&cx.deletions.state).under_way.insert(vm.clone(), reason.clone());
        Self { cx: Arc::clone(cx), vm: vm.clone() }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.cx.deletions.state).under_way.remove(&self.vm);
        if self.cx.deletions.wants_room.load(Ordering::Relaxed) {
            self.cx.deletions.room.notify_one();
        }
    }
}
