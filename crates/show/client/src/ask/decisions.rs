use std::cmp::Ordering;

use jiff::Timestamp;
use roost_views::DecisionView;

use super::pick::Row;
use super::table::{Cell, Column, left, right};
use super::words::{secs_since, span};

impl Row for DecisionView {
    const NONE: &'static str = "no decisions";
    const IS_LATEST_LAST: bool = true;

    fn columns(_: &[&Self]) -> Vec<Column> {
        vec![
            right("AGE"),
            left("SUBJECT").narrows(5, 20).narrows(8, 12),
            left("VERDICT"),
            left("BOUND BY").goes(6),
            right("TIMES").goes(4),
            left("REASON").narrows(2, 40).narrows(7, 16),
            left("NEXT LOOK").narrows(1, 12).goes(3),
        ]
    }

    fn name(&self) -> String {
        self.seq.to_string()
    }

    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let name = self.subject_name.as_ref().unwrap_or(&self.subject);
        vec![
            Cell::number(Some(secs_since(now, self.at)), span),
            format!("{} {name}", self.subject_kind.as_str()).as_str().into(),
            self.verdict.as_str().into(),
            self.bound_by.as_deref().into(),
            u64::from(self.times).into(),
            self.reason.as_str().into(),
            self.next_look.as_deref().into(),
        ]
    }

    /// Newest last, where the eye is when a command has ended.
    fn usual(&self, other: &Self) -> Ordering {
        self.seq.cmp(&other.seq)
    }
}
