use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::Basis;
use crate::{Freshness, Gate, VmId};

/// A VM that somebody would like to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub vm: VmId,
    pub name: Arc<str>,
    /// Whose it is by its claim, as the mirror has it.
    pub owner: Option<Arc<str>>,
    pub basis: Basis,
    /// In a few words, for people.
    pub why: Cow<'static, str>,
}

/// What the candidates were found in.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The mirror.
    pub inventory: &'a Freshness,
    /// The side that wants VMs: what a server or a cluster wants.
    pub demand: &'a Freshness,
    /// How many VMs are ours in all.
    pub own_vms: usize,
}

/// What is to be done with one candidate, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub vm: VmId,
    pub name: Arc<str>,
    pub basis: Basis,
    pub why: Cow<'static, str>,
    pub outcome: Outcome,
    /// What it was weighed against.
    pub gates: Vec<Gate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Delete it now. Said again for the same VM until it is no candidate any more; it counts once.
    Delete,
    /// Not yet; not before this time, if that is known.
    Wait { until: Option<Timestamp> },
    /// Not on this evidence.
    Refused,
    /// Not before a person has looked.
    Frozen,
}

impl Verdict {
    pub(super) fn new(
        candidate: &Candidate,
        basis: Basis,
        outcome: Outcome,
        gates: Vec<Gate>,
    ) -> Self {
        Self {
            vm: candidate.vm.clone(),
            name: Arc::clone(&candidate.name),
            basis,
            why: candidate.why.clone(),
            outcome,
            gates,
        }
    }

    pub fn is_delete(&self) -> bool {
        self.outcome == Outcome::Delete
    }

    /// The first gate that did not pass.
    pub fn bound_by(&self) -> Option<&Gate> {
        self.gates.iter().find(|gate| !gate.passed)
    }
}

/// What was seen of a candidate so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sighting {
    pub basis: Basis,
    pub first: Timestamp,
    pub last: Timestamp,
    /// Only those on views of both sides that are newer than at the one before.
    pub times: u32,
    /// How old the views were at the last of them.
    pub inventory_as_of: Timestamp,
    pub demand_as_of: Timestamp,
}

/// Why nothing is deleted until a person has looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Freeze {
    pub since: Timestamp,
    pub basis: Basis,
    /// What would have been deleted within the minute.
    pub wanted: u64,
    pub allowed: u64,
    pub own_vms: usize,
    pub vms: BTreeSet<VmId>,
}

impl Freeze {
    /// What was too much.
    pub fn finding(&self) -> String {
        let Self { basis, wanted, allowed, own_vms, .. } = self;
        let basis = basis.as_str();
        format!("{wanted} of {own_vms} VMs would go as {basis} within a minute, {allowed} may")
    }
}

impl fmt::Display for Freeze {
    /// Says the way out as well: whoever reads this is the person it waits for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "deletion is frozen since {:.0}: {}; a person must approve them or have everything looked at anew",
            self.since,
            self.finding()
        )
    }
}

/// What a person found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// The VMs that the freeze names are to go.
    Approve,
    /// Something was wrong and is corrected; everything is looked at anew.
    StartOver,
}
