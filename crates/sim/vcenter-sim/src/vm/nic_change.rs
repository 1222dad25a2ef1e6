//! Network cards: which network, which address.

use roost_vim_wire::types::VirtualDevice;

use crate::call::Failure;
use crate::vm::fault::device_fault;
use crate::vm::{Draft, Mac, network_ref};
use crate::world::World;

/// Completes a card that is added. Returns its address.
pub(super) fn prepare(
    world: &mut World,
    draft: &Draft,
    device: &mut VirtualDevice,
    index: usize,
) -> Result<Mac, Failure> {
    resolve_backing(world, device, index)?;
    if device.class == "VirtualEthernetCard" {
        // The base class alone says nothing about the card.
        device.class = "VirtualE1000".into();
    }
    device.wake_on_lan_enabled.get_or_insert(true);
    let asked = device.mac_address.take().filter(|text| !text.is_empty());
    let is_manual =
        device.address_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("manual"));
    let Some(text) =
        asked.filter(|_| is_manual || device.address_type.is_none() && !draft.is_clone)
    else {
        device.address_type = Some("assigned".into());
        return Ok(world.inventory.next_mac());
    };
    device.address_type = Some("manual".into());
    Mac::parse(&text)
        .ok_or_else(|| device_fault("InvalidDeviceSpec", index, "macAddress", "it is no address"))
}

/// Checks that the network behind a card is there, and completes what the request left out.
pub(super) fn resolve_backing(
    world: &World,
    device: &mut VirtualDevice,
    index: usize,
) -> Result<(), Failure> {
    let invalid =
        |message: &str| Err(device_fault("InvalidDeviceBacking", index, "backing", message));
    let Some(backing) = &mut device.backing else {
        return invalid("a network adapter needs a network");
    };
    if let Some(port) = &backing.port {
        let group = port.portgroup_key.as_deref().map(network_ref);
        let group = group
            .and_then(|group| world.inventory.networks.get(&group))
            .and_then(|row| row.port_group.as_ref());
        let Some(group) = group else { return invalid("the port group does not exist") };
        let switch = world.inventory.switches.get(&group.switch);
        if group.is_uplink || switch.is_none_or(|switch| switch.uuid != port.switch_uuid) {
            return invalid("the port group cannot be used");
        }
        return Ok(());
    }
    let by_name = || {
        let name = backing.device_name.as_deref().unwrap_or_default();
        let mut all = world.inventory.networks.iter();
        all.find(|(_, row)| *row.name == *name && row.port_group.is_none())
            .map(|(moref, _)| moref.clone())
    };
    let network = match &backing.network {
        Some(network) if world.inventory.networks.contains(network) => Some(network.clone()),
        Some(_) => None,
        None => by_name(),
    };
    let Some(network) = network else { return invalid("the network does not exist") };
    backing.device_name = world.inventory.name(&network).map(Into::into);
    backing.network = Some(network);
    Ok(())
}
