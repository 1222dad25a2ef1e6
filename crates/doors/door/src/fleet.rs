//! What the core remembers, as people see it: conversions that all doors share.

use roost_fleet::{
    AddressCell, Basis, BasisRules, Beyond, Decided, Decision, Gate, Limit, NextLook, Phase,
    PhasePart, Step, Subject, VmId,
};
use roost_views::{
    AddressState, AddressView, BudgetView, DecisionView, Ended, GateView, LimitView, Part, Power,
    StepView, SubjectKind, Verdict,
};

use crate::DoorWords;

/// `name` knows what VMs are called, or were.
pub fn decision(
    decided: &Decision,
    door: &DoorWords,
    name: impl Fn(&VmId) -> Option<String>,
) -> DecisionView {
    let (subject_kind, subject, subject_name) = match &decided.subject {
        Subject::Request(request) => {
            (SubjectKind::Request(door.noun.to_owned()), request.id.to_string(), None)
        }
        Subject::Vm { id } => (SubjectKind::Vm, id.to_string(), name(id)),
        Subject::Pool { id, .. } => (SubjectKind::Pool, id.to_string(), None),
        Subject::Service { id, .. } => (SubjectKind::Service, id.to_string(), None),
    };
    DecisionView {
        seq: decided.seq,
        at: decided.at,
        door: decided.subject.door().map_or(door.name.to_owned(), |door| door.to_string()),
        subject_kind,
        subject,
        subject_name,
        verdict: verdict(decided.verdict),
        reason: decided.reason.to_string(),
        bound_by: decided.bound_by.map(str::to_owned),
        gates: decided.gates.iter().map(gate).collect(),
        next_look: next_look(decided.next_look),
        vm: decided.vm.as_ref().map(|vm| name(vm).unwrap_or_else(|| vm.to_string())),
        times: decided.times,
        since: decided.since,
    }
}

pub fn verdict(decided: Decided) -> Verdict {
    match decided {
        Decided::Spawned => Verdict::Spawned,
        Decided::Skipped => Verdict::Skipped,
        Decided::Deferred => Verdict::Deferred,
        Decided::Refused => Verdict::Refused,
        Decided::Failed => Verdict::Failed,
        Decided::Released => Verdict::Released,
        Decided::Deleted => Verdict::Deleted,
        Decided::Kept => Verdict::Kept,
        Decided::Adopted => Verdict::Adopted,
        Decided::Finished => Verdict::Finished,
        Decided::Steered => Verdict::Steered,
    }
}

fn gate(gate: &Gate) -> GateView {
    GateView {
        name: gate.name.to_owned(),
        passed: gate.passed,
        need: gate.measure.map(|measure| measure.need),
        have: gate.measure.map(|measure| measure.have),
        limit: gate.measure.map(|measure| limit(measure.limit)),
        note: gate.note.as_ref().map(ToString::to_string),
        words: None,
    }
}

pub fn limit(known: Limit) -> LimitView {
    match known {
        Limit::At(limit) => LimitView::At(limit),
        Limit::Unlimited => LimitView::Unlimited,
        Limit::Unknown => LimitView::Unknown,
    }
}

fn next_look(next: NextLook) -> Option<String> {
    match next {
        NextLook::Settled => None,
        NextLook::At(at) => Some(format!("at {at:.0}")),
        NextLook::OnChange => Some("when something changes".to_owned()),
        NextLook::OnPerson => Some("when a person has looked".to_owned()),
    }
}

pub fn step(step: &Step) -> StepView {
    StepView {
        phase: step.phase.as_str().to_owned(),
        words: step.phase.words().to_owned(),
        part: part(step.phase),
        began: step.began,
        took_ms: step.took_ms,
        deadline_ms: step.deadline_ms,
        ended: step.ended.map(|ended| match ended {
            roost_fleet::Ended::Done => Ended::Done,
            roost_fleet::Ended::Failed => Ended::Failed,
            roost_fleet::Ended::Overdue => Ended::Overdue,
            roost_fleet::Ended::Abandoned => Ended::Abandoned,
        }),
    }
}

/// The part of a VM's life that a phase belongs to.
pub fn part(phase: Phase) -> Part {
    match (phase.part(), phase.as_str()) {
        (PhasePart::Making, "claiming") => Part::Claiming,
        (PhasePart::Making, _) => Part::Making,
        (PhasePart::Preparing, "launching") => Part::Launching,
        (PhasePart::Preparing, "registering") => Part::Joining,
        (PhasePart::Starting | PhasePart::Preparing, _) => Part::Starting,
        (PhasePart::Working, _) => Part::Working,
        (PhasePart::Ending, _) => Part::Leaving,
    }
}

pub fn power(power: roost_fleet::Power) -> Power {
    match power {
        roost_fleet::Power::On => Power::On,
        roost_fleet::Power::Off => Power::Off,
        roost_fleet::Power::Suspended => Power::Suspended,
        roost_fleet::Power::Unknown => Power::Unknown,
    }
}

pub fn address(cell: &AddressCell, name: impl Fn(&VmId) -> String) -> AddressView {
    let (state, vm, until) = match &cell.state {
        roost_fleet::AddressState::Free => (AddressState::Free, None, None),
        roost_fleet::AddressState::Used(vm) => (AddressState::Used, Some(name(vm)), None),
        roost_fleet::AddressState::Promised => (AddressState::Reserved, None, None),
        roost_fleet::AddressState::Resting(until) => {
            (AddressState::Quarantined, None, Some(*until))
        }
    };
    AddressView { address: cell.address.to_string(), state, vm, until }
}

/// `words` say for people what a deletion on this basis rests on.
pub fn budget(basis: Basis, words: &str, rules: &BasisRules, spent: u64) -> BudgetView {
    BudgetView {
        basis: basis.as_str().to_owned(),
        words: words.to_owned(),
        grace_secs: rules.grace.as_secs(),
        per_minute: rules.per_minute.map_or(0, u64::from),
        spent,
        freezes: rules.beyond == Beyond::Freeze,
        share_percent: rules.share.map(|share| share.percent.into()),
    }
}
