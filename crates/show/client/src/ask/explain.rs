//! Why a request waits, or what became of it.

use std::fmt::Write as _;

use jiff::Timestamp;
use roost_views::words::{Style, short_id, title};
use roost_views::{
    DecisionView, GateView, OutlookView, RequestDetail, RequestState, RequestView, Verdict, VmView,
};

use super::table::{Table, left, right};
use super::waterfall;
use super::words::{or_dash, since, span};

/// How many of the earlier decisions are shown; `roost decisions --subject` has all.
const EARLIER: usize = 5;

pub(crate) fn render(detail: &RequestDetail, now: Timestamp, width: Option<usize>) -> Vec<String> {
    let mut lines = vec![headline(detail)];
    lines.extend(facts(&detail.request));
    let decisions = detail.decisions.as_slice();
    // One that was only just seen has none.
    let last = decisions.last().or(detail.request.verdict.as_ref());
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
            lines.push(format!(
                "When it was {} {ago} ago, it was weighed so:",
                weighed.verdict.as_str()
            ));
        }
        lines.extend(gates(&weighed.gates, width));
    }
    if let Some(outlook) = &detail.outlook {
        lines.push(String::new());
        lines.extend(when(outlook, now, width));
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
        lines.extend(waterfall::of_request(&vm.timeline, detail.request.queued, now, width));
    }
    lines
}

/// Its place in line, when it probably starts, and who holds what it needs.
fn when(outlook: &OutlookView, now: Timestamp, width: Option<usize>) -> Vec<String> {
    let mut first = format!("Place {} of {} in line", outlook.place, outlook.of);
    if let Some(estimate) = outlook.estimate {
        let at = roost_views::words::clock(estimate.at);
        let _ =
            write!(first, "; probably starts in about {} (at {at} UTC)", span(estimate.in_secs));
    }
    let mut lines = vec![format!("{first}."), format!("That is {}.", outlook.basis)];
    if outlook.estimate.is_none() {
        lines[1] = format!("There is {}.", outlook.basis);
    }
    if !outlook.next_gates.is_empty() {
        lines.push(format!("Then closed too: {}", outlook.next_gates.join(", ")));
    }
    if outlook.holders.is_empty() {
        return lines;
    }
    let mut table = Table::new([
        left("HELD BY").narrows(2, 16),
        left("FOR").narrows(3, 8),
        left(outlook.group.to_uppercase()).narrows(4, 8).goes(5),
        right("HOLDS"),
        right("ENDS IN ABOUT"),
    ]);
    for holder in &outlook.holders {
        let ends = holder.ends.map(|ends| span(roost_views::words::secs_between(now, ends)));
        table.row([
            holder.vm.clone(),
            or_dash(holder.request.as_ref().map(|request| short_id(&request.id))),
            or_dash(holder.project.as_deref()),
            holder.unit.amount(holder.amount, Style::Short),
            or_dash(ends.as_deref()),
        ]);
    }
    lines.extend(table.render(width));
    let more = outlook.held_by.saturating_sub(outlook.holders.len() as u64);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

fn headline(detail: &RequestDetail) -> String {
    let request = &detail.request;
    let waited = request.waited_secs.map(span);
    let standing = request.state;
    let state = match (standing, waited) {
        (RequestState::Waiting, Some(waited)) => format!("waiting for {waited}"),
        (RequestState::Refused | RequestState::Skipped, _) | (_, None) => {
            standing.as_str().to_owned()
        }
        (state, Some(waited)) => format!("{}, waited {waited}", state.as_str()),
    };
    let ran = request.outcome.as_ref().map(|outcome| {
        let ran = outcome.ran_secs.map(|ran| format!(", ran {}", span(ran)));
        format!("{}, {}", ran.unwrap_or_default(), outcome.result)
    });
    let ran = ran.unwrap_or_default();
    format!("{} {}: {state}{ran}", title(&request.noun), request.id)
}

fn facts(request: &RequestView) -> Option<String> {
    let queued = request.queued.map(|queued| format!("queued {queued:.0}"));
    let project = request.project.as_ref().map(|project| format!("{} {project}", request.group));
    let own = request.facts.known();
    let own = own.map(|(label, value)| format!("{} {value}", in_sentence(label)));
    let known: Vec<String> = project.into_iter().chain(own).chain(queued).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// A label within a sentence; one that begins with an abbreviation stays as it is.
pub(super) fn in_sentence(label: &str) -> String {
    let second = label.chars().nth(1);
    if second.is_some_and(char::is_uppercase) { label.to_owned() } else { label.to_lowercase() }
}

fn verdict(decision: &DecisionView, now: Timestamp) -> Vec<String> {
    let mut lines = vec![
        format!("{} ({}).", meaning(decision.verdict), decision.verdict.as_str()),
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

/// A verdict in words; one that a newer service has stands for itself.
fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Spawned => "A VM was started for it",
        Verdict::Skipped => "It is not for this service, or somebody else has it",
        Verdict::Deferred => "It is for this service, but has to wait",
        Verdict::Refused => "It is for this service and will get no VM as it is",
        Verdict::Failed => "A VM was on its way and did not arrive",
        Verdict::Released => "It was given back to where it came from",
        Verdict::Adopted => "Its VM was found after a restart and taken on",
        Verdict::Finished => "It has ended, and its VM with it",
        Verdict::Deleted => "Its VM was deleted",
        Verdict::Kept => "Its VM should have been deleted and was kept",
        Verdict::Changed => "Its VM was brought nearer to what is asked for",
        Verdict::Steered | Verdict::Unknown => "It was decided on",
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
    for gate in gates {
        let amount = |amount| gate.unit().amount(amount, Style::Short);
        let number = |number: Option<u64>| or_dash(number.map(amount).as_deref());
        let limit = gate.limit.map(|limit| limit.at().map_or_else(|| limit.to_string(), amount));
        table.row([
            gate.name.clone(),
            if gate.passed { "yes" } else { "NO" }.to_owned(),
            number(gate.need),
            number(gate.have),
            or_dash(limit.as_deref()),
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
            decision.verdict.as_str().to_owned(),
            or_dash(decision.bound_by.as_deref()),
            decision.times.to_string(),
            decision.reason.clone(),
        ]);
    }
    table.render(width)
}

pub(super) fn machine(vm: &VmView) -> String {
    let mut words = format!("VM {} ({}), powered {}", vm.name, vm.id, vm.power.as_str());
    let phase = vm.phase.as_ref().map(|phase| &phase.words);
    for more in [phase, vm.address.as_ref(), vm.fate.as_ref()].into_iter().flatten() {
        words.push_str(", ");
        words.push_str(more);
    }
    words
}
