//! What the hatchery is to the fleet: its name, what it counts, and the phases of its own.

use std::time::Duration;

use roost_cds::JobId;
use roost_fleet::{DoorName, Phase, PhasePart, PhaseSpec, Quota, RequestId, Subject};

pub const HATCHERY: DoorName = DoorName::new("hatchery");

pub const WORKERS: Quota = Quota::lasting("workers");
/// Workers that are started and not yet at work.
pub const PENDING: Quota = Quota::passing("pending");
/// Workers that only register a template.
pub const REGISTERING: Quota = Quota::passing("registering");

pub fn request(job: &JobId) -> RequestId {
    HATCHERY.request(job.to_string())
}

/// A job, as what a decision is about.
pub fn about(job: &JobId) -> Subject {
    HATCHERY.about_request(job.to_string())
}

/// Phases that only a worker goes through.
pub mod phase {
    use super::{Duration, Phase, PhasePart, PhaseSpec};

    /// A spare gets its name, annotation and size.
    pub const CLAIMING: Phase = Phase::new(&PhaseSpec {
        label: "claiming",
        words: "claiming a spare",
        part: PhasePart::Making,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(2),
    });

    /// The VM says in its own annotation that it is to be deleted. As long as a failed start may take to clean up behind itself.
    pub const MARKING: Phase = Phase::new(&PhaseSpec {
        label: "marking",
        words: "marking for deletion",
        part: PhasePart::Ending,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(5),
    });

    /// Until a first program has run in the guest.
    pub const PROBING: Phase = Phase::new(&PhaseSpec {
        label: "probing",
        words: "probing the guest",
        part: PhasePart::Preparing,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(1),
    });

    /// The operator's own script runs before the worker.
    pub const PREPARING: Phase = Phase::new(&PhaseSpec {
        label: "preparing",
        words: "preparing",
        part: PhasePart::Preparing,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(5),
    });

    /// The worker's script is started.
    pub const LAUNCHING: Phase = Phase::new(&PhaseSpec {
        label: "launching",
        words: "launching",
        part: PhasePart::Preparing,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(1),
    });

    /// Until CDS knows the worker.
    pub const REGISTERING: Phase = Phase::new(&PhaseSpec {
        label: "registering",
        words: "registering",
        part: PhasePart::Preparing,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(10),
    });

    pub const WORKING: Phase = Phase::new(&PhaseSpec {
        label: "working",
        words: "working",
        part: PhasePart::Working,
        usual: Duration::from_mins(10),
        deadline: Duration::from_hours(2),
    });

    /// All that a worker, a spare or a template may go through, in the order of its life.
    pub const ALL: [Phase; 18] = [
        CLAIMING,
        Phase::CLONING,
        Phase::CREATING,
        Phase::UPLOADING,
        Phase::RECONFIGURING,
        Phase::POWERING_ON,
        Phase::BOOTING,
        Phase::WAITING_FOR_ADDRESS,
        PROBING,
        PREPARING,
        LAUNCHING,
        REGISTERING,
        WORKING,
        MARKING,
        Phase::SHUTTING_DOWN,
        Phase::POWERING_OFF,
        Phase::TEMPLATING,
        Phase::DESTROYING,
    ];
}
