use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use roost_console::views::{JobState, JobView};

use super::pick::Row;
use super::table::{Cell, Column, left, right};
use super::words::span;

/// How a job stands. One that waits for somebody else, or will get no worker as it is, does not wait for this service, though CDS says that it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    Waiting,
    Starting,
    Running,
    Refused,
    Skipped,
    Ended,
}

impl Standing {
    pub(super) const ALL: [Self; 6] =
        [Self::Waiting, Self::Starting, Self::Running, Self::Refused, Self::Skipped, Self::Ended];

    pub(crate) fn of(job: &JobView) -> Self {
        match (job.state, job.verdict.as_ref().map(|said| said.verdict.as_str())) {
            (JobState::Waiting, Some("refused")) => Self::Refused,
            (JobState::Waiting, Some("skipped")) => Self::Skipped,
            (JobState::Waiting, _) => Self::Waiting,
            (JobState::Starting, _) => Self::Starting,
            (JobState::Running, _) => Self::Running,
            (JobState::Ended, _) => Self::Ended,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
            Self::Ended => "ended",
        }
    }
}

impl Row<9> for JobView {
    const NONE: &'static str = "no jobs";
    const IS_TIMED: bool = false;

    fn columns() -> [Column; 9] {
        [
            left("JOB").narrows(12, 8),
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
            Standing::of(self).as_str().into(),
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
        let key = |job: &Self| (Standing::of(job), Reverse(job.waited_secs));
        key(self).cmp(&key(other)).then_with(|| self.id.cmp(&other.id))
    }
}
