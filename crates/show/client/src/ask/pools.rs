use std::cmp::Ordering;

use jiff::Timestamp;
use roost_views::PoolView;

use super::pick::{Row, own_cells, own_columns};
use super::table::{Cell, Column, left, right};

impl Row for PoolView {
    const NONE: &'static str = "no pools: every VM is cloned when it is wanted";

    fn columns(rows: &[&Self]) -> Vec<Column> {
        let mut columns = vec![left("POOL").narrows(9, 8)];
        columns.extend(own_columns(rows.first().map(|row| &row.facts), 4));
        columns.extend([
            left("TEMPLATE").narrows(2, 8).goes(3),
            right("WANTED"),
            right("READY"),
            right("COMING").goes(7),
            right("IN USE").goes(6),
            right("MISSING"),
            left("WAITS FOR").narrows(1, 20).narrows(8, 9),
        ]);
        columns
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn cells(&self, _: Timestamp) -> Vec<Cell> {
        let mut cells = vec![self.name.as_str().into()];
        cells.extend(own_cells(&self.facts));
        cells.extend([
            self.template.as_deref().into(),
            self.wanted.into(),
            self.ready.into(),
            self.coming.into(),
            self.in_use.into(),
            self.missing.into(),
            self.waiting.as_deref().into(),
        ]);
        cells
    }

    fn usual(&self, other: &Self) -> Ordering {
        (&self.name, &self.size).cmp(&(&other.name, &other.size))
    }
}
