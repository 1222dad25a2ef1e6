//! Decisions in words.

use roost_console::views::DecisionView;

use super::Mood;

pub(super) fn mood(decision: &DecisionView) -> Mood {
    match decision.verdict.as_str() {
        "spawned" | "adopted" | "finished" => Mood::Good,
        "deferred" | "released" => Mood::Waiting,
        "refused" | "failed" => Mood::Bad,
        "deleted" | "steered" => Mood::Busy,
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
