//! The node that pods are bound to: its object, its lease, and what it says about itself.

mod keep;
mod object;
mod resources;

pub(crate) use self::keep::{NodeError, NodeKeeper, Trouble};
pub use self::resources::Resources;
