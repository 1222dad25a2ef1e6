use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::{Amounts, Quota};
use crate::address::Network;
use crate::{Forecast, Gate, PoolId, RequestId, VmId};

/// What one request wants, all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What may have one machine and no second one. Its door's limits and addresses are the ones that count.
    pub request: RequestId,
    /// What the VM will be called, by which it is recognised when it appears.
    pub name: Option<Arc<str>>,
    pub amounts: Amounts,
    /// The resource pool that it will run in.
    pub pool: Option<PoolId>,
    pub machine: Machine,
}

/// Where the machine comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machine {
    /// One of these spares, the first that nobody else has.
    Spare { candidates: Vec<VmId> },
    /// A new one.
    Fresh { address: AddressNeed },
    /// A spare if one is left, otherwise a new one.
    SpareOrFresh { candidates: Vec<VmId>, address: AddressNeed },
}

/// Whether a new machine needs an address of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressNeed {
    FromPlan,
    /// It asks a DHCP server.
    Dhcp,
}

/// An address that was promised, with what the guest must be told about its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressGrant {
    pub address: Ipv4Addr,
    pub network: Arc<Network>,
}

/// What a VM takes, as the door that counts it sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holding {
    /// Whether it is this door's. Only such a VM is taken for the one that a reservation waits for.
    pub own: bool,
    /// The request that it serves, by the door's own id.
    pub request: Option<Arc<str>>,
    /// Nothing for a VM that is not counted: a stranger's, one that is off.
    pub amounts: Amounts,
    /// When it will be gone at the latest, if that is known.
    pub ends: Option<Timestamp>,
}

/// Everything that an [`Ask`] is weighed against, in the order in which the first failure is the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerGate {
    Request,
    /// One of the quotas that the door declared.
    Quota(Quota),
    PoolCpu,
    PoolMemory,
    Cpus,
    Memory,
    CpuReserve,
    MemoryReserve,
    Address,
    Spare,
}

impl LedgerGate {
    /// Those that every door has. Quotas come after the request, in the order in which their door declared them.
    pub const COMMON: [Self; 9] = [
        Self::Request,
        Self::PoolCpu,
        Self::PoolMemory,
        Self::Cpus,
        Self::Memory,
        Self::CpuReserve,
        Self::MemoryReserve,
        Self::Address,
        Self::Spare,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Quota(quota) => quota.name,
            Self::PoolCpu => "pool-cpu",
            Self::PoolMemory => "pool-memory",
            Self::Cpus => "cpus",
            Self::Memory => "memory",
            Self::CpuReserve => "cpu-reserve",
            Self::MemoryReserve => "memory-reserve",
            Self::Address => "address",
            Self::Spare => "spare",
        }
    }
}

impl Serialize for LedgerGate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Why nothing was reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{}", self.words())]
pub struct Refusal {
    pub request: RequestId,
    /// All of them, also those that passed.
    pub gates: Vec<Gate>,
    /// The first that did not.
    pub bound_by: LedgerGate,
    /// When the addresses are the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Box<Forecast>>,
}

impl Refusal {
    fn words(&self) -> String {
        match self.gates.iter().find(|gate| gate.name == self.bound_by.as_str()) {
            Some(gate) => gate.to_string(),
            None => self.bound_by.as_str().into(),
        }
    }
}
