//! Where everything goes. At 80 by 24 all of it is there; a larger screen shows more names and longer lists.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use roost_views::{Overview, SampleView};
use unicode_width::UnicodeWidthStr as _;

use super::bar::{Bar, Part};
use super::paint::{Paint, STRONG};
use super::view::{Extent, Mode, View};
use super::words::{clock_time, duration_words, shortened};
use super::{Count, Look, Lost, Mood, Picture, Said, detail, lanes, list, overlay, sides};
use crate::ask::clean;

const HEAD: u16 = 3;
const HINT: u16 = 1;
/// Below the middle there is always room for a title and a few lines of a list.
const LEAST_LIST: u16 = 4;
/// Wide enough for a bar and its numbers; what is left goes to the names of workers.
const SIDE: u16 = 38;
/// From this width on there is room for a bar of all requests beside their numbers.
const WIDE: u16 = 100;

/// Also notes in the view how much of it there is to scroll.
pub(super) fn draw(frame: &mut Frame<'_>, look: &Look, view: &mut View, paint: Paint) {
    let area = frame.area();
    let [head, body, hint] =
        Layout::vertical([Constraint::Length(HEAD), Constraint::Min(0), Constraint::Length(HINT)])
            .areas(area);
    show(frame, head, head_lines(&look.picture, area.width, paint));
    let (width, height) = (usize::from(body.width), usize::from(body.height));
    if let Some(opened) = view.opened().cloned() {
        let (lines, extent) = detail::lines(&opened, look, view, width, height, paint);
        view.extent = extent;
        show(frame, body, lines);
    } else if view.is_wide {
        view.extent = Extent { lines: 0, room: height.saturating_sub(1) };
        show(frame, body, list::lines(look, view, width, height, paint));
    } else {
        overview(frame, body, look, view, paint);
    }
    show(frame, hint, vec![hint_line(look, view, area.width.into(), paint)]);
    match &view.mode {
        Mode::Reading => overlay::help(frame, paint),
        Mode::Asking(question) => overlay::question(frame, question, paint),
        Mode::Moving | Mode::Filtering | Mode::Leaving => {}
    }
}

fn overview(frame: &mut Frame<'_>, area: Rect, look: &Look, view: &mut View, paint: Paint) {
    let overview = &look.picture.overview;
    let side = sides::lines(overview, &look.picture.steering, SIDE.min(area.width).into(), paint);
    let middle = u16::try_from(side.len()).unwrap_or(u16::MAX);
    let middle = middle.min(area.height.saturating_sub(LEAST_LIST));
    let [middle, bottom] =
        Layout::vertical([Constraint::Length(middle), Constraint::Min(0)]).areas(area);
    let [left, right] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(SIDE)]).areas(middle);
    let (width, height) = (usize::from(left.width), usize::from(left.height));
    show(frame, left, lanes::lines(&overview.lanes, width, height, paint));
    show(frame, right, side);
    let (width, height) = (usize::from(bottom.width), usize::from(bottom.height));
    view.extent = Extent { lines: 0, room: height.saturating_sub(1) };
    show(frame, bottom, list::lines(look, view, width, height, paint));
}

/// What is being typed, what came of an order, or what can be done.
fn hint_line(look: &Look, view: &View, width: usize, paint: Paint) -> Line<'static> {
    let room = width.saturating_sub(2);
    if view.mode == Mode::Filtering {
        let filter = shortened(&view.filter, room.saturating_sub(30));
        return Line::styled(format!(" /{filter}_  Enter keeps it, Esc ends it"), STRONG);
    }
    if view.mode == Mode::Leaving {
        let words = " End the demo? Its page ends with it. y or q ends it, any other key goes on";
        return Line::styled(shortened(words, room), STRONG);
    }
    if let Some(Said { is_done, words }) = &view.notice {
        let mood = if *is_done { Mood::Good } else { Mood::Bad };
        return Line::styled(format!(" {}", shortened(words, room)), paint.mood(mood));
    }
    let keys = match view.opened() {
        Some(_) => {
            "Esc goes back · arrows scroll · Enter from request to VM and back · ? keys".to_owned()
        }
        None => {
            format!("{} · Tab lists · arrows Enter open · / filters · ? keys", look.picture.hint)
        }
    };
    Line::styled(format!(" {}", shortened(&keys, room)), paint.quiet())
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
        standings(picture, width, paint),
        binds(picture, width.into(), paint),
    ]
}

fn title(picture: &Picture, width: usize, paint: Paint) -> Line<'static> {
    let title = shortened(&picture.title, width.saturating_sub(1));
    let mut used = 1 + title.width();
    let mut line = vec![Span::raw(" "), Span::styled(title, STRONG)];
    for fact in &picture.facts {
        let fact = clean(fact).into_owned();
        let length = fact.width() + 3;
        if used + length <= width {
            used += length;
            line.push(Span::styled(" · ", paint.quiet()));
            line.push(Span::raw(fact));
        }
    }
    line.into()
}

fn standings(picture: &Picture, width: u16, paint: Paint) -> Line<'static> {
    let counts = &picture.counts;
    let mut line = vec![Span::raw(" ")];
    for (number, count) in counts.iter().enumerate() {
        let mood = if count.number == 0 { Mood::Quiet } else { count.mood };
        let words = format!("{} {}", count.number, count.name);
        let used: usize = line.iter().map(Span::width).sum();
        // Half a number would be another one.
        if number > 0 && used + 2 + words.width() > usize::from(width) {
            break;
        }
        if number > 0 {
            line.push(Span::raw("  "));
        }
        line.push(Span::styled(words, paint.mood(mood)));
    }
    if width >= WIDE {
        let part = |count: &Count| Part { amount: count.number, sign: '█', mood: count.mood };
        let busy = counts.iter().filter(|count| count.mood != Mood::Quiet);
        let bar = Bar {
            whole: counts.iter().map(|count| count.number).sum(),
            parts: busy.map(part).collect(),
        };
        let used: usize = line.iter().map(Span::width).sum();
        let curve = spark(&picture.history.samples, SPARK);
        if !curve.is_empty() && usize::from(width) > used + curve.chars().count() + 30 {
            let curve = format!("  waited lately {curve}");
            line.push(Span::styled(curve, paint.mood(Mood::Waiting)));
        }
        let used: usize = used.max(line.iter().map(Span::width).sum());
        line.push(Span::raw("  "));
        line.extend(bar.spans(usize::from(width).saturating_sub(used + 4), paint));
    }
    line.into()
}

/// Minutes of a curve.
const SPARK: usize = 24;

/// How many waited, minute by minute, as blocks of eight heights.
fn spark(samples: &[SampleView], minutes: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let lately = &samples[samples.len().saturating_sub(minutes)..];
    let most = lately.iter().map(|sample| sample.waiting).max().unwrap_or_default();
    if lately.len() < 2 || most == 0 {
        return String::new();
    }
    let height = |waiting: u64| usize::try_from(waiting * 7 / most).unwrap_or_default();
    lately.iter().map(|sample| HEIGHTS[height(sample.waiting)]).collect()
}

/// The one thing that whoever looks should know first.
fn binds(picture: &Picture, width: usize, paint: Paint) -> Line<'static> {
    let overview = &picture.overview;
    let waiting = overview.queue.oldest_waiting_secs.map(Duration::from_secs);
    let waits = waiting.map(|waiting| format!("oldest waits {}", duration_words(waiting)));
    let (words, mood) = match (&overview.what_binds, waits) {
        _ if picture.lost.is_some() => (lost_words(picture.lost.as_ref()), Mood::Bad),
        _ if overview.ready && !overview.needs.is_empty() => (needs_words(overview), Mood::Bad),
        _ if !overview.ready => ("not ready yet: reading what is there".to_owned(), Mood::Waiting),
        (_, waits) if let Some(held) = &picture.steering.held => {
            let waits = waits.map(|waits| format!("; {waits}")).unwrap_or_default();
            (format!("{held}{waits}"), Mood::Bad)
        }
        (Some(binds), Some(waits)) => (format!("{waits}: {binds}"), Mood::Waiting),
        (Some(binds), None) => (binds.clone(), Mood::Waiting),
        (None, Some(waits)) => (waits, Mood::Waiting),
        (None, None) => ("Nothing needs you; nothing waits".to_owned(), Mood::Quiet),
    };
    Line::styled(format!(" {}", shortened(&words, width.saturating_sub(2))), paint.mood(mood))
}

/// How many things need a person, and the most urgent of them. All of it is a key away.
fn needs_words(overview: &Overview) -> String {
    let Some(first) = overview.needs.first() else { return String::new() };
    let number = match overview.needs.len() {
        1 => "1 THING NEEDS".to_owned(),
        number => format!("{number} THINGS NEED"),
    };
    format!("{number} A PERSON (n says more): {}", first.words)
}

fn lost_words(lost: Option<&Lost>) -> String {
    let Some(Lost { since, for_secs, why }) = lost else { return String::new() };
    let lasts = duration_words(Duration::from_secs(*for_secs));
    format!("LINK LOST since {} ({lasts}): {why}; all below is from then", clock_time(*since))
}
