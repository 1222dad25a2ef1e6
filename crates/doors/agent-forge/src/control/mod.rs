//! The three controllers: AgentMachines become VsphereAgents, VsphereAgents become VMs, pools watch over both.

mod conditions;
mod demand;
mod error;
mod freeze;
mod hold;
mod jobs;
mod pool;
mod region;
mod vm;
mod world;

pub(crate) use conditions::{INFRA_ENV, ISO, READY, VSPHERE};
pub(crate) use demand::{DemandReconciler, Room, room};
pub(crate) use pool::PoolReconciler;
pub(crate) use vm::VmReconciler;
pub use world::may_use;
pub(crate) use world::{World, lock};

use roost_controller::Key;

pub(crate) fn jobs_of_vms() -> jobs::Jobs<Key, vm::VmEnded> {
    jobs::Jobs::default()
}

pub(crate) fn jobs_of_pools() -> jobs::Jobs<region::RegionKey, pool::PoolWork> {
    jobs::Jobs::default()
}
