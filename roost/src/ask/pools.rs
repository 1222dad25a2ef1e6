use std::cmp::Ordering;

use jiff::Timestamp;
use roost_console::views::PoolView;

use super::pick::Row;
use super::table::{Cell, Column, left, right};

impl Row<9> for PoolView {
    const NONE: &'static str = "no pools: every worker is cloned when its job comes";
    const IS_TIMED: bool = false;

    fn columns() -> [Column; 9] {
        [
            left("MODEL").narrows(9, 8),
            left("FLAVOR").narrows(4, 6).goes(5),
            left("TEMPLATE").narrows(2, 8).goes(3),
            right("WANTED"),
            right("READY"),
            right("COMING").goes(7),
            right("IN USE").goes(6),
            right("MISSING"),
            left("WAITS FOR").narrows(1, 20).narrows(8, 9),
        ]
    }

    fn cells(&self, _: Timestamp) -> [Cell; 9] {
        [
            self.model.as_str().into(),
            self.flavor.as_deref().into(),
            self.template.as_deref().into(),
            self.wanted.into(),
            self.ready.into(),
            self.coming.into(),
            self.in_use.into(),
            self.missing.into(),
            self.waiting.as_deref().into(),
        ]
    }

    fn usual(&self, other: &Self) -> Ordering {
        (&self.model, &self.flavor).cmp(&(&other.model, &other.flavor))
    }
}
