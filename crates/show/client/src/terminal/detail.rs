//! All that is known about one request, VM or decision.

use ratatui::text::Line;
use roost_views::DecisionView;

use super::draw::heading;
use super::paint::Paint;
use super::view::{Extent, View};
use super::words::{clock_time, shortened};
use super::{Detail, Look, Opened};
use crate::ask::{explain_request, explain_vm, gates};

/// The part of it that fits, and how much there is.
pub(super) fn lines(
    opened: &Opened,
    look: &Look,
    view: &View,
    width: usize,
    height: usize,
    paint: Paint,
) -> (Vec<Line<'static>>, Extent) {
    let text = text(opened, look, width.saturating_sub(2));
    let extent = Extent { lines: text.len(), room: height.saturating_sub(1) };
    let first = view.scroll.min(extent.furthest());
    let below = extent.furthest() - first;
    let more = if below > 0 { format!(" ({below} more below)") } else { String::new() };
    let name = match opened {
        Opened::Request(id) => {
            let mut doors = look.picture.overview.doors.iter();
            let door = doors.find(|door| door.name == id.door);
            format!("{} {id}{more}", door.map_or("request", |door| &door.noun))
        }
        Opened::Vm(name) => format!("VM {name}{more}"),
        Opened::Decision(seq) => format!("decision {seq}{more}"),
        Opened::Needs => format!("needs a person{more}"),
    };
    let mut lines = vec![heading(&shortened(&name, width.saturating_sub(6)), width, paint)];
    let shown = text.iter().skip(first).take(extent.room);
    lines.extend(
        shown.map(|line| Line::raw(format!(" {}", shortened(line, width.saturating_sub(2))))),
    );
    (lines, extent)
}

fn text(opened: &Opened, look: &Look, width: usize) -> Vec<String> {
    let now = look.picture.overview.now;
    if let Opened::Decision(seq) = opened {
        let decision = look.picture.decisions.iter().find(|decision| decision.seq == *seq);
        return decision.map_or_else(
            || vec!["It is too old to be here; `roost decisions` may have it.".to_owned()],
            |decision| of_decision(decision, width),
        );
    }
    if *opened == Opened::Needs {
        let lines = crate::ask::needs(&look.picture.overview);
        return lines.iter().flat_map(|line| wrapped(line, width)).collect();
    }
    let lines = match &look.detail {
        None => vec!["asking ...".to_owned()],
        Some(Detail::Nothing(words)) => vec![words.clone()],
        Some(Detail::Request(detail)) => explain_request(detail, now, Some(width)),
        Some(Detail::Vm(detail)) => explain_vm(detail, now, Some(width)),
    };
    lines.iter().flat_map(|line| wrapped(line, width)).collect()
}

fn of_decision(decision: &DecisionView, width: usize) -> Vec<String> {
    let name = decision.subject_name.as_ref().unwrap_or(&decision.subject);
    let mut lines = vec![
        format!("{} {name}: {}", decision.subject_kind.as_str(), decision.verdict.as_str()),
        format!("at {}", clock_time(decision.at)),
        String::new(),
    ];
    lines.extend(wrapped(&decision.reason, width));
    if decision.times > 1 {
        lines.push(format!("{} times since {}", decision.times, clock_time(decision.since)));
    }
    if let Some(next) = &decision.next_look {
        lines.push(format!("looked at again {next}"));
    }
    if !decision.gates.is_empty() {
        lines.push(String::new());
        lines.extend(gates(&decision.gates, Some(width)));
    }
    lines
}

/// A reason may be longer than a line and is worth reading to its end.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    use unicode_width::UnicodeWidthStr as _;
    if line.width() <= width {
        return vec![line.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let used = lines.last().map_or(0, |last| last.width());
        if used > 0 && used + 1 + word.width() > width {
            lines.push("  ".to_owned());
        } else if used > 0 {
            lines.last_mut().into_iter().for_each(|last| last.push(' '));
        }
        lines.last_mut().into_iter().for_each(|last| last.push_str(word));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_in_the_next() {
        assert_eq!(wrapped("a b c", 5), ["a b c"]);
        assert_eq!(
            wrapped("Reason:  no room for 8 vCPUs", 15),
            ["Reason:  no", "  room for 8", "  vCPUs"]
        );
        assert_eq!(wrapped("abcdefghij k", 4), ["abcdefghij", "  k"], "a long word stays whole");
    }
}
