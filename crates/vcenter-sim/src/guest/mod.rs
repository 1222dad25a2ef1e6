//! What runs inside VMs.

mod behaviour;
mod dhcp;
mod state;

pub use behaviour::{AddressBehaviour, GuestBehaviour};
pub use dhcp::DhcpRange;

pub(crate) use dhcp::Dhcp;
pub(crate) use state::{Guest, GuestAddress, ToolsState};

use crate::options::Options;

/// What a program started in a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GuestMode {
    /// A script of the test.
    #[default]
    Scripted,
    /// A child process on this machine.
    Exec,
}

#[derive(Debug)]
pub(crate) struct Guests {}

impl Guests {
    pub(crate) fn new(_options: &Options) -> Self {
        Self {}
    }
}
