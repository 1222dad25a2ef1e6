//! What must be true, asked of the simulators and not of the hatchery.
//!
//! [`Truth`] looks at every moment (five seconds apart); [`at_rest`] asks what must hold once demand and faults have ended.

mod at_rest;
mod moment;
mod note;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_cds_sim::CdsApi;
use roost_clock::{Clock, SimClock};
use roost_fleet::{Limit, Limits};
use roost_vcenter_sim::Vcenter;
use roost_vim::wire::MoRef;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::guests::Guests;
use super::setup::Setup;
use super::world::World;

pub(crate) use moment::MISREPORTED;
pub(crate) use note::{Note, Notes};

const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// What no run may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Invariant {
    /// No job has two workers, and no two VMs that could become its workers.
    OneWorkerPerJob,
    /// No VM is launched twice.
    OneLaunchPerVm,
    /// No address belongs to two VMs.
    OneVmPerAddress,
    WithinLimits,
    /// VMs of strangers and of other hatcheries are left alone.
    OthersUntouched,
    /// No VM is taken from under a worker that does its work.
    WorkUndisturbed,
    /// After demand has ended there are the spares and nothing else.
    NothingLeft,
    /// Each job has ended, or the hatchery can say why not.
    EveryJobExplained,
    /// When nothing is wrong any more, jobs that can be served are.
    EveryJobServed,
    NoPanic,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) invariant: Invariant,
    pub(crate) at: Timestamp,
    pub(crate) words: String,
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.at.duration_since(SimClock::EPOCH).as_secs();
        write!(f, "{:?} after {since} s: {}", self.invariant, self.words)
    }
}

/// What a hatchery's file allows it.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) limits: Limits,
    /// How many spares of which template.
    pub(super) spares: BTreeMap<String, u64>,
}

/// Looks on until it is dropped.
pub(crate) struct Truth {
    shared: Arc<Mutex<Seen>>,
    looking: AbortHandle,
}

pub(super) struct Seen {
    vcenter: Vcenter,
    cds: CdsApi,
    clock: Arc<SimClock>,
    guests: Guests,
    expected: BTreeMap<String, Expected>,
    /// VMs that are off may share an address: another program made them.
    only_addresses_in_use: bool,
    notes: Notes,
    /// Whose each VM was when it was first seen.
    owners: BTreeMap<MoRef, String>,
    /// Workers that CDS has known.
    registered: BTreeSet<String>,
    /// Workers that were not disabled when CDS was last asked, and when that was.
    alive: BTreeMap<String, Timestamp>,
    /// VMs that were marked for deletion before CDS knew their workers.
    marked: BTreeSet<String>,
    /// Launches that were looked at already.
    launches: usize,
    launched: BTreeSet<String>,
    violations: Vec<Violation>,
    told: BTreeSet<(Invariant, String)>,
}

impl Truth {
    pub(crate) fn watch(world: &World) -> Self {
        let seen = Seen {
            vcenter: world.vcenter.clone(),
            cds: world.cds.clone(),
            clock: Arc::clone(&world.clock),
            guests: world.guests.clone(),
            expected: BTreeMap::new(),
            only_addresses_in_use: false,
            notes: Notes::default(),
            owners: BTreeMap::new(),
            registered: BTreeSet::new(),
            alive: BTreeMap::new(),
            marked: BTreeSet::new(),
            launches: 0,
            launched: BTreeSet::new(),
            violations: Vec::new(),
            told: BTreeSet::new(),
        };
        let shared = Arc::new(Mutex::new(seen));
        let looker = Arc::clone(&shared);
        let looking = tokio::spawn(async move {
            loop {
                looker.lock().unwrap().look();
                sleep(BETWEEN_LOOKS).await;
            }
        });
        Self { shared, looking: looking.abort_handle() }
    }

    /// Holds a hatchery to its file from now on.
    pub(crate) fn expect_of(&mut self, setup: &Setup) {
        let config = setup.load();
        let mut spares = BTreeMap::new();
        for pool in &config.provisioning.pools {
            *spares.entry(pool.kind.model.to_string()).or_default() += u64::from(pool.number);
        }
        let expected = Expected { limits: config.ledger_limits(), spares };
        self.shared.lock().unwrap().expected.insert(setup.name().to_owned(), expected);
    }

    /// For a world that has VMs which share addresses while they are off.
    pub(crate) fn counts_only_addresses_in_use(&self) {
        self.shared.lock().unwrap().only_addresses_in_use = true;
    }

    /// Looks now.
    pub(crate) fn look(&self) {
        self.shared.lock().unwrap().look();
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.shared.lock().unwrap().violations.clone()
    }
}

impl Drop for Truth {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl Seen {
    /// Once for each thing that is wrong, not for each look at it.
    fn accuse(&mut self, invariant: Invariant, whom: impl Into<String>, words: impl Into<String>) {
        if self.told.insert((invariant, whom.into())) {
            let (at, words) = (self.clock.now(), words.into());
            self.violations.push(Violation { invariant, at, words });
        }
    }
}

fn exceeds(limit: Limit, number: u64) -> bool {
    !limit.allows(number)
}
