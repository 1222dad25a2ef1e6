//! A waterfall as lines of text.

use jiff::Timestamp;
use roost_views::{Bar, BarKind, StepView, Waterfall};

use super::table::{Table, left, right};
use super::words::{millis, or_dash};

/// Where nobody looks at the screen.
const BAR: usize = 40;

/// Narrower ones show nothing.
const LEAST_BAR: usize = 10;

/// What the other columns take at most, with some air.
const OTHER_COLUMNS: usize = 52;

/// From the queue on.
pub(super) fn of_request(
    steps: &[StepView],
    queued: Option<Timestamp>,
    now: Timestamp,
    width: Option<usize>,
) -> Vec<String> {
    render(Waterfall::of_request(steps, queued, now), width)
}

pub(super) fn of_vm(steps: &[StepView], now: Timestamp, width: Option<usize>) -> Vec<String> {
    render(Waterfall::of_vm(steps, now), width)
}

fn render(seen: Option<Waterfall<'_>>, width: Option<usize>) -> Vec<String> {
    let Some(seen) = seen else { return vec!["no phases are known".to_owned()] };
    let room = width.map_or(BAR, |width| width.saturating_sub(OTHER_COLUMNS).max(LEAST_BAR));
    let mut table = Table::new([
        left("PHASE"),
        left("").goes(2),
        right("TOOK"),
        left("ENDED"),
        right("DEADLINE").goes(1),
    ]);
    for bar in &seen.bars {
        let ended = match bar.kind {
            BarKind::Queue => "",
            BarKind::Going => "goes on",
            BarKind::Done => "done",
            BarKind::Broken(ended) => ended.as_str(),
        };
        table.row([
            bar.words.to_owned(),
            draw(bar, seen.length_ms, room),
            millis(bar.took_ms),
            ended.to_owned(),
            or_dash(bar.deadline_ms.map(millis).as_deref()),
        ]);
    }
    let spare = seen.as_spare.iter();
    let spare = spare.map(|(words, took)| format!("{words} {}", millis(*took)));
    let spare = spare.collect::<Vec<_>>().join(", ");
    let before = (!spare.is_empty()).then(|| format!("As a spare, before: {spare}"));
    let working = seen.working_ms.map(|ms| format!("At work for {}.", millis(ms)));
    before.into_iter().chain(table.render(width)).chain(working).collect()
}

/// `#` for the time that it took, `>` at the edge if it goes on, spaces before.
fn draw(bar: &Bar<'_>, length_ms: u64, room: usize) -> String {
    let place = |ms: u64| {
        let place = u128::from(ms) * room as u128 / u128::from(length_ms);
        usize::try_from(place).unwrap_or(usize::MAX)
    };
    let from = place(bar.from_ms).min(room - 1);
    // Everything that happened can be seen.
    let until = place(bar.from_ms.saturating_add(bar.took_ms)).clamp(from + 1, room);
    let mut drawn = format!("{}{}", " ".repeat(from), "#".repeat(until - from));
    if bar.kind == BarKind::Going {
        drawn.pop();
        drawn.push('>');
    }
    drawn
}
