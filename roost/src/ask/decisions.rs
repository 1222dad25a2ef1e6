use jiff::Timestamp;
use roost_console::views::DecisionView;

use super::table::{Table, left, right};
use super::words::{or_dash, since};

/// Newest last, where the eye is when a command has ended.
pub(super) fn render<'a>(
    decisions: impl IntoIterator<Item = &'a DecisionView>,
    now: Timestamp,
    width: Option<usize>,
) -> Vec<String> {
    let mut table = Table::new([
        right("AGE"),
        left("SUBJECT").narrows(5, 20).narrows(8, 12),
        left("VERDICT"),
        left("BOUND BY").goes(6),
        right("TIMES").goes(4),
        left("REASON").narrows(2, 40).narrows(7, 16),
        left("NEXT LOOK").narrows(1, 12).goes(3),
    ]);
    let mut decisions = decisions.into_iter().peekable();
    if decisions.peek().is_none() {
        return vec!["no decisions".to_owned()];
    }
    for decision in decisions {
        table.row([
            since(now, decision.at),
            subject(decision),
            decision.verdict.clone(),
            or_dash(decision.bound_by.as_deref()),
            decision.times.to_string(),
            decision.reason.clone(),
            or_dash(decision.next_look.as_deref()),
        ]);
    }
    table.render(width)
}

fn subject(decision: &DecisionView) -> String {
    let name = decision.subject_name.as_ref().unwrap_or(&decision.subject);
    format!("{} {name}", decision.subject_kind.as_str())
}
