//! Decisions in words.

use roost_views::DecisionView;
use roost_views::words::short_id;

/// What a decision is about, in one word. Of a long id the first part tells it from others on a screen.
pub fn subject_words(decision: &DecisionView) -> &str {
    short_id(decision.subject_name.as_deref().unwrap_or(&decision.subject))
}
