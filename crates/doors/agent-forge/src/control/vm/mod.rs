//! A VsphereAgent becomes a VM.

mod apply;
mod plan;
mod reconcile;
mod work;

pub(crate) use reconcile::VmReconciler;
pub(crate) use work::VmEnded;
