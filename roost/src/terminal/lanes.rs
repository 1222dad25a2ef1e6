//! Workers, a lane for each phase.

use ratatui::text::{Line, Span};
use roost_console::views::LaneView;

use super::Mood;
use super::draw::heading;
use super::paint::Paint;
use super::words::shortened;

const WORDS: usize = 20;
const COUNT: usize = 4;

pub(super) fn lines(
    lanes: &[LaneView],
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let mut lines = vec![heading("workers", width, paint)];
    let room = height.saturating_sub(lines.len());
    lines.extend(chosen(lanes, room).into_iter().map(|lane| line(lane, width, paint)));
    lines
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
    let names = lane.names.join(" ");
    let room = width.saturating_sub(WORDS + COUNT + 4);
    let mood = if lane.phase == "working" { Mood::Good } else { Mood::Busy };
    Line::from(vec![
        Span::raw(words),
        Span::styled(format!("{:>COUNT$}", lane.count), paint.mood(mood).patch(paint.strong())),
        Span::styled(format!("  {}", shortened(&names, room)), paint.mood(mood)),
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
