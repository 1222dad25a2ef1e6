//! Pods to microVMs: what is wanted, what is there, and the one step between them.

mod bring_up;
mod cache;
mod checks;
mod history;
mod host;
mod ignored;
mod journal;
mod plan;
mod post_clone;
mod probe;
mod reconciler;
mod retire;
mod shares;
mod start;
mod status;
mod steering;
mod table;
mod vm_watch;
mod windows;
mod work;

pub(crate) use self::cache::SnapshotCache;
pub(crate) use self::history::Passed;
pub(crate) use self::host::{Host, Limits, Strangers};
pub(crate) use self::journal::{DOOR, Journal, NOUN};
pub use self::probe::{NoPinger, Pinger};
pub(crate) use self::reconciler::PodReconciler;
pub(crate) use self::start::take_stock;
pub use self::start::{OrphanPolicy, StartupError};
pub(crate) use self::steering::Steering;
#[cfg(test)]
pub(crate) use self::table::Failure;
pub(crate) use self::table::{Activity, PodTable, PostCloneState, Tracked, Waiting};
pub(crate) use self::vm_watch::{compare_with, follow_vms};
pub(crate) use self::work::PodWork;
