use serde::{Deserialize, Serialize};

use crate::{LimitView, Unit};

/// One condition that something was weighed against. It passes while `have + need` stays within `limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateView {
    pub name: String,
    pub passed: bool,
    pub need: Option<u64>,
    pub have: Option<u64>,
    /// `None` for a condition that is no amount.
    pub limit: Option<LimitView>,
    pub note: Option<String>,
    /// What it asks, from the door that declared it.
    #[serde(default)]
    pub words: Option<String>,
}

impl GateView {
    /// What its amounts count.
    pub fn unit(&self) -> Unit {
        match self.name.as_str() {
            "memory" | "memory-reserve" | "pool-memory" => Unit::Mebibytes,
            "pool-cpu" => Unit::Megahertz,
            _ => Unit::Pieces,
        }
    }

    /// The key of the configuration that sets its limit. A gate that a door explains itself is no gate of the core, also if it has the name of one.
    pub fn setting(&self) -> Option<&'static str> {
        if self.words.is_some() {
            return None;
        }
        Some(match self.name.as_str() {
            "workers" => "maxWorker",
            "pending" => "maxConcurrentProvisioning",
            "registering" => "maxConcurrentRegistering",
            "cpus" => "maxCpus",
            "memory" => "maxMemoryMB",
            "cpu-reserve" | "memory-reserve" => "countSmallerFlavorToKeep",
            "address" => "iprange",
            _ => return None,
        })
    }

    /// What it asks, for those who do not know it by name: the door's own words, or those of the core's gates.
    pub fn asks(&self) -> Option<&str> {
        self.words.as_deref().or_else(|| of_core(&self.name))
    }
}

fn of_core(gate: &str) -> Option<&'static str> {
    Some(match gate {
        "request" => "no VM serves it yet",
        "workers" => "VMs at work at the same time",
        "pending" => "VMs that have not reported for work yet",
        "registering" => "VMs that register a model at the same time",
        "pool-cpu" => "CPU of the vSphere resource pool",
        "pool-memory" => "memory of the vSphere resource pool",
        "cpus" => "CPUs of all VMs of ours, spares too",
        "memory" => "memory of all VMs of ours, spares too",
        "cpu-reserve" => "CPUs, with some left for others",
        "memory-reserve" => "memory, with some left for others",
        "address" => "an address to give",
        "paused" => "no person has paused new VMs",
        "views" => "both servers were read whole and lately",
        "own" => "it is ours",
        "sightings" => "seen twice",
        "grace" => "grace period over",
        "budget" => "deletions in a minute",
        "freeze" => "the guard has not frozen deletions",
        "held" => "no person has frozen deletions",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(name: &str, words: Option<&str>) -> GateView {
        GateView {
            name: name.into(),
            passed: true,
            need: None,
            have: None,
            limit: None,
            note: None,
            words: words.map(Into::into),
        }
    }

    #[test]
    fn a_gate_that_a_person_closed_says_so() {
        // It was explained as "nobody is at work on it", while it means that a person has frozen deletions.
        assert_eq!(gate("held", None).asks(), Some("no person has frozen deletions"));
        assert_eq!(gate("held", Some("own words")).asks(), Some("own words"));
        assert_eq!(gate("unheard-of", None).asks(), None);
        assert_eq!(gate("pool-cpu", None).unit(), Unit::Megahertz);
        assert_eq!(gate("address", None).setting(), Some("iprange"));
        assert_eq!(gate("address", Some("its guest has one")).setting(), None, "a pod's");
    }
}
