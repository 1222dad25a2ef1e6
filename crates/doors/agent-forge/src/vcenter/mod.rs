//! The vCenters of the pools: logins from Secrets, where VMs go, and how ours are known.

mod hardware;
mod login;
mod make;
mod marker;
mod place;
mod sites;

pub use hardware::{HardwareError, hardware};
pub use login::{Login, LoginError};
pub(crate) use make::observe;
pub use make::{Made, MakeError, MakeVm, dress, make_vm};
pub use marker::{FORGE, ForgeVms, MACHINES, Marker};
pub use place::{Place, PlaceError, place};
pub use sites::{Connect, Connecting, Site, SiteState, Sites};
