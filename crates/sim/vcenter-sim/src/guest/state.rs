use std::net::IpAddr;
use std::sync::Arc;

use roost_vim_wire::types::GuestInfoCustomizationInfo;

/// What a VM's tools report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guest {
    /// Counts boots: what was set up for an earlier one finds another number and does nothing.
    pub boot: u32,
    pub tools: ToolsState,
    /// `guestOperationsReady`
    pub is_ready: bool,
    pub host_name: Option<Arc<str>>,
    pub addresses: Vec<GuestAddress>,
    pub customization: Option<Arc<GuestInfoCustomizationInfo>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ToolsState {
    #[default]
    NotRunning,
    ExecutingScripts,
    Running,
}

impl ToolsState {
    pub(crate) fn running_status(self) -> &'static str {
        match self {
            Self::NotRunning => "guestToolsNotRunning",
            Self::ExecutingScripts => "guestToolsExecutingScripts",
            Self::Running => "guestToolsRunning",
        }
    }
}

/// An address of one card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuestAddress {
    /// The device key of the card.
    pub device: i32,
    pub ip: IpAddr,
    pub prefix: u8,
    pub is_static: bool,
}

impl Guest {
    /// The address that `guest.ipAddress` shows.
    pub(crate) fn primary(&self) -> Option<IpAddr> {
        self.addresses.first().map(|address| address.ip)
    }
}
