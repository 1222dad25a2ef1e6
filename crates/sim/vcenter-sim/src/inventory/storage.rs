use std::sync::Arc;

use roost_vim_wire::{Element, MoRef};

/// What a datastore is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatastoreKind {
    Vmfs,
    /// It names top-level directories itself.
    Vsan,
}

impl DatastoreKind {
    /// As the `type` of a summary says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vmfs => "VMFS",
            Self::Vsan => "vsan",
        }
    }
}

/// A datastore. Its files are in the [`Store`](crate::store::Store).
#[derive(Debug, Clone)]
pub(crate) struct Datastore {
    pub name: Arc<str>,
    pub parent: MoRef,
    pub datacenter: MoRef,
    pub browser: MoRef,
    pub url: String,
    pub capacity: i64,
    pub accessible: bool,
    pub maintenance: bool,
    pub kind: DatastoreKind,
    pub hosts: Vec<MoRef>,
}

#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub name: Arc<str>,
    pub parent: MoRef,
    pub hosts: Vec<MoRef>,
    pub port_group: Option<PortGroup>,
}

/// What makes a network a distributed port group. Its key is the id of its reference, as on vCenter.
#[derive(Debug, Clone)]
pub(crate) struct PortGroup {
    pub switch: MoRef,
    pub is_uplink: bool,
    pub config: PortGroupConfig,
}

/// What an administrator may change about a port group.
#[derive(Debug, Clone)]
pub(crate) struct PortGroupConfig {
    pub ports: i32,
    pub vlan: i32,
    pub binding: String,
}

impl Default for PortGroupConfig {
    fn default() -> Self {
        Self { ports: 128, vlan: 0, binding: "earlyBinding".into() }
    }
}

impl PortGroupConfig {
    /// Takes over what a `DVPortgroupConfigSpec` sets.
    pub(crate) fn apply(&mut self, spec: &Element) {
        let child = |element: &Element, name: &str| {
            element.children.iter().find(|child| child.name == name).cloned()
        };
        if let Some(ports) = child(spec, "numPorts").and_then(|ports| ports.text.parse().ok()) {
            self.ports = ports;
        }
        if let Some(binding) = child(spec, "type").filter(|binding| !binding.text.is_empty()) {
            self.binding = binding.text;
        }
        let vlan = child(spec, "defaultPortConfig")
            .and_then(|config| child(&config, "vlan"))
            .and_then(|vlan| child(&vlan, "vlanId"))
            .and_then(|id| id.text.parse().ok());
        self.vlan = vlan.unwrap_or(self.vlan);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Switch {
    pub name: Arc<str>,
    pub parent: MoRef,
    pub uuid: String,
    pub port_groups: Vec<MoRef>,
    pub hosts: Vec<MoRef>,
    pub config: SwitchConfig,
}

/// What an administrator may choose about a switch.
#[derive(Debug, Clone)]
pub(crate) struct SwitchConfig {
    pub version: String,
    pub max_mtu: Option<i32>,
    /// The protocol and whether it listens or advertises.
    pub discovery: Option<(String, String)>,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self { version: "8.0.0".into(), max_mtu: Some(1500), discovery: None }
    }
}
