use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use roost_views::RequestView;

use super::pick::{Row, own_cells, own_columns};
use super::table::{Cell, Column, left, right};
use super::words::span;

impl Row for RequestView {
    const NONE: &'static str = "no requests";

    fn columns(rows: &[&Self]) -> Vec<Column> {
        let (noun, group) =
            rows.first().map_or(("request", "project"), |row| (&row.noun, &row.group));
        let mut columns = vec![
            left(noun.to_uppercase()).narrows(12, 8),
            left("STATE"),
            right("WAITED"),
            left("RAN").goes(8),
            left(group.to_uppercase()).narrows(4, 8).goes(7),
        ];
        columns.extend(own_columns(rows.first().map(|row| &row.facts), 3));
        columns.push(left("VM").narrows(9, 12).goes(10));
        columns.push(left("WHY").narrows(1, 30).narrows(11, 12));
        columns
    }

    fn name(&self) -> String {
        self.id.id.clone()
    }

    fn cells(&self, _: Timestamp) -> Vec<Cell> {
        let said = self.verdict.as_ref();
        let why = said.map(|said| format!("{}: {}", said.verdict.as_str(), said.reason));
        let mut cells = vec![
            self.id.id.as_str().into(),
            self.state.as_str().into(),
            Cell::number(self.waited_secs, span),
            ran(self).as_deref().into(),
            self.project.as_deref().into(),
        ];
        cells.extend(own_cells(&self.facts));
        cells.push(self.vm.as_deref().into());
        cells.push(why.as_deref().into());
        cells
    }

    /// Those that wait first, and of those the ones that wait longest.
    fn usual(&self, other: &Self) -> Ordering {
        // What is over: the newest first.
        let ended = |request: &Self| {
            let ended = request.outcome.as_ref().and_then(|outcome| outcome.ended);
            Reverse(ended.or(request.queued).filter(|_| !request.is_open()))
        };
        let waited = |request: &Self| Reverse(request.waited_secs.filter(|_| request.is_open()));
        let key = |request: &Self| (request.state, ended(request), waited(request));
        key(self).cmp(&key(other)).then_with(|| self.id.cmp(&other.id))
    }
}

/// How long, and with which result.
fn ran(request: &RequestView) -> Option<String> {
    let outcome = request.outcome.as_ref()?;
    Some(match outcome.ran_secs {
        Some(ran) => format!("{} {}", span(ran), outcome.result),
        None => outcome.result.clone(),
    })
}
