use jiff::Timestamp;
use roost_vim_wire::MoRef;
use serde::Serialize;

use crate::guest::{Guests, REMEMBERED};
use crate::inventory::uuid_text;
use crate::vm::{Device, Mac};
use crate::world::World;

/// What a VM booted: for stand-ins of what would run inside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GuestBoot {
    /// The VM's name.
    pub vm: String,
    /// Of the machine, as its firmware shows it.
    pub uuid: String,
    pub instance_uuid: String,
    /// The addresses of its cards, in their order.
    pub macs: Vec<String>,
    /// The image, as `[LocalDS_0] iso/boot.iso`; unset where a disk or the network was booted.
    pub iso: Option<String>,
    /// Text, because it is shown.
    pub at: String,
}

impl Guests {
    pub(crate) fn boots(&self) -> impl Iterator<Item = &GuestBoot> {
        self.boots.iter()
    }
}

pub(super) fn record(world: &mut World, vm: &MoRef, now: Timestamp) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    let macs = row.config.nics().filter_map(Device::mac);
    let boot = GuestBoot {
        vm: row.name.to_string(),
        uuid: uuid_text(row.uuid),
        instance_uuid: uuid_text(row.instance_uuid),
        macs: macs.map(|mac: Mac| mac.to_string()).collect(),
        iso: row.boot_image(world).map(Into::into),
        at: now.to_string(),
    };
    let boots = &mut world.guests.boots;
    if boots.len() == REMEMBERED {
        boots.pop_front();
    }
    boots.push_back(boot);
}
