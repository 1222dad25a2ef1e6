//! VMs, a lane for each phase.

use ratatui::text::{Line, Span};
use roost_views::{LaneView, Part};

use super::Mood;
use super::draw::heading;
use super::paint::{Paint, STRONG};
use super::words::shortened;

const WORDS: usize = 19;
const COUNT: usize = 4;
/// One block per VM, as far as they go.
const BLOCKS: usize = 16;
/// Names are shown where at least one fits.
const NAMES: usize = 24;

/// Lanes that keep their place when nobody is in them, so that the picture stays still.
const USUAL: [(&str, &str, Part); 7] = [
    ("claiming", "claiming a spare", Part::Claiming),
    ("cloning", "cloning", Part::Making),
    ("powering-on", "powering on", Part::Starting),
    ("booting", "booting", Part::Starting),
    ("waiting-for-address", "waiting for address", Part::Starting),
    ("registering", "registering", Part::Joining),
    ("working", "working", Part::Working),
];

pub(super) fn lines(
    lanes: &[LaneView],
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let mut lines = vec![heading("VMs", width, paint)];
    let room = height.saturating_sub(lines.len());
    lines.extend(chosen(&with_usual(lanes), room).into_iter().map(|lane| line(lane, width, paint)));
    lines
}

/// By the part of a VM's life, and within it as they come: the service sends its lanes in order.
fn with_usual(lanes: &[LaneView]) -> Vec<LaneView> {
    let empty = |(phase, words, part): (&str, &str, Part)| LaneView {
        phase: phase.to_owned(),
        words: words.to_owned(),
        part,
        count: 0,
        names: Vec::new(),
    };
    let is_there = |phase: &str| lanes.iter().any(|lane| lane.phase == phase);
    let missing = USUAL.into_iter().filter(|(phase, ..)| !is_there(phase)).map(empty);
    let mut all: Vec<LaneView> = lanes.iter().cloned().chain(missing).collect();
    let usual = |lane: &LaneView| USUAL.iter().position(|(phase, ..)| *phase == lane.phase);
    // What is ordered comes before all that has begun.
    all.sort_by_key(|lane| {
        (lane.phase != "ordered", lane.part, usual(lane).unwrap_or(USUAL.len()))
    });
    all
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
    let mood = paint.mood(if lane.part == Part::Working { Mood::Good } else { Mood::Busy });
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

    fn lane(words: &str, part: Part, count: u64) -> LaneView {
        let names = (0..count).map(|number| format!("w{number}")).collect();
        LaneView { phase: words.into(), words: words.into(), part, count, names }
    }

    #[test]
    fn the_usual_lanes_are_there_in_the_order_of_a_life() {
        let given = [
            lane("ordered", Part::Making, 1),
            lane("launching", Part::Launching, 1),
            lane("leaving", Part::Leaving, 2),
        ];
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
        let lanes = [
            lane("a", Part::Starting, 0),
            lane("b", Part::Starting, 2),
            lane("c", Part::Starting, 0),
            lane("d", Part::Starting, 1),
        ];
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
