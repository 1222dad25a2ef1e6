use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::Claim;
use super::claim::ExtraConfig;
use crate::{PoolId, RequestId, VmId};

/// A VM or template as it is known now. Rows are shared and never change; a change makes a new one.
#[derive(Debug, Clone)]
pub struct Vm {
    pub id: VmId,
    /// As people see it: `a/b`, where the server's own form is `a%2fb`.
    pub name: Arc<str>,
    /// The folder (or vApp) that it is in.
    pub parent: Option<Arc<str>>,
    /// `None` for a template.
    pub pool: Option<PoolId>,
    pub template: bool,
    /// The BIOS uuid.
    pub uuid: Option<Box<str>>,
    /// For a reconfiguration that must not overwrite a later one. `None` until the server has told it, also for a moment after
    /// our own change: the version before it would only be refused.
    pub change_version: Option<Arc<str>>,
    pub created: Option<Timestamp>,
    pub cpus: u32,
    pub memory_mb: u64,
    pub power: Power,
    pub connection: Connection,
    /// What tools in the guest report. Empty unless the VM is powered on: what is left from the boot before says nothing.
    pub guest: Guest,
    /// Whose it is, if a door has recognised it.
    pub claim: Option<Arc<Claim>>,
    /// Kept only with a claim: other people's notes can be long.
    pub annotation: Option<Arc<str>>,
    /// Read only if a door needs it.
    pub instance_uuid: Option<Box<str>>,
    /// The values that doors need.
    pub(crate) extra_config: Option<Arc<ExtraConfig>>,
    /// An address that the name holds.
    pub name_address: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    On,
    Off,
    Suspended,
    #[default]
    Unknown,
}

/// Whether the server reaches the VM. Anything but `Connected` means that the rest of the row may be old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    Connected,
    Disconnected,
    Orphaned,
    Inaccessible,
    Invalid,
    #[default]
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tools {
    Running,
    ExecutingScripts,
    NotRunning,
    #[default]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guest {
    /// Whether programs can be started in it.
    pub operations_ready: bool,
    pub tools: Tools,
    /// The one that the server calls primary.
    pub address: Option<IpAddr>,
    pub host_name: Option<Arc<str>>,
    pub nics: Box<[GuestNic]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestNic {
    /// The key of the NIC's device; negative for one that is no device of the VM.
    pub device: i32,
    pub mac: Box<str>,
    pub connected: bool,
    pub addresses: Box<[IpAddr]>,
}

impl Vm {
    pub(crate) fn unknown(id: VmId) -> Self {
        Self {
            id,
            name: "".into(),
            parent: None,
            pool: None,
            template: false,
            uuid: None,
            change_version: None,
            created: None,
            cpus: 0,
            memory_mb: 0,
            power: Power::default(),
            connection: Connection::default(),
            guest: Guest::default(),
            claim: None,
            annotation: None,
            instance_uuid: None,
            extra_config: None,
            name_address: None,
        }
    }

    pub fn owner(&self) -> Option<&Arc<str>> {
        self.claim.as_ref().map(|claim| &claim.owner)
    }

    /// The request that it serves, by its door's own id.
    pub fn request(&self) -> Option<&Arc<str>> {
        self.claim.as_ref()?.request.as_ref()
    }

    pub fn request_id(&self) -> Option<RequestId> {
        self.claim.as_ref()?.request_id()
    }

    /// A value of `extraConfig`, for a key that a door said it needs.
    pub fn extra_config(&self, key: &str) -> Option<&str> {
        self.extra_config.as_ref()?.get(key).map(|value| &**value)
    }

    pub fn is_on(&self) -> bool {
        self.power == Power::On
    }

    /// Every address that it has, was given or will have, each once. None for a template, which only remembers.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let mut all = Vec::new();
        if self.template {
            return all;
        }
        let given = self.claim.as_ref().and_then(|claim| claim.address);
        let reported = self.guest.nics.iter().flat_map(|nic| nic.addresses.iter().copied());
        for address in
            given.into_iter().chain(self.name_address).chain(self.guest.address).chain(reported)
        {
            if is_told_apart(address) && !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    /// Whether the row says the same, as far as anyone can see.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        // A claim depends on what is compared here, and on nothing else.
        self.claim.is_some() == other.claim.is_some()
            && self.annotation == other.annotation
            && self.instance_uuid == other.instance_uuid
            && self.extra_config == other.extra_config
            && self.name == other.name
            && self.parent == other.parent
            && self.pool == other.pool
            && self.template == other.template
            && self.uuid == other.uuid
            && self.change_version == other.change_version
            && self.created == other.created
            && self.cpus == other.cpus
            && self.memory_mb == other.memory_mb
            && self.power == other.power
            && self.connection == other.connection
            && self.guest == other.guest
    }
}

/// Every host has loopback and link-local addresses of its own.
fn is_told_apart(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_link_local() || v4.is_unspecified()),
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified()),
    }
}

impl From<&str> for Power {
    fn from(text: &str) -> Self {
        match text {
            "poweredOn" => Self::On,
            "poweredOff" => Self::Off,
            "suspended" => Self::Suspended,
            _ => Self::Unknown,
        }
    }
}

impl From<&str> for Connection {
    fn from(text: &str) -> Self {
        match text {
            "connected" => Self::Connected,
            "disconnected" => Self::Disconnected,
            "orphaned" => Self::Orphaned,
            "inaccessible" => Self::Inaccessible,
            "invalid" => Self::Invalid,
            _ => Self::Unknown,
        }
    }
}

impl From<&str> for Tools {
    fn from(text: &str) -> Self {
        match text {
            "guestToolsRunning" => Self::Running,
            "guestToolsExecutingScripts" => Self::ExecutingScripts,
            "guestToolsNotRunning" => Self::NotRunning,
            _ => Self::Unknown,
        }
    }
}
