use jiff::Timestamp;
use roost_cds::{JobId, JobStatus};
use serde::Serialize;

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JobEvent {
    Queued,
    /// V1: a hatchery holds it.
    Booked {
        hatchery: String,
    },
    /// V2: a hatchery took it.
    Taken {
        hatchery: String,
    },
    /// A hatchery gave it back.
    Released {
        hatchery: String,
    },
    /// V2: the API took it back because no worker came.
    SchedulingTimedOut {
        hatchery: String,
    },
    WorkerSignedIn {
        worker: String,
    },
    /// A worker began to execute it.
    WorkerTook {
        worker: String,
    },
    /// A worker of it signed out, died or was disabled.
    WorkerGone {
        worker: String,
    },
    Ended {
        status: JobStatus,
        reason: String,
    },
    /// A fault removed it.
    Vanished,
}

/// An event and when it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    pub at: Timestamp,
    pub event: JobEvent,
}

/// What is known about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    pub id: JobId,
    pub status: JobStatus,
    /// V1: who holds it now. V2: who took it.
    pub hatchery: Option<String>,
    pub history: Vec<HistoryEntry>,
    /// What hatcheries wrote into its log.
    pub infos: Vec<String>,
}

impl JobReport {
    fn named<'a>(&'a self, pick: impl Fn(&'a JobEvent) -> Option<&'a String> + 'a) -> Vec<&'a str> {
        self.history.iter().filter_map(|entry| pick(&entry.event)).map(String::as_str).collect()
    }

    /// Every worker that signed in for it, in order.
    pub fn workers(&self) -> Vec<&str> {
        self.named(|event| match event {
            JobEvent::WorkerSignedIn { worker } => Some(worker),
            _ => None,
        })
    }

    /// Every worker that began to execute it, in order.
    pub fn executions(&self) -> Vec<&str> {
        self.named(|event| match event {
            JobEvent::WorkerTook { worker } => Some(worker),
            _ => None,
        })
    }

    /// Who booked (V1) or took (V2) it, in order.
    pub fn holders(&self) -> Vec<&str> {
        self.named(|event| match event {
            JobEvent::Booked { hatchery } | JobEvent::Taken { hatchery } => Some(hatchery),
            _ => None,
        })
    }

    /// Who gave it back, in order.
    pub fn releases(&self) -> Vec<&str> {
        self.named(|event| match event {
            JobEvent::Released { hatchery } => Some(hatchery),
            _ => None,
        })
    }

    /// From queued to the first worker at work.
    pub fn waited(&self) -> Option<jiff::SignedDuration> {
        let queued = self.history.first()?.at;
        let took = |entry: &&HistoryEntry| matches!(entry.event, JobEvent::WorkerTook { .. });
        Some(self.history.iter().find(took)?.at.duration_since(queued))
    }
}

/// Two workers were signed in for one job at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubleWorker {
    pub at: Timestamp,
    pub job: JobId,
    pub workers: [String; 2],
    /// The hatcheries that started them. Two V1 hatcheries may book one job by an unlucky moment, and only one of the
    /// workers gets it then; one hatchery must never start two.
    pub hatcheries: [String; 2],
}

impl DoubleWorker {
    pub fn is_of_one_hatchery(&self) -> bool {
        self.hatcheries[0] == self.hatcheries[1]
    }
}
