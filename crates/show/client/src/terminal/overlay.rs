//! What stands over the rest: the keys, and what is asked before anything is done.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::paint::{Paint, STRONG};
use super::question::{Question, words};
use super::words::shortened;

const KEYS: [&str; 18] = [
    "Tab 1 2 3     requests, VMs, decisions",
    "arrows j k    move; PgUp PgDn Home End too",
    "Enter         open a request or VM; from one to the other",
    "e             explain the request behind it",
    "n             what needs a person, and what to do about it",
    "/             filter by words; Esc ends it",
    "z             the list on the whole screen, and back",
    "q Esc         back; where there is nothing to go back from, out",
    "",
    "Each is asked for once more, needs the token, and is recorded:",
    "p r           pause spawning, resume it",
    "D             drain: no new workers, the others end",
    "F T           freeze deletions, thaw them",
    "x             delete the marked VM, through the guard",
    "w             refill a warm pool",
    "c             look at the marked request now",
    "",
    "any key closes this",
];

pub(super) fn help(frame: &mut Frame<'_>, paint: Paint) {
    let lines: Vec<String> = KEYS.iter().map(ToString::to_string).collect();
    show(frame, "keys", &lines, paint);
}

pub(super) fn question(frame: &mut Frame<'_>, question: &Question, paint: Paint) {
    let Some(action) = question.action() else { return };
    let (asked, meaning) = words(action);
    let mut lines = vec![asked, meaning.to_owned(), String::new()];
    if question.ways.len() > 1 {
        let (at, of) = (question.chosen + 1, question.ways.len());
        lines.push(format!("Tab: another of the {of} ways (this is {at})"));
    }
    lines.push("y does it, Esc leaves it".to_owned());
    show(frame, "sure?", &lines, paint);
}

fn show(frame: &mut Frame<'_>, title: &str, lines: &[String], paint: Paint) {
    let area = frame.area();
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let room = usize::from(width).saturating_sub(4);
    let text: Vec<Line<'_>> =
        lines.iter().map(|line| Line::raw(format!(" {}", shortened(line, room)))).collect();
    let block = Block::bordered().title(format!(" {title} ")).title_style(STRONG);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(text).block(block.border_style(paint.quiet())), place);
}
