use std::sync::Arc;

use roost_vim_wire::MoRef;

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
}

#[derive(Debug, Clone)]
pub(crate) struct Switch {
    pub name: Arc<str>,
    pub parent: MoRef,
    pub uuid: String,
    pub port_groups: Vec<MoRef>,
    pub hosts: Vec<MoRef>,
}
