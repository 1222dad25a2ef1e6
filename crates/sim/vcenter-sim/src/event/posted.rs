use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::types::{Event, EventArgument};
use roost_vim_wire::{Element, MoRef, MoType};

/// An event as it is kept; the wire form is made when it is read.
#[derive(Debug, Clone)]
pub(crate) struct Posted {
    pub class: &'static str,
    pub key: i32,
    pub chain: i32,
    pub time: Timestamp,
    pub user: Arc<str>,
    /// The objects it is about, by their names at the time.
    pub arguments: Vec<Argument>,
    pub message: String,
    /// Set for events of VMs.
    pub template: Option<bool>,
    pub rest: Vec<Element>,
    /// Where the object it is most about was, for filters by folder after the object is gone.
    pub place: Option<MoRef>,
}

#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub name: Arc<str>,
    pub obj: MoRef,
}

impl Argument {
    /// `{name, <reference>}`, with the reference's element called after its kind.
    pub(crate) fn wire(&self) -> EventArgument {
        let mut wire =
            EventArgument { name: self.name.as_ref().into(), ..EventArgument::default() };
        let slot = match &self.obj.kind {
            MoType::Datacenter => &mut wire.datacenter,
            MoType::ComputeResource | MoType::ClusterComputeResource => &mut wire.compute_resource,
            MoType::Folder | MoType::StoragePod => &mut wire.folder,
            MoType::ResourcePool | MoType::VirtualApp => &mut wire.resource_pool,
            MoType::HostSystem => &mut wire.host,
            MoType::Datastore => &mut wire.datastore,
            MoType::Network | MoType::DistributedVirtualPortgroup => &mut wire.network,
            MoType::VmwareDistributedVirtualSwitch => &mut wire.dvs,
            _ => &mut wire.vm,
        };
        *slot = Some(self.obj.clone());
        wire
    }
}

impl Posted {
    fn argument(&self, base: &str) -> Option<EventArgument> {
        self.arguments.iter().find(|argument| argument.obj.kind.is_a(base)).map(Argument::wire)
    }

    pub(crate) fn wire(&self, without_message: bool) -> Event {
        Event {
            key: self.key,
            chain_id: self.chain,
            created_time: self.time,
            user_name: self.user.as_ref().into(),
            datacenter: self.argument("Datacenter"),
            compute_resource: self.argument("ComputeResource"),
            host: self.argument("HostSystem"),
            vm: self.argument("VirtualMachine"),
            ds: self.argument("Datastore"),
            net: self.argument("Network"),
            dvs: self.argument("DistributedVirtualSwitch"),
            full_formatted_message: (!without_message).then(|| self.message.clone()),
            change_tag: None,
            template: self.template,
            rest: self.rest.clone(),
            ..Event::of(self.class)
        }
    }
}
