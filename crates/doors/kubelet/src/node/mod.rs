//! The node that pods are bound to: its object, its lease, and what it says about itself.

mod keep;
mod object;
mod resources;

pub(crate) use self::keep::{LEASE_NAMESPACE, NodeError, NodeKeeper, Trouble};
pub use self::resources::ResourceOverrides;
pub(crate) use self::resources::Resources;
