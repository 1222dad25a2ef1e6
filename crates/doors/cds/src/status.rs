use serde::{Deserialize, Serialize};

/// Where a job of either protocol is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum JobStatus {
    Blocked,
    #[default]
    Waiting,
    /// A hatchery took the job and its worker is not there yet (V2).
    Scheduling,
    Building,
    Retrying,
    Success,
    Fail,
    Stopped,
    Cancelled,
    Skipped,
    /// A word that this program does not know.
    #[serde(other)]
    Unknown,
}

impl JobStatus {
    /// Whether nothing will happen to the job any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Success | Self::Fail | Self::Stopped | Self::Cancelled | Self::Skipped => true,
            Self::Blocked
            | Self::Waiting
            | Self::Scheduling
            | Self::Building
            | Self::Retrying
            | Self::Unknown => false,
        }
    }
}

/// What a worker does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WorkerStatus {
    #[default]
    Waiting,
    Building,
    Disabled,
    Registering,
    /// Of former versions.
    Checking,
    /// Started and not registered yet; a hatchery's own word, the API never says it.
    Pending,
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_versions_are_read_as_unknown() {
        let read = |text| serde_json::from_str::<JobStatus>(text).unwrap();
        assert_eq!(read(r#""Scheduling""#), JobStatus::Scheduling);
        assert_eq!(read(r#""Never Built""#), JobStatus::Unknown);
        assert!(JobStatus::Stopped.is_final() && !JobStatus::Unknown.is_final());
        let worker: WorkerStatus = serde_json::from_str(r#""Sleeping""#).unwrap();
        assert_eq!(worker, WorkerStatus::Unknown);
    }
}
