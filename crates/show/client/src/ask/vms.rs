use std::cmp::Ordering;

use jiff::Timestamp;
use roost_views::VmView;

use super::pick::{Row, own_cells, own_columns};
use super::table::{Cell, Column, left, right};
use super::words::{memory, secs_since, span};

impl Row for VmView {
    const NONE: &'static str = "no VMs";

    fn columns(rows: &[&Self]) -> Vec<Column> {
        let mut columns = vec![
            left("NAME").narrows(4, 30).narrows(14, 16),
            left("KIND"),
            left("PHASE").narrows(11, 8),
            right("SINCE").goes(10),
            left("FOR").narrows(7, 8).goes(12),
        ];
        columns.extend(own_columns(rows.first().map(|row| &row.facts), 5));
        columns.extend([
            right("CPUS").goes(3),
            right("MEMORY").goes(3),
            left("ADDRESS").goes(9),
            left("POWER").goes(2),
            right("AGE").goes(13),
            left("FATE").narrows(1, 16).goes(4),
        ]);
        columns
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let ago =
            |then: Option<Timestamp>| Cell::number(then.map(|then| secs_since(now, then)), span);
        let phase = self.phase.as_ref();
        let mut cells = vec![
            self.name.as_str().into(),
            self.kind.as_str().into(),
            phase.map(|phase| phase.words.as_str()).into(),
            ago(phase.and_then(|phase| phase.since)),
            self.request.as_ref().map(|request| request.id.as_str()).into(),
        ];
        cells.extend(own_cells(&self.facts));
        cells.extend([
            Cell::number(self.cpus, |cpus| cpus.to_string()),
            Cell::number(self.memory_mb, memory),
            self.address.as_deref().into(),
            self.power.as_str().into(),
            ago(self.created),
            self.fate.as_deref().into(),
        ]);
        cells
    }

    /// Workers first, then what is to become one, then what leaves.
    fn usual(&self, other: &Self) -> Ordering {
        (self.kind, &self.name).cmp(&(other.kind, &other.name))
    }
}
