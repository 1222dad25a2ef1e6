//! What a VM went through, and why it is kept or deleted.

use jiff::Timestamp;
use roost_views::{VmDetail, VmView};

use super::explain::{gates, history, in_sentence, machine};
use super::waterfall;
use super::words::{memory, since};

/// How many of the decisions are shown; `roost decisions --subject` has all.
const DECISIONS: usize = 6;

pub(crate) fn render(detail: &VmDetail, now: Timestamp, width: Option<usize>) -> Vec<String> {
    let mut lines = vec![machine(&detail.vm)];
    lines.extend(facts(&detail.vm, now));
    lines.push(String::new());
    lines.extend(waterfall::of_vm(&detail.timeline, now, width));
    let decisions = detail.decisions.as_slice();
    if !decisions.is_empty() {
        lines.push(String::new());
        lines.push("What was decided about it:".to_owned());
        let shown = &decisions[decisions.len().saturating_sub(DECISIONS)..];
        lines.extend(history(shown, now, width));
    }
    if let Some(weighed) = decisions.iter().rev().find(|decision| !decision.gates.is_empty()) {
        lines.push(String::new());
        let ago = since(now, weighed.at);
        lines.push(format!(
            "When it was {} {ago} ago, it was weighed so:",
            weighed.verdict.as_str()
        ));
        lines.extend(gates(&weighed.gates, width));
    }
    if let Some(annotation) = &detail.annotation {
        lines.push(String::new());
        lines.push("Annotation, without secrets:".to_owned());
        lines.extend(annotation.lines().map(|line| format!("  {line}")));
    }
    lines
}

fn facts(vm: &VmView, now: Timestamp) -> Option<String> {
    let request = vm.request.as_ref().map(|request| format!("for {}", request.id));
    let own = vm.facts.known();
    let own = own.map(|(label, value)| format!("{} {value}", in_sentence(label)));
    let rest = [
        vm.template.as_ref().map(|template| format!("template {template}")),
        vm.cpus.map(|cpus| format!("CPUs {cpus}")),
        vm.memory_mb.map(|mb| format!("memory {}", memory(mb))),
        vm.created.map(|created| format!("age {}", since(now, created))),
    ];
    let kind = [vm.kind.as_str().to_owned()].into_iter();
    let known: Vec<String> =
        kind.chain(request).chain(own).chain(rest.into_iter().flatten()).collect();
    (!known.is_empty()).then(|| known.join(", "))
}
