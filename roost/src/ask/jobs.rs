use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use roost_console::views::JobView;

use super::pick::Row;
use super::table::{Cell, Column, left, right};
use super::words::span;

impl Row<9> for JobView {
    const NONE: &'static str = "no jobs";
    const IS_TIMED: bool = false;

    fn columns() -> [Column; 9] {
        [
            left("JOB"),
            left("STATE"),
            right("WAITED"),
            left("PROJECT").narrows(3, 8).goes(6),
            left("WORKFLOW").narrows(2, 10).goes(5),
            left("MODEL").narrows(4, 8).goes(8),
            left("FLAVOR").goes(7),
            left("VM").narrows(9, 12).goes(10),
            left("WHY").narrows(1, 30).narrows(11, 12),
        ]
    }

    fn cells(&self, _: Timestamp) -> [Cell; 9] {
        let why =
            self.verdict.as_ref().map(|verdict| format!("{}: {}", verdict.verdict, verdict.reason));
        [
            self.id.as_str().into(),
            self.state.as_str().into(),
            Cell::number(self.waited_secs, span),
            self.project.as_deref().into(),
            self.workflow.as_deref().into(),
            self.model.as_deref().into(),
            self.flavor.as_deref().into(),
            self.vm.as_deref().into(),
            why.as_deref().into(),
        ]
    }

    /// Those that wait first, and of those the ones that wait longest.
    fn usual(&self, other: &Self) -> Ordering {
        let key = |job: &Self| (job.state, Reverse(job.waited_secs));
        key(self).cmp(&key(other)).then_with(|| self.id.cmp(&other.id))
    }
}
