//! Decisions and phases in the console's words.

use roost_console::views::{DecisionView, GateView, LimitView, StepView, SubjectKind};
use roost_fleet::{Decision, Gate, Limit, NextLook, Step, Subject, VmId};

pub(super) fn decision(decided: &Decision, name: impl Fn(&VmId) -> Option<String>) -> DecisionView {
    let (subject_kind, subject, subject_name) = match &decided.subject {
        Subject::Request(request) => (SubjectKind::Job, request.id.to_string(), None),
        Subject::Vm { id } => (SubjectKind::Vm, id.to_string(), name(id)),
        Subject::Pool { id, .. } => (SubjectKind::Pool, id.to_string(), None),
        Subject::Service { id, .. } => (SubjectKind::Service, id.to_string(), None),
    };
    DecisionView {
        seq: decided.seq,
        at: decided.at,
        subject_kind,
        subject,
        subject_name,
        verdict: decided.verdict.as_str().to_owned(),
        reason: decided.reason.to_string(),
        bound_by: decided.bound_by.map(str::to_owned),
        gates: decided.gates.iter().map(gate).collect(),
        next_look: next_look(decided.next_look),
        vm: decided.vm.as_ref().map(|vm| name(vm).unwrap_or_else(|| vm.to_string())),
        times: decided.times,
        since: decided.since,
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
    }
}

pub(super) fn limit(known: Limit) -> LimitView {
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

pub(super) fn step(step: &Step) -> StepView {
    StepView {
        phase: step.phase.as_str().to_owned(),
        words: step.phase.words().to_owned(),
        began: step.began,
        took_ms: step.took_ms,
        deadline_ms: step.deadline_ms,
        ended: step.ended.map(|ended| ended.as_str().to_owned()),
    }
}
