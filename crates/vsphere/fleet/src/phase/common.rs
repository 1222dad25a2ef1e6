//! The phases of the verbs that every door has.
//!
//! Deadlines are what upstream users of these calls have settled on; where they had no limit, what is clearly too long.

use std::time::Duration;

use super::{Phase, PhasePart, PhaseSpec};

impl Phase {
    /// A full clone on a slow datastore takes minutes, a stuck one takes for ever.
    pub const CLONING: Self = Self::new(&PhaseSpec {
        label: "cloning",
        words: "cloning",
        part: PhasePart::Making,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(10),
    });

    /// A machine is made without a template.
    pub const CREATING: Self = Self::new(&PhaseSpec {
        label: "creating",
        words: "creating",
        part: PhasePart::Making,
        usual: Duration::from_secs(10),
        deadline: Duration::from_mins(10),
    });

    /// Disks of a new machine are copied from those of its image.
    pub const COPYING: Self = Self::new(&PhaseSpec {
        label: "copying",
        words: "copying",
        part: PhasePart::Making,
        usual: Duration::from_mins(2),
        deadline: Duration::from_hours(1),
    });

    /// An image or ISO is put where the machine can boot it.
    pub const UPLOADING: Self = Self::new(&PhaseSpec {
        label: "uploading",
        words: "uploading",
        part: PhasePart::Making,
        usual: Duration::from_mins(2),
        deadline: Duration::from_mins(15),
    });

    /// Name, size, devices or settings are changed.
    pub const RECONFIGURING: Self = Self::new(&PhaseSpec {
        label: "reconfiguring",
        words: "reconfiguring",
        part: PhasePart::Making,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(2),
    });

    /// The guest's name and network are set.
    pub const CUSTOMISING: Self = Self::new(&PhaseSpec {
        label: "customising",
        words: "customising",
        part: PhasePart::Making,
        usual: Duration::from_secs(10),
        deadline: Duration::from_mins(5),
    });

    pub const POWERING_ON: Self = Self::new(&PhaseSpec {
        label: "powering-on",
        words: "powering on",
        part: PhasePart::Starting,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(2),
    });

    pub const RESETTING: Self = Self::new(&PhaseSpec {
        label: "resetting",
        words: "resetting",
        part: PhasePart::Starting,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(2),
    });

    /// From power until programs can be started in the guest.
    pub const BOOTING: Self = Self::new(&PhaseSpec {
        label: "booting",
        words: "booting",
        part: PhasePart::Starting,
        usual: Duration::from_mins(1),
        deadline: Duration::from_mins(3),
    });

    pub const WAITING_FOR_ADDRESS: Self = Self::new(&PhaseSpec {
        label: "waiting-for-address",
        words: "waiting for address",
        part: PhasePart::Starting,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(3),
    });

    /// A program runs in the guest.
    pub const IN_GUEST: Self = Self::new(&PhaseSpec {
        label: "in-guest",
        words: "running a program",
        part: PhasePart::Preparing,
        usual: Duration::from_secs(10),
        deadline: Duration::from_mins(5),
    });

    /// The guest was asked to shut down.
    pub const SHUTTING_DOWN: Self = Self::new(&PhaseSpec {
        label: "shutting-down",
        words: "shutting down",
        part: PhasePart::Ending,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(5),
    });

    pub const POWERING_OFF: Self = Self::new(&PhaseSpec {
        label: "powering-off",
        words: "powering off",
        part: PhasePart::Ending,
        usual: Duration::from_secs(5),
        deadline: Duration::from_mins(10),
    });

    pub const SUSPENDING: Self = Self::new(&PhaseSpec {
        label: "suspending",
        words: "suspending",
        part: PhasePart::Ending,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(10),
    });

    pub const SNAPSHOTTING: Self = Self::new(&PhaseSpec {
        label: "snapshotting",
        words: "taking a snapshot",
        part: PhasePart::Working,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(15),
    });

    pub const REVERTING: Self = Self::new(&PhaseSpec {
        label: "reverting",
        words: "going back to a snapshot",
        part: PhasePart::Working,
        usual: Duration::from_secs(30),
        deadline: Duration::from_mins(15),
    });

    /// Its disks are merged, which copies all that was written since.
    pub const REMOVING_SNAPSHOT: Self = Self::new(&PhaseSpec {
        label: "removing-snapshot",
        words: "removing a snapshot",
        part: PhasePart::Working,
        usual: Duration::from_mins(1),
        deadline: Duration::from_hours(1),
    });

    /// A linked clone gets disks of its own.
    pub const PROMOTING: Self = Self::new(&PhaseSpec {
        label: "promoting",
        words: "promoting its disks",
        part: PhasePart::Working,
        usual: Duration::from_mins(5),
        deadline: Duration::from_hours(1),
    });

    /// A template is made of it.
    pub const TEMPLATING: Self = Self::new(&PhaseSpec {
        label: "templating",
        words: "becoming a template",
        part: PhasePart::Ending,
        usual: Duration::from_secs(10),
        deadline: Duration::from_mins(15),
    });

    pub const DESTROYING: Self = Self::new(&PhaseSpec {
        label: "destroying",
        words: "destroying",
        part: PhasePart::Ending,
        usual: Duration::from_secs(10),
        deadline: Duration::from_mins(10),
    });

    /// In the order of a machine's life.
    pub const COMMON: [Self; 20] = [
        Self::CLONING,
        Self::CREATING,
        Self::COPYING,
        Self::UPLOADING,
        Self::RECONFIGURING,
        Self::CUSTOMISING,
        Self::POWERING_ON,
        Self::RESETTING,
        Self::BOOTING,
        Self::WAITING_FOR_ADDRESS,
        Self::IN_GUEST,
        Self::SHUTTING_DOWN,
        Self::POWERING_OFF,
        Self::SUSPENDING,
        Self::SNAPSHOTTING,
        Self::REVERTING,
        Self::REMOVING_SNAPSHOT,
        Self::PROMOTING,
        Self::TEMPLATING,
        Self::DESTROYING,
    ];
}
