//! Why a job waits, or what became of it.

use jiff::Timestamp;
use roost_console::views::{DecisionView, GateView, JobDetail, JobView, VmView};

use super::jobs::Standing;
use super::table::{Table, left, right};
use super::waterfall;
use super::words::{or_dash, since, span};

/// How many of the earlier decisions are shown; `roost decisions --subject` has all.
const EARLIER: usize = 5;

pub(crate) fn render(detail: &JobDetail, now: Timestamp, width: Option<usize>) -> Vec<String> {
    let mut lines = vec![headline(&detail.job)];
    lines.extend(facts(&detail.job));
    let decisions = detail.decisions.as_slice();
    // A job that was only just seen has none.
    let last = decisions.last().or(detail.job.verdict.as_ref());
    lines.push(String::new());
    match last {
        None => lines.push("Nothing has been decided on it yet.".to_owned()),
        Some(last) => lines.extend(verdict(last, now)),
    }
    // The last word may be on a later step than the one at which it was weighed.
    if let Some(weighed) = decisions.iter().rev().find(|decision| !decision.gates.is_empty()) {
        lines.push(String::new());
        if last.is_some_and(|last| last.seq != weighed.seq) {
            let ago = since(now, weighed.at);
            lines.push(format!("When it was {} {ago} ago, it was weighed so:", weighed.verdict));
        }
        lines.extend(gates(&weighed.gates, width));
    }
    if let [earlier @ .., _] = decisions
        && !earlier.is_empty()
    {
        lines.push(String::new());
        lines.push("Before that:".to_owned());
        let shown = &earlier[earlier.len().saturating_sub(EARLIER)..];
        lines.extend(history(shown, now, width));
    }
    if let Some(vm) = &detail.vm {
        lines.push(String::new());
        lines.push(machine(&vm.vm));
        lines.extend(waterfall::render(&vm.timeline, now, width));
    }
    lines
}

fn headline(job: &JobView) -> String {
    let waited = job.waited_secs.map(span);
    let state = match (Standing::of(job), waited) {
        (Standing::Waiting, Some(waited)) => format!("waiting for {waited}"),
        (Standing::Refused | Standing::Skipped | Standing::Ended, _) | (_, None) => {
            Standing::of(job).as_str().to_owned()
        }
        (state, Some(waited)) => format!("{}, waited {waited}", state.as_str()),
    };
    format!("Job {} ({}): {state}", job.id, job.protocol.as_str())
}

fn facts(job: &JobView) -> Option<String> {
    let queued = job.queued.map(|queued| format!("{queued:.0}"));
    let known = [
        ("project", job.project.as_ref()),
        ("workflow", job.workflow.as_ref()),
        ("model", job.model.as_ref()),
        ("flavor", job.flavor.as_ref()),
        ("queued", queued.as_ref()),
    ];
    let known: Vec<_> =
        known.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn verdict(decision: &DecisionView, now: Timestamp) -> Vec<String> {
    let mut lines = vec![
        format!("{} ({}).", meaning(&decision.verdict), decision.verdict),
        format!("Reason:     {}", decision.reason),
    ];
    if let Some(gate) = &decision.bound_by {
        lines.push(format!("Bound by:   {gate}"));
    }
    lines.push(match decision.times {
        0 | 1 => format!("Decided:    {} ago", since(now, decision.at)),
        times => format!(
            "Decided:    {} ago; {times} times in a row since {} ago",
            since(now, decision.at),
            since(now, decision.since)
        ),
    });
    if let Some(next) = &decision.next_look {
        lines.push(format!("Next look:  {next}"));
    }
    lines
}

/// The closed set of verdicts in words; one that a newer service has stands for itself.
fn meaning(verdict: &str) -> &'static str {
    match verdict {
        "spawned" => "A worker was started for it",
        "skipped" => "It is not for this hatchery, or somebody else has it",
        "deferred" => "It is for this hatchery, but has to wait",
        "refused" => "It is for this hatchery and will get no worker",
        "failed" => "A worker was on its way and did not arrive",
        "released" => "It was given back to CDS",
        "adopted" => "Its worker was found after a restart and taken on",
        "finished" => "It has ended, and its worker with it",
        "deleted" => "Its VM was deleted",
        "kept" => "Its VM should have been deleted and was kept",
        _ => "It was decided on",
    }
}

pub(crate) fn gates(gates: &[GateView], width: Option<usize>) -> Vec<String> {
    let mut table = Table::new([
        left("GATE"),
        left("PASS"),
        right("NEED"),
        right("HAVE"),
        right("LIMIT"),
        left("NOTE").narrows(1, 16),
    ]);
    let number = |number: Option<u64>| or_dash(number.map(|number| number.to_string()).as_deref());
    for gate in gates {
        table.row([
            gate.name.clone(),
            if gate.passed { "yes" } else { "NO" }.to_owned(),
            number(gate.need),
            number(gate.have),
            or_dash(gate.limit.map(|limit| limit.to_string()).as_deref()),
            gate.note.clone().unwrap_or_default(),
        ]);
    }
    table.render(width)
}

pub(super) fn history(
    decisions: &[DecisionView],
    now: Timestamp,
    width: Option<usize>,
) -> Vec<String> {
    let mut table = Table::new([
        right("AGE"),
        left("VERDICT"),
        left("BOUND BY").goes(3),
        right("TIMES").goes(2),
        left("REASON").narrows(1, 40).narrows(4, 16),
    ]);
    for decision in decisions {
        table.row([
            since(now, decision.at),
            decision.verdict.clone(),
            or_dash(decision.bound_by.as_deref()),
            decision.times.to_string(),
            decision.reason.clone(),
        ]);
    }
    table.render(width)
}

pub(super) fn machine(vm: &VmView) -> String {
    let mut words = format!("VM {} ({}), powered {}", vm.name, vm.id, vm.power);
    for more in [&vm.phase, &vm.address, &vm.fate].into_iter().flatten() {
        words.push_str(", ");
        words.push_str(more);
    }
    words
}
