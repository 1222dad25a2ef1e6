//! Where everything goes. At 80 by 24 all of it is there; a larger screen shows more names and more decisions.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::bar::{Bar, Part};
use super::paint::{Paint, STRONG};
use super::words::{duration_words, shortened};
use super::{Count, Mood, Picture, decisions, lanes, sides};

const HEAD: u16 = 3;
const HINT: u16 = 1;
/// Below the middle there is always room for a title and a few decisions.
const LEAST_DECISIONS: u16 = 4;
/// Wide enough for a bar and its numbers; what is left goes to the names of workers.
const SIDE: u16 = 38;
/// From this width on there is room for a bar of all jobs beside their numbers.
const WIDE: u16 = 100;

pub(super) fn draw(frame: &mut Frame<'_>, picture: &Picture, paint: Paint) {
    let area = frame.area();
    let side = sides::lines(&picture.overview, SIDE.min(area.width).into(), paint);
    let middle = u16::try_from(side.len()).unwrap_or(u16::MAX);
    let middle = middle.min(area.height.saturating_sub(HEAD + HINT + LEAST_DECISIONS));
    let [head, middle, bottom, hint] = Layout::vertical([
        Constraint::Length(HEAD),
        Constraint::Length(middle),
        Constraint::Min(0),
        Constraint::Length(HINT),
    ])
    .areas(area);
    let [left, right] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(SIDE)]).areas(middle);
    show(frame, head, head_lines(picture, area.width, paint));
    let (width, height) = (usize::from(left.width), usize::from(left.height));
    show(frame, left, lanes::lines(&picture.overview.workers, width, height, paint));
    show(frame, right, side);
    let (width, height) = (usize::from(bottom.width), usize::from(bottom.height));
    show(frame, bottom, decisions::lines(&picture.decisions, width, height, paint));
    show(frame, hint, vec![Line::styled(format!(" {}", picture.hint), paint.quiet())]);
}

fn show(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

/// A heading that is a rule across its part of the screen.
pub(super) fn heading(name: &str, width: usize, paint: Paint) -> Line<'static> {
    let rule = "─".repeat(width.saturating_sub(name.chars().count() + 4));
    Line::styled(format!("─ {name} {rule} "), paint.quiet())
}

fn head_lines(picture: &Picture, width: u16, paint: Paint) -> Vec<Line<'static>> {
    vec![
        title(picture, width.into(), paint),
        jobs(&picture.jobs, width, paint),
        binds(picture, width.into(), paint),
    ]
}

fn title(picture: &Picture, width: usize, paint: Paint) -> Line<'static> {
    let mut line = vec![Span::raw(" "), Span::styled(picture.title.clone(), STRONG)];
    let mut used = 1 + picture.title.chars().count();
    for fact in &picture.facts {
        let length = fact.chars().count() + 3;
        if used + length <= width {
            used += length;
            line.push(Span::styled(" · ", paint.quiet()));
            line.push(Span::raw(fact.clone()));
        }
    }
    line.into()
}

fn jobs(counts: &[Count], width: u16, paint: Paint) -> Line<'static> {
    let mut line = vec![Span::raw(" ")];
    for (number, count) in counts.iter().enumerate() {
        if number > 0 {
            line.push(Span::raw("  "));
        }
        let mood = if count.number == 0 { Mood::Quiet } else { count.mood };
        line.push(Span::styled(format!("{} {}", count.number, count.name), paint.mood(mood)));
    }
    if width >= WIDE {
        let part = |count: &Count| Part { amount: count.number, sign: '█', mood: count.mood };
        let busy = counts.iter().filter(|count| count.mood != Mood::Quiet);
        let bar = Bar {
            whole: counts.iter().map(|count| count.number).sum(),
            parts: busy.map(part).collect(),
        };
        let used: usize = line.iter().map(Span::width).sum();
        line.push(Span::raw("  "));
        line.extend(bar.spans(usize::from(width).saturating_sub(used + 4), paint));
    }
    line.into()
}

fn binds(picture: &Picture, width: usize, paint: Paint) -> Line<'static> {
    let overview = &picture.overview;
    let waiting = overview.queue.oldest_waiting_secs.map(Duration::from_secs);
    let (words, mood) = match (&overview.what_binds, waiting) {
        _ if !overview.ready => ("not ready yet: reading what is there".to_owned(), Mood::Waiting),
        (Some(binds), Some(waiting)) => {
            (format!("oldest waits {}: {binds}", duration_words(waiting)), Mood::Waiting)
        }
        (Some(binds), None) => (binds.clone(), Mood::Waiting),
        (None, Some(waiting)) => {
            (format!("oldest waits {}", duration_words(waiting)), Mood::Waiting)
        }
        (None, None) => ("nothing waits".to_owned(), Mood::Quiet),
    };
    Line::styled(format!(" {}", shortened(&words, width.saturating_sub(2))), paint.mood(mood))
}
