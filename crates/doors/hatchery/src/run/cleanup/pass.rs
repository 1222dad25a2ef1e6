//! One look at all VMs of ours: judged, held against the guard, and what may go sent on its way.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_fleet::{
    Basis, Candidate, Decided, Draft, Evidence, Gate, NextLook, Outcome, Subject, Verdict, VmId,
};
use roost_supervise::Tasks;

use super::delete::{Deletion, delete};
use super::deletions::{Absence, UnderWay};
use super::fate::Fate;
use crate::planted::{self, Bug};
use crate::retire;
use crate::run::cleanup::Retirer;
use crate::run::steer::Held;
use crate::time::elapsed;

/// What was seen once is looked at again after this long: time for both sides to say something newer.
const SOON: Duration = Duration::from_secs(10);

/// Returns when to look again at the latest.
pub(super) fn pass(retirer: &Arc<Retirer>, tasks: &Tasks) -> Duration {
    let now = retirer.about.now();
    // How fresh the views are is asked first: what is then judged is as fresh or fresher.
    let demand = retirer.workers.freshness();
    let snapshot = retirer.mirror.snapshot();
    let fates = retirer.judge.fates(&snapshot, now);
    let leaving = fates.iter().filter_map(|fate| Some((fate, candidate(retirer, fate, now)?)));
    let leaving: Vec<(&Fate, Candidate)> = leaving.collect();
    let candidates: Vec<Candidate> = leaving.iter().map(|(_, each)| each.clone()).collect();
    let evidence = Evidence {
        inventory: snapshot.freshness(),
        demand: &demand,
        own_vms: fates.iter().filter(|fate| !fate.vm.template).count(),
    };
    let verdicts = retirer.deletions.consider(&candidates, evidence, now);
    let held = retirer.steering.deleting();
    retirer.metrics.own.deletion_is_frozen(held.is_some() || retirer.deletions.frozen().is_some());
    let mut again = next_expiry(&fates, now).unwrap_or(Duration::MAX);
    let at_once = retirer.about.config.lifetimes.deletions_at_once;
    let mut room = at_once.saturating_sub(retirer.deletions.under_way().len());
    retirer.deletions.wants_room(false);
    retirer.metrics.own.deletion_backlog(leaving.len());
    for ((fate, _), verdict) in leaving.iter().zip(&verdicts) {
        let wait = if let Some(held) = held.as_ref().filter(|_| verdict.is_delete()) {
            note_held(retirer, verdict, held);
            None
        } else if verdict.is_delete() || planted::is(Bug::DeletesUnguarded) {
            begin(retirer, tasks, fate, verdict, &mut room, now)
        } else {
            note_kept(retirer, verdict);
            wait_of(verdict, now)
        };
        again = again.min(wait.unwrap_or(Duration::MAX));
    }
    // A time that is just reached is not yet over by the clock's own grain.
    again.max(Duration::from_millis(10)).min(retirer.about.config.lifetimes.cleanup_interval)
}

fn candidate(retirer: &Retirer, fate: &Fate, now: Timestamp) -> Option<Candidate> {
    let reason = fate.reason()?;
    let basis = match reason.basis() {
        // That CDS knows nothing of its job either was asked for each alone: one list of two may come back empty.
        Basis::Absent => match retirer.deletions.absence(&fate.vm.id, now)? {
            Absence::FromList => Basis::Absent,
            // An empty list says nothing of anybody. But its time is over.
            Absence::FromEmptyList => Basis::Expired,
        },
        basis => basis,
    };
    Some(Candidate {
        vm: fate.vm.id.clone(),
        name: Arc::clone(&fate.vm.name),
        owner: fate.vm.owner().cloned(),
        basis,
        why: reason.to_string().into(),
    })
}

/// When the first VM that may stay for a time has stayed for it.
fn next_expiry(fates: &[Fate], now: Timestamp) -> Option<Duration> {
    let times = fates.iter().filter_map(|fate| match &fate.verdict {
        retire::Verdict::Until(at, _) => Some(elapsed(now, *at)),
        // Events that could not be read are asked for again at the next tick.
        retire::Verdict::AskEvents | retire::Verdict::Keep(_) | retire::Verdict::Delete(_) => None,
    });
    times.min()
}

/// Begins a deletion, unless it is under way, failed lately, or many are. Returns when to look at it again.
fn begin(
    retirer: &Arc<Retirer>,
    tasks: &Tasks,
    fate: &Fate,
    verdict: &Verdict,
    room: &mut usize,
    now: Timestamp,
) -> Option<Duration> {
    let vm: &VmId = &fate.vm.id;
    let reason = fate.reason()?;
    if retirer.deletions.under_way().contains_key(vm) {
        return None;
    }
    if let Some(until) = retirer.deletions.left_alone(vm, now) {
        return Some(elapsed(now, until));
    }
    let Some(left) = room.checked_sub(1) else {
        retirer.deletions.wants_room(true);
        return Some(SOON);
    };
    let Some(at_work) = retirer.vms.at_work(vm) else { return Some(SOON) };
    at_work.leaving();
    *room = left;
    let deletion = Deletion {
        under_way: UnderWay::begin(&retirer.deletions, vm, reason),
        at_work,
        vm: Arc::clone(&fate.vm),
        reason: reason.clone(),
        aftermath: fate.aftermath.clone(),
        record: Draft::from(verdict),
    };
    let retirer = Arc::clone(retirer);
    tasks.errand("deletion", async move { delete(&retirer, deletion).await });
    None
}

fn wait_of(verdict: &Verdict, now: Timestamp) -> Option<Duration> {
    match verdict.outcome {
        Outcome::Wait { until: Some(until) } => Some(elapsed(now, until).max(SOON)),
        Outcome::Wait { until: None } | Outcome::Refused => Some(SOON),
        // The person who thaws deletions wakes this loop.
        Outcome::Frozen | Outcome::Delete => None,
    }
}

/// Records that a VM stays because a person has frozen deletion.
fn note_held(retirer: &Retirer, verdict: &Verdict, held: &Held) {
    let mut gates = verdict.gates.clone();
    gates.push(Gate::plain("held", false).noting(held.to_string()));
    let draft = Draft::new(Subject::vm(&verdict.vm), Decided::Kept, held.to_string())
        .gates(gates)
        .next_look(NextLook::OnPerson);
    let before = retirer.recorder.journal.latest(&Subject::vm(&verdict.vm));
    if before.is_none_or(|before| !draft.says_the_same(&before)) {
        retirer.recorder.decide(draft, "held");
    }
}

/// Records why a VM stays that should go, if that is news. That it must be seen a second time is none.
fn note_kept(retirer: &Retirer, verdict: &Verdict) {
    if verdict.outcome == (Outcome::Wait { until: None }) {
        return;
    }
    let draft = Draft::from(verdict);
    let before = retirer.recorder.journal.latest(&Subject::vm(&verdict.vm));
    if before.is_none_or(|before| !draft.says_the_same(&before)) {
        retirer.recorder.decide(draft, verdict.bound_by().map_or("guard", |gate| gate.name));
    }
}
