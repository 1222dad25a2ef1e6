//! Pods to microVMs: what is wanted, what is there, and the one step between them.

mod bring_up;
mod host;
mod plan;
mod post_clone;
mod probe;
mod reconciler;
mod retire;
mod start;
mod status;
mod table;
mod vm_watch;
mod work;

pub(crate) use self::host::{Host, Limits};
pub use self::probe::{NoPinger, Pinger};
pub(crate) use self::reconciler::PodReconciler;
pub(crate) use self::start::take_stock;
pub use self::start::{OrphanPolicy, StartupError};
pub(crate) use self::vm_watch::follow_vms;
pub(crate) use self::work::Shop;
