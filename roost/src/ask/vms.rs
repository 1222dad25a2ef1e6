use std::cmp::Ordering;

use jiff::Timestamp;
use roost_console::views::VmView;

use super::pick::Row;
use super::table::{Cell, Column, left, right};
use super::words::{memory, secs_since, span};

impl Row<13> for VmView {
    const NONE: &'static str = "no VMs";
    const IS_TIMED: bool = true;

    fn columns() -> [Column; 13] {
        [
            left("NAME").narrows(4, 30).narrows(14, 16),
            left("KIND"),
            left("PHASE").narrows(11, 8),
            right("SINCE").goes(10),
            left("JOB").narrows(7, 8).goes(12),
            left("MODEL").narrows(6, 8).goes(8),
            left("FLAVOR").goes(5),
            right("CPUS").goes(3),
            right("MEMORY").goes(3),
            left("ADDRESS").goes(9),
            left("POWER").goes(2),
            right("AGE").goes(13),
            left("FATE").narrows(1, 16).goes(4),
        ]
    }

    fn cells(&self, now: Timestamp) -> [Cell; 13] {
        let ago =
            |then: Option<Timestamp>| Cell::number(then.map(|then| secs_since(now, then)), span);
        [
            self.name.as_str().into(),
            self.kind.as_str().into(),
            self.phase.as_deref().or(self.worker_status.as_deref()).into(),
            ago(self.phase_since),
            self.job.as_deref().into(),
            self.model.as_deref().or(self.template.as_deref()).into(),
            self.flavor.as_deref().into(),
            Cell::number(self.cpus, |cpus| cpus.to_string()),
            Cell::number(self.memory_mb, memory),
            self.address.as_deref().into(),
            self.power.as_str().into(),
            ago(self.created),
            self.fate.as_deref().into(),
        ]
    }

    /// Workers first, then what is to become one, then what leaves.
    fn usual(&self, other: &Self) -> Ordering {
        (self.kind, &self.name).cmp(&(other.kind, &other.name))
    }
}
