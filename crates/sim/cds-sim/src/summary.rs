use roost_cds::JobStatus;
use serde::Serialize;

use crate::api::CdsApi;
use crate::history::{JobEvent, JobReport};

/// Where all jobs are. A job is in one of the first five.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// No worker executes it yet, whether or not a hatchery has it.
    pub waiting: usize,
    pub running: usize,
    /// Ended well.
    pub done: usize,
    /// Ended in any other way.
    pub failed: usize,
    /// A fault removed it.
    pub vanished: usize,
    /// How often two workers were alive for one job.
    pub double_workers: usize,
}

impl CdsApi {
    pub fn summary(&self) -> Summary {
        let mut summary =
            Summary { double_workers: self.double_workers().len(), ..Summary::default() };
        for job in self.jobs() {
            *summary.place_of(&job) += 1;
        }
        summary
    }
}

impl Summary {
    fn place_of(&mut self, job: &JobReport) -> &mut usize {
        if job.history.iter().any(|entry| entry.event == JobEvent::Vanished) {
            return &mut self.vanished;
        }
        match job.status {
            JobStatus::Building => &mut self.running,
            JobStatus::Success => &mut self.done,
            status if status.is_final() => &mut self.failed,
            _ => &mut self.waiting,
        }
    }

    /// Jobs that something may still happen to.
    pub fn open(&self) -> usize {
        self.waiting + self.running
    }
}
