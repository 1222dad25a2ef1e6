use jiff::Timestamp;
use roost_views::words::Style;
use roost_views::{AddressesView, GaugeView, LinkView, Overview, RequestState, SteeringView};

use super::pick;
use super::table::{Table, left, right};
use super::words::{count, since, span};

/// What an operator with a pager wants to know, in that order.
pub(super) fn render(
    overview: &Overview,
    steering: &SteeringView,
    width: Option<usize>,
) -> Vec<String> {
    let Overview { service, version, now, started, capacity, .. } = overview;
    let ready = match (overview.observes_only, overview.ready) {
        (true, _) => "OBSERVES ONLY",
        (false, true) => "ready",
        (false, false) => "NOT READY",
    };
    let mut lines = vec![
        format!("{service}  {ready}  up {}  roost {version}", since(*now, *started)),
        String::new(),
    ];
    lines.extend(needs(overview));
    lines.push(String::new());
    // Not cut to the terminal: what binds or what is wrong must be read to its end.
    let mut fact = |name: &str, words: String| lines.push(format!("{name:<11} {words}"));
    fact("queue", queue(overview));
    if let Some(binds) = &overview.what_binds {
        fact("blocked by", binds.clone());
    }
    if let Some(held) = &steering.held {
        fact("spawning", format!("HELD BACK: {held}; `roost resume` goes on"));
    }
    fact(&overview.link.server, link(&overview.link, *now));
    for seen in capacity.iter() {
        fact(&seen.brief, gauge(seen));
    }
    if let Some(addresses) = &overview.addresses {
        fact("addresses", addresses_left(addresses));
    }
    let deletions = &overview.deletions;
    let last_minute = format!("{} in the last minute", deletions.last_minute);
    fact(
        "deletions",
        match &deletions.frozen {
            Some(why) => format!("FROZEN until `roost thaw`: {why}; {last_minute}"),
            None => match &steering.frozen {
                Some(held) => format!("FROZEN until `roost thaw`: {held}; {last_minute}"),
                None => last_minute,
            },
        },
    );
    if overview.lanes.iter().any(|lane| lane.count > 0) {
        lines.push(String::new());
        lines.extend(lanes(overview, width));
    }
    if !overview.pools.is_empty() {
        lines.push(String::new());
        lines.extend(pick::table(&overview.pools, *now, width));
    }
    if !overview.recent.is_empty() {
        lines.push(String::new());
        let last = overview.recent.len().saturating_sub(SHOWN_DECISIONS);
        lines.extend(pick::table(&overview.recent[last..], *now, width));
    }
    lines
}

/// So that the whole fits a screen; `roost decisions` has the rest.
const SHOWN_DECISIONS: usize = 8;

/// What does not go on until a person has looked, before anything else.
pub(crate) fn needs(overview: &Overview) -> Vec<String> {
    if overview.needs.is_empty() {
        let words = if overview.ready { "Nothing needs you." } else { "Not known yet." };
        return vec![words.to_owned()];
    }
    let mut lines = vec!["NEEDS A PERSON".to_owned()];
    for need in &overview.needs {
        let since = need.since.map(|then| format!(" (for {})", since(overview.now, then)));
        lines.push(format!("- {}{}", need.words, since.unwrap_or_default()));
        let runbook = need.runbook.as_ref().map(|name| format!(" See docs/runbooks/{name}.md."));
        lines.push(format!("  {}{}", need.advice, runbook.unwrap_or_default()));
    }
    lines
}

fn queue(overview: &Overview) -> String {
    let queue = &overview.queue;
    let oldest = queue.oldest_waiting_secs.map(|secs| format!(" (the oldest for {})", span(secs)));
    let oldest = oldest.unwrap_or_default();
    let counted = queue.in_order().map(|(state, number)| match state {
        RequestState::Waiting => format!("{number} waiting{oldest}"),
        other => format!("{number} {}", other.as_str()),
    });
    counted.join(", ")
}

fn link(link: &LinkView, now: Timestamp) -> String {
    let mut words = match (link.connected, link.synced) {
        (true, true) => "connected".to_owned(),
        (true, false) => "connected, NOT SYNCED".to_owned(),
        (false, _) => "NOT CONNECTED".to_owned(),
    };
    let mut also = |more: String| {
        words.push_str(", ");
        words.push_str(&more);
    };
    if let Some(trouble) = &link.trouble {
        also(trouble.clone());
    }
    also(format!("{} seen", count(link.vms_seen, "VM", "VMs")));
    if let Some(then) = link.last_contact {
        also(format!("last contact {} ago", since(now, then)));
    }
    if let Some(calls) = link.calls {
        also(format!("{} in the last minute", count(calls.last_minute, "call", "calls")));
    }
    if link.resyncs > 0 {
        also(count(link.resyncs, "full resync", "full resyncs"));
    }
    words
}

fn gauge(gauge: &GaugeView) -> String {
    let unit = |amount| gauge.unit.amount(amount, Style::Short);
    let limit = gauge.limit.at().map_or_else(|| gauge.limit.to_string(), unit);
    let reserved = match gauge.reserved {
        0 => String::new(),
        reserved => format!(" (+{} reserved)", unit(reserved)),
    };
    format!("{}{reserved} of {limit}", unit(gauge.used))
}

fn addresses_left(addresses: &AddressesView) -> String {
    let AddressesView { total, free, used, reserved, quarantined, forecast } = addresses;
    let mut words =
        format!("{free} free of {total} ({used} used, {reserved} reserved, {quarantined} resting)");
    if let Some(forecast) = forecast {
        words.push_str("; ");
        words.push_str(forecast);
    }
    words
}

fn lanes(overview: &Overview, width: Option<usize>) -> Vec<String> {
    let mut table = Table::new([left("PHASE"), right("VMS"), left("NAMES").narrows(1, 12)]);
    for lane in overview.lanes.iter().filter(|lane| lane.count > 0) {
        table.row([lane.words.clone(), lane.count.to_string(), lane.names.join(" ")]);
    }
    table.render(width)
}
