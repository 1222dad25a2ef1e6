//! The last decisions, in words.

use ratatui::text::{Line, Span};
use roost_console::views::DecisionView;

use super::Mood;
use super::draw::heading;
use super::paint::Paint;
use super::words::{clock_time, shortened};

const VERDICT: usize = 9;
const TIME: usize = 8;

pub(super) fn lines(
    recent: &[DecisionView],
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let mut lines = vec![heading("last decisions", width, paint)];
    let room = height.saturating_sub(lines.len());
    let newest = &recent[recent.len().saturating_sub(room)..];
    lines.extend(newest.iter().map(|decision| line(decision, width, paint)));
    lines
}

fn line(decision: &DecisionView, width: usize, paint: Paint) -> Line<'static> {
    let name = subject_words(decision);
    let times =
        if decision.times > 1 { format!(" ({} times)", decision.times) } else { String::new() };
    let words = format!("{} {name}: {}{times}", decision.subject_kind.as_str(), decision.reason);
    let room = width.saturating_sub(TIME + VERDICT + 5);
    Line::from(vec![
        Span::styled(format!(" {} ", clock_time(decision.at)), paint.quiet()),
        Span::styled(format!(" {:<VERDICT$} ", decision.verdict), paint.mood(mood(decision))),
        Span::raw(shortened(&words, room)),
    ])
}

fn mood(decision: &DecisionView) -> Mood {
    match decision.verdict.as_str() {
        "spawned" | "adopted" | "finished" => Mood::Good,
        "deferred" | "released" => Mood::Waiting,
        "refused" | "failed" => Mood::Bad,
        "deleted" => Mood::Busy,
        _ => Mood::Quiet,
    }
}

/// What a decision is about, in one word. Of a job's long id the first part tells it from others on a screen.
pub(crate) fn subject_words(decision: &DecisionView) -> &str {
    let name = decision.subject_name.as_deref().unwrap_or(&decision.subject);
    name.split('-').next().filter(|_| is_uuid(name)).unwrap_or(name)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.chars().all(|char| char.is_ascii_hexdigit() || char == '-')
}
