//! Workers as both sides see them: those that CDS knows, those whose VMs run, and where the two disagree.

mod consistency;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use roost_cds::{JobId, Protocol, WorkerStatus, v1, v2};

pub use consistency::{Consistency, Correction};

use crate::names::VmName;

/// One side's list. A list that failed is not an empty list: upstream took it for one and disabled every worker (W3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed<T> {
    Whole(T),
    /// It failed, was cut short or is too old, for this reason.
    Partial(String),
    /// This protocol is not spoken.
    NotSpoken,
}

/// A VM that counts as a worker: ours, no template and no spare (W4, D37).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedVm<'a> {
    pub name: &'a str,
    /// It is marked for deletion, or has finished and waits for it: it starts nothing any more and holds up no one who does.
    pub is_leaving: bool,
}

/// What each side says.
#[derive(Debug, Clone)]
pub struct Views<'a> {
    pub vms: Listed<Vec<StartedVm<'a>>>,
    pub v1: Listed<&'a [v1::Worker]>,
    pub v2: Listed<&'a [v2::Worker]>,
}

/// A side that cannot be counted on now. Nothing is spawned, disabled or deleted meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{side} cannot be counted: {why}")]
pub struct NotWhole {
    pub side: Side,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Vms,
    Workers(Protocol),
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vms => f.write_str("VMs"),
            Self::Workers(protocol) => write!(f, "{protocol} workers"),
        }
    }
}

/// A worker, from whichever side it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolWorker {
    pub status: PoolStatus,
    /// `None` for one that has not registered.
    pub registered: Option<RegisteredAs>,
    pub has_vm: bool,
}

/// How CDS knows a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredAs {
    pub protocol: Protocol,
    pub id: String,
    pub status: WorkerStatus,
    pub job: Option<JobId>,
}

/// What a worker does, in the words of the six gauges, and one of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolStatus {
    Pending,
    Registering,
    Waiting,
    Checking,
    Building,
    Disabled,
    /// Not registered and on its way out.
    Leaving,
}

impl PoolStatus {
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Registering,
        Self::Waiting,
        Self::Checking,
        Self::Building,
        Self::Disabled,
        Self::Leaving,
    ];

    /// Whether it takes a worker's slot.
    pub fn counts(self) -> bool {
        match self {
            Self::Pending | Self::Registering | Self::Waiting | Self::Checking | Self::Building => {
                true
            }
            Self::Disabled | Self::Leaving => false,
        }
    }

    fn of(status: WorkerStatus) -> Self {
        match status {
            WorkerStatus::Pending => Self::Pending,
            WorkerStatus::Registering => Self::Registering,
            WorkerStatus::Waiting => Self::Waiting,
            // A word that we do not know is not nothing: it takes a slot.
            WorkerStatus::Checking | WorkerStatus::Unknown => Self::Checking,
            WorkerStatus::Building => Self::Building,
            WorkerStatus::Disabled => Self::Disabled,
        }
    }
}

/// The union of both sides, from whole lists only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pool {
    workers: BTreeMap<String, PoolWorker>,
    vms: usize,
}

impl Pool {
    pub fn join(views: &Views<'_>) -> Result<Self, NotWhole> {
        let vms = whole(&views.vms, Side::Vms)?;
        let v1 = whole(&views.v1, Side::Workers(Protocol::V1))?;
        let v2 = whole(&views.v2, Side::Workers(Protocol::V2))?;
        let mut pool = Self { workers: BTreeMap::new(), vms: vms.map_or(0, Vec::len) };
        for worker in v1.copied().unwrap_or_default() {
            let job = worker.job_run_id.filter(|id| *id > 0).map(JobId::V1);
            let (id, status) = (worker.id.clone(), worker.status);
            pool.register(&worker.name, RegisteredAs { protocol: Protocol::V1, id, status, job });
        }
        for worker in v2.copied().unwrap_or_default() {
            let job = JobId::parse(&worker.run_job_id);
            let (id, status) = (worker.id.clone(), worker.status);
            pool.register(&worker.name, RegisteredAs { protocol: Protocol::V2, id, status, job });
        }
        vms.into_iter().flatten().for_each(|vm| pool.start(vm));
        Ok(pool)
    }

    fn register(&mut self, name: &str, as_known: RegisteredAs) {
        let status = PoolStatus::of(as_known.status);
        let worker = PoolWorker { status, registered: Some(as_known), has_vm: false };
        self.workers.insert(name.to_owned(), worker);
    }

    fn start(&mut self, vm: &StartedVm<'_>) {
        if let Some(worker) = self.workers.get_mut(vm.name) {
            worker.has_vm = true;
            return;
        }
        let status = if vm.is_leaving {
            PoolStatus::Leaving
        } else if VmName::of(vm.name) == VmName::Registering {
            PoolStatus::Registering
        } else {
            PoolStatus::Pending
        };
        let worker = PoolWorker { status, registered: None, has_vm: true };
        self.workers.insert(vm.name.to_owned(), worker);
    }

    pub fn get(&self, name: &str) -> Option<&PoolWorker> {
        self.workers.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &PoolWorker)> {
        self.workers.iter().map(|(name, worker)| (name.as_str(), worker))
    }

    pub fn count(&self, status: PoolStatus) -> usize {
        self.workers.values().filter(|worker| worker.status == status).count()
    }

    /// Workers that take a slot, held against `maxWorker`.
    pub fn slots_taken(&self) -> usize {
        self.workers.values().filter(|worker| worker.status.counts()).count()
    }

    /// VMs that count as workers: what `/mon/status` shows.
    pub fn started(&self) -> usize {
        self.vms
    }

    /// Workers that CDS knows, has not disabled, and that have no VM.
    pub fn without_vm(&self) -> impl Iterator<Item = (&str, &RegisteredAs)> {
        self.iter().filter_map(|(name, worker)| {
            let registered = worker.registered.as_ref()?;
            let lost = !worker.has_vm && registered.status != WorkerStatus::Disabled;
            lost.then_some((name, registered))
        })
    }
}

fn whole<T>(listed: &Listed<T>, side: Side) -> Result<Option<&T>, NotWhole> {
    match listed {
        Listed::Whole(list) => Ok(Some(list)),
        Listed::NotSpoken => Ok(None),
        Listed::Partial(why) => Err(NotWhole { side, why: why.clone() }),
    }
}
