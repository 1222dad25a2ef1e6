//! What a VM went through, and why it is kept or deleted.

use jiff::Timestamp;
use roost_console::views::{VmDetail, VmView};

use super::explain::{gates, history, machine};
use super::waterfall;
use super::words::{memory, since};

/// How many of the decisions are shown; `roost decisions --subject` has all.
const DECISIONS: usize = 6;

pub(crate) fn render(detail: &VmDetail, now: Timestamp, width: Option<usize>) -> Vec<String> {
    let mut lines = vec![machine(&detail.vm)];
    lines.extend(facts(&detail.vm, now));
    lines.push(String::new());
    lines.extend(waterfall::render(&detail.timeline, now, width));
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
        lines.push(format!("When it was {} {ago} ago, it was weighed so:", weighed.verdict));
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
    let known = [
        ("", Some(vm.kind.as_str().to_owned())),
        ("job ", vm.job.clone()),
        ("model ", vm.model.clone()),
        ("template ", vm.template.clone()),
        ("flavor ", vm.flavor.clone()),
        ("CPUs ", vm.cpus.map(|cpus| cpus.to_string())),
        ("memory ", vm.memory_mb.map(memory)),
        ("age ", vm.created.map(|created| since(now, created))),
        ("in CDS ", vm.worker_status.clone()),
    ];
    let known: Vec<_> =
        known.into_iter().filter_map(|(name, value)| Some(format!("{name}{}", value?))).collect();
    (!known.is_empty()).then(|| known.join(", "))
}
