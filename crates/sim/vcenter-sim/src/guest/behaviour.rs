use std::net::IpAddr;

use crate::options::Credentials;

/// How a guest behaves from its next boot on. A template's is inherited by its clones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestBehaviour {
    /// Whether its operating system ever comes up.
    pub boots: bool,
    /// Whether it finds a system on the network when no disk and no image has one.
    pub boots_from_network: bool,
    /// Whether its tools ever run; without them there is no address and there are no guest operations.
    pub starts_tools: bool,
    /// Whether guest operations ever become ready.
    pub becomes_ready: bool,
    pub address: AddressBehaviour,
    /// Why customization fails, if it does.
    pub customization_fails: Option<String>,
    /// Whether it follows a request to shut down, reboot or stand by.
    pub obeys: bool,
    /// Who may run programs in it; unset accepts any user and password that are not empty.
    pub credentials: Option<Credentials>,
}

/// Which address the guest reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressBehaviour {
    /// What customization or DHCP gave it.
    #[default]
    Assigned,
    Never,
    /// Another one, such as that of the template it came from.
    Wrong(IpAddr),
}

impl Default for GuestBehaviour {
    fn default() -> Self {
        Self {
            boots: true,
            boots_from_network: false,
            starts_tools: true,
            becomes_ready: true,
            address: AddressBehaviour::Assigned,
            customization_fails: None,
            obeys: true,
            credentials: None,
        }
    }
}
