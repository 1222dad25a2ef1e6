//! A pool watches over its VMs: phases, Agents, ISO, clean-up.

mod apply;
mod buffer;
mod cleanup;
mod hints;
mod isos;
mod prepare;
mod reconcile;
mod show;

pub(crate) use prepare::PoolWork;
pub(crate) use reconcile::PoolReconciler;
