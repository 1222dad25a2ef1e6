//! When a request that waits probably gets its VM. A guess from what was seen, and named as one.

use std::time::Duration;

use jiff::Timestamp;
use roost_views::words::{Style, count, secs, secs_between};
use roost_views::{
    DecisionView, EstimateView, GateView, HolderView, LimitView, OutlookView, Part, Power,
    RequestDetail, RequestId, Unit, VmKind, VmView,
};

use crate::House;

/// Fewer say nothing about the next.
const ENOUGH_RUNS: usize = 5;

/// The gate of doors that make only so many VMs at once.
const SLOT: &str = "slot";

/// Out of these, the time that half of all runs took.
pub(crate) fn median(runs: &[u64]) -> Option<u64> {
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    (runs.len() >= ENOUGH_RUNS).then(|| runs[runs.len() / 2])
}

pub(crate) fn of(
    detail: &RequestDetail,
    line: &[RequestId],
    vms: &[VmView],
    runs: &[u64],
    house: &House,
) -> OutlookView {
    let (id, now) = (&detail.request.id, house.now());
    let place = line.iter().position(|waiting| waiting == id).unwrap_or(line.len());
    let said = detail.decisions.last();
    let gate = said.and_then(|said| said.bound_by.clone());
    let weighed = said.and_then(|said| {
        let bound = said.bound_by.as_ref()?;
        said.gates.iter().find(|gate| gate.name == *bound)
    });
    // What is being made gives its place back when it is up, and what runs when it has ended.
    let starts = weighed.is_some_and(|gate| gate.name == SLOT);
    let starts = starts.then(|| house.history.start_times(&id.door));
    let (runs, unit) = match &starts {
        Some(starts) => (starts.as_slice(), "start"),
        None => (runs, "run"),
    };
    let typical = median(runs);
    let own = vms.iter().filter(|vm| starts.is_none() || vm.door == id.door);
    let own: Vec<&VmView> = own.collect();
    let mut holders = weighed.map(|gate| holders(gate, &own, typical, now)).unwrap_or_default();
    let ahead = place as u64;
    let estimate = match (weighed, typical) {
        (Some(gate), Some(typical)) => estimate(gate, &holders, ahead, typical, now),
        _ => None,
    };
    let held_by = holders.len() as u64;
    holders.truncate(OutlookView::HOLDERS);
    for holder in &mut holders {
        let request = holder.request.as_ref();
        let request = request.and_then(|id| house.door(&id.door)?.request(&id.id));
        holder.project = request.and_then(|detail| detail.request.project);
    }
    OutlookView {
        place: ahead + 1,
        of: (line.len() as u64).max(ahead + 1),
        next_gates: said.map(next_gates).unwrap_or_default(),
        basis: basis(said, weighed, (runs, typical), estimate, (&detail.request.noun, unit)),
        gate,
        group: detail.request.group.clone(),
        holders,
        held_by,
        estimate,
    }
}

/// Behind the one that it waits for, those that would say no as well.
fn next_gates(said: &DecisionView) -> Vec<String> {
    let closed = said.gates.iter().filter(|gate| !gate.passed);
    let others = closed.filter(|gate| said.bound_by.as_ref() != Some(&gate.name));
    others.map(|gate| gate.name.clone()).collect()
}

/// What a VM takes of what the gate weighs.
fn takes(gate: &GateView, vm: &VmView) -> Option<(u64, Unit)> {
    let part = vm.phase.as_ref().map(|phase| phase.part);
    let is_at_work = matches!(vm.kind, VmKind::Worker | VmKind::Machine | VmKind::Registering);
    let is_on_its_way = part.is_some_and(|part| !part.is_afterwards());
    match gate.name.as_str() {
        "cpus" | "cpu-reserve" | "pool-cpu" if vm.power != Power::Off => {
            Some((vm.cpus?, Unit::Pieces))
        }
        "memory" | "memory-reserve" | "pool-memory" if vm.power != Power::Off => {
            Some((vm.memory_mb?, Unit::Mebibytes))
        }
        "workers" if is_at_work => Some((1, Unit::Pieces)),
        "pending" if is_at_work && is_on_its_way => Some((1, Unit::Pieces)),
        SLOT if part == Some(Part::Making) => Some((1, Unit::Pieces)),
        "registering" if vm.kind == VmKind::Registering => Some((1, Unit::Pieces)),
        "address" => vm.address.as_ref().map(|_| (1, Unit::Pieces)),
        _ => None,
    }
}

/// Those first that are expected to end first.
fn holders(
    gate: &GateView,
    vms: &[&VmView],
    typical: Option<u64>,
    now: Timestamp,
) -> Vec<HolderView> {
    let ends = |vm: &VmView| {
        if gate.name == SLOT { made(vm, typical?, now) } else { ends(vm, typical, now) }
    };
    let holding = vms.iter().filter(|vm| vm.kind != VmKind::Template);
    let mut holders: Vec<HolderView> = holding
        .filter_map(|vm| {
            let (amount, unit) = takes(gate, vm).filter(|(amount, _)| *amount > 0)?;
            Some(HolderView {
                vm: vm.name.clone(),
                request: vm.request.clone(),
                project: None,
                amount,
                unit,
                ends: ends(vm),
            })
        })
        .collect();
    holders.sort_by_key(|holder| (holder.ends.is_none(), holder.ends));
    holders
}

/// A spare ends when it is claimed, of which nobody knows.
fn ends(vm: &VmView, typical: Option<u64>, now: Timestamp) -> Option<Timestamp> {
    if matches!(vm.kind, VmKind::Spare | VmKind::Machine) {
        return None;
    }
    let typical = typical?;
    let part = vm.phase.as_ref().map_or(Part::Working, |phase| phase.part);
    let left = match (part, vm.started) {
        (Part::Leaving, _) => 0,
        // What has run longer than most is not about to end for that.
        (Part::Working, Some(started)) => {
            typical.saturating_sub(secs_between(started, now)).max(typical / 4)
        }
        _ => typical,
    };
    now.checked_add(Duration::from_secs(left)).ok()
}

/// When a VM that is being made is probably up.
fn made(vm: &VmView, typical: u64, now: Timestamp) -> Option<Timestamp> {
    let since = vm.phase.as_ref().and_then(|phase| phase.since).or(vm.created)?;
    since.checked_add(Duration::from_secs(typical)).ok().map(|at| at.max(now))
}

/// When enough was given back for those before it and for itself.
fn estimate(
    gate: &GateView,
    holders: &[HolderView],
    ahead: u64,
    typical: u64,
    now: Timestamp,
) -> Option<EstimateView> {
    let (need, have) = (gate.need?, gate.have?);
    let Some(LimitView::At(limit)) = gate.limit else { return None };
    if need > limit {
        return None;
    }
    let missing = have.saturating_add(need.saturating_mul(ahead + 1)).saturating_sub(limit);
    let unit: u64 = holders.iter().filter(|it| it.ends.is_some()).map(|it| it.amount).sum();
    if unit == 0 {
        return None;
    }
    // What is given back is taken by those before it, who give it back in their turn.
    let rounds = missing.saturating_sub(1) / unit;
    let mut left = missing - rounds * unit;
    let mut at = now;
    for holder in holders {
        let Some(ends) = holder.ends else { break };
        if left == 0 {
            break;
        }
        at = ends;
        left = left.saturating_sub(holder.amount);
    }
    let at = at.checked_add(Duration::from_secs(rounds.saturating_mul(typical))).ok()?;
    Some(EstimateView { at, in_secs: secs_between(now, at) })
}

fn basis(
    said: Option<&DecisionView>,
    weighed: Option<&GateView>,
    (runs, typical): (&[u64], Option<u64>),
    estimate: Option<EstimateView>,
    (noun, unit): (&str, &str),
) -> String {
    let next = said.and_then(|said| said.next_look.as_deref()).unwrap_or("when something changes");
    match (estimate, weighed, typical) {
        (Some(_), _, Some(typical)) => format!(
            "an estimate, from {} seen: half of them {} {} or less",
            count(runs.len() as u64, unit, &format!("{unit}s")),
            if unit == "run" { "ran" } else { "took" },
            secs(typical, Style::Long)
        ),
        (_, None, _) => format!("no estimate: nothing was weighed yet; looked at again {next}"),
        (_, Some(gate), _) if gate.limit.is_none() => {
            format!("no estimate: gate {} is no amount; looked at again {next}", gate.name)
        }
        (_, _, None) => format!(
            "no estimate yet: {} of {ENOUGH_RUNS} {noun} {unit}s that it takes were seen",
            runs.len()
        ),
        (_, Some(gate), _) => {
            format!(
                "no estimate: nobody knows when gate {} opens; looked at again {next}",
                gate.name
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(need: u64, have: u64, limit: u64) -> GateView {
        GateView {
            name: "workers".into(),
            passed: false,
            need: Some(need),
            have: Some(have),
            limit: Some(LimitView::At(limit)),
            note: None,
            words: None,
        }
    }

    fn holder(ends: i64) -> HolderView {
        HolderView {
            vm: "w".into(),
            request: None,
            project: None,
            amount: 1,
            unit: Unit::Pieces,
            ends: Some(Timestamp::from_second(ends).unwrap()),
        }
    }

    #[test]
    fn whoever_is_first_gets_what_comes_back_first() {
        let now = Timestamp::constant(100, 0);
        let holders = [holder(110), holder(130), holder(160)];
        let at = |ahead| estimate(&gate(1, 3, 3), &holders, ahead, 90, now).map(|it| it.in_secs);
        assert_eq!(at(0), Some(10));
        assert_eq!(at(1), Some(30));
        assert_eq!(at(2), Some(60));
        assert_eq!(at(3), Some(10 + 90), "the next round");
        assert_eq!(at(8), Some(60 + 2 * 90));
    }

    #[test]
    fn what_can_never_be_is_not_estimated() {
        let now = Timestamp::constant(100, 0);
        assert_eq!(
            estimate(&gate(9, 0, 3), &[holder(110)], 0, 90, now),
            None,
            "more than there is"
        );
        assert_eq!(estimate(&gate(1, 3, 3), &[], 0, 90, now), None, "nobody gives anything back");
        let endless = GateView { limit: Some(LimitView::Unlimited), ..gate(1, 3, 3) };
        assert_eq!(estimate(&endless, &[holder(110)], 0, 90, now), None);
    }

    #[test]
    fn a_slot_is_given_back_when_its_vm_is_up() {
        let now = Timestamp::constant(100, 0);
        let making = |name: &str, since: i64, part| VmView {
            id: name.into(),
            name: name.into(),
            door: "toys".into(),
            kind: VmKind::Machine,
            power: Power::On,
            phase: Some(roost_views::VmPhase {
                words: String::new(),
                label: String::new(),
                part,
                since: Timestamp::from_second(since).ok(),
            }),
            request: None,
            template: None,
            cpus: None,
            memory_mb: None,
            address: None,
            created: None,
            started: None,
            fate: None,
            facts: roost_views::Facts::default(),
        };
        let vms = [
            making("late", 95, Part::Making),
            making("early", 80, Part::Making),
            making("up", 10, Part::Working),
        ];
        let slot = GateView { name: SLOT.into(), ..gate(1, 2, 2) };
        let held = holders(&slot, &vms.each_ref(), Some(30), now);
        let names: Vec<_> = held.iter().map(|it| it.vm.as_str()).collect();
        assert_eq!(names, ["early", "late"], "one that runs holds no slot");
        let at = |ahead| estimate(&slot, &held, ahead, 30, now).map(|it| it.in_secs);
        assert_eq!((at(0), at(1)), (Some(10), Some(25)));
    }

    #[test]
    fn a_few_runs_are_no_basis() {
        assert_eq!(median(&[1, 2, 3, 4]), None);
        assert_eq!(median(&[50, 10, 20, 40, 30]), Some(30));
    }
}
