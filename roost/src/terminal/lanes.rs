//! Workers, a lane for each phase.

use ratatui::text::{Line, Span};
use roost_console::views::LaneView;
use roost_fleet::Phase;

use super::Mood;
use super::draw::heading;
use super::paint::{Paint, STRONG};
use super::words::shortened;
use roost_hatchery::door::phase;

const WORDS: usize = 19;
const COUNT: usize = 4;
/// One block per worker, as far as they go.
const BLOCKS: usize = 16;
/// Names are shown where at least one fits.
const NAMES: usize = 24;

/// Lanes that keep their place when nobody is in them, so that the picture stays still.
const USUAL: [Phase; 7] = [
    phase::CLAIMING,
    Phase::CLONING,
    Phase::POWERING_ON,
    Phase::BOOTING,
    Phase::WAITING_FOR_ADDRESS,
    phase::REGISTERING,
    phase::WORKING,
];

pub(super) fn lines(
    lanes: &[LaneView],
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let mut lines = vec![heading("workers", width, paint)];
    let room = height.saturating_sub(lines.len());
    lines.extend(chosen(&with_usual(lanes), room).into_iter().map(|lane| line(lane, width, paint)));
    lines
}

fn with_usual(lanes: &[LaneView]) -> Vec<LaneView> {
    let is_there = |phase: &Phase| lanes.iter().any(|lane| lane.phase == phase.as_str());
    let empty = |phase: Phase| LaneView {
        phase: phase.as_str().to_owned(),
        words: phase.words().to_owned(),
        count: 0,
        names: Vec::new(),
    };
    let missing = USUAL.into_iter().filter(|phase| !is_there(phase)).map(empty);
    let mut all: Vec<LaneView> = lanes.iter().cloned().chain(missing).collect();
    all.sort_by_key(|lane| rank(&lane.phase));
    all
}

/// What is no phase stands at the end it belongs to: an order before all of them, a leave-taking after.
fn rank(phase: &str) -> usize {
    let last = phase::ALL.len() + 1;
    match phase::ALL.iter().position(|known| known.as_str() == phase) {
        Some(at) => at + 1,
        None if phase == "ordered" => 0,
        None => last,
    }
}

/// Lanes with somebody in them come before those without; the order is that of the phases either way.
fn chosen(lanes: &[LaneView], room: usize) -> Vec<&LaneView> {
    let busy = lanes.iter().filter(|lane| lane.count > 0).count();
    let mut empty = room.saturating_sub(busy);
    let mut keep = |lane: &&LaneView| {
        if lane.count == 0 {
            let kept = empty > 0;
            empty = empty.saturating_sub(1);
            return kept;
        }
        true
    };
    lanes.iter().filter(|lane| keep(lane)).take(room).collect()
}

fn line(lane: &LaneView, width: usize, paint: Paint) -> Line<'static> {
    let words = format!(" {:<WORDS$}", shortened(&lane.words, WORDS));
    if lane.count == 0 {
        return Line::styled(format!("{words}{:>COUNT$}", "·"), paint.quiet());
    }
    let room = width.saturating_sub(WORDS + COUNT + 4);
    let blocks = usize::try_from(lane.count).unwrap_or(BLOCKS).min(BLOCKS).min(room);
    let (blocks, left) = ("■".repeat(blocks), room.saturating_sub(BLOCKS + 2));
    let names = if left >= NAMES { shortened(&lane.names.join(" "), left) } else { String::new() };
    let mood = paint.mood(if lane.phase == "working" { Mood::Good } else { Mood::Busy });
    Line::from(vec![
        Span::raw(words),
        Span::styled(format!("{:>COUNT$}", lane.count), mood.patch(STRONG)),
        Span::styled(format!("  {blocks:<BLOCKS$}"), mood),
        Span::raw(format!("  {names}")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(words: &str, count: u64) -> LaneView {
        let names = (0..count).map(|number| format!("w{number}")).collect();
        LaneView { phase: words.into(), words: words.into(), count, names }
    }

    #[test]
    fn the_usual_lanes_are_there_in_the_order_of_a_life() {
        let given = [lane("ordered", 1), lane("launching", 1), lane("leaving", 2)];
        let phases: Vec<String> = with_usual(&given).into_iter().map(|lane| lane.phase).collect();
        let wanted = [
            "ordered",
            "claiming",
            "cloning",
            "powering-on",
            "booting",
            "waiting-for-address",
            "launching",
            "registering",
            "working",
            "leaving",
        ];
        assert_eq!(phases, wanted);
    }

    #[test]
    fn lanes_with_somebody_in_them_come_first_when_there_is_no_room_for_all() {
        let lanes = [lane("a", 0), lane("b", 2), lane("c", 0), lane("d", 1)];
        let words = |room| -> Vec<&str> {
            chosen(&lanes, room).iter().map(|lane| lane.words.as_str()).collect()
        };
        assert_eq!(words(9), ["a", "b", "c", "d"]);
        assert_eq!(words(3), ["a", "b", "d"]);
        assert_eq!(words(2), ["b", "d"]);
        assert_eq!(words(1), ["b"]);
        assert_eq!(words(0), [""; 0]);
    }
}
