//! Network cards: those that are surplus go, those that differ are moved, those that are missing are added.

use std::sync::Arc;

use roost_vim::wire::types::{
    VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecOperation as Operation, VirtualMachineConfigSpec,
};
use roost_vim::{BackingFile, NetworkBacking, remove_device};

use super::super::places::card_backing;
use super::super::seen::Seen;

/// New devices are named by keys that the server replaces.
const FIRST_KEY: i32 = -500;

/// A card that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedNic {
    pub(crate) network: Arc<NetworkBacking>,
    /// Its address, if it must have a certain one.
    pub(crate) mac: Option<String>,
    /// vSphere's class of the card, where somebody said which; a card that is there is kept as it is otherwise.
    pub(crate) class: Option<String>,
}

/// vSphere's class of a card, by the type of an interface.
pub(crate) fn card_class(type_: &str) -> Option<&'static str> {
    Some(match type_ {
        "VMXNet3" => "VirtualVmxnet3",
        "SRIOV" => "VirtualSriovEthernetCard",
        "E1000" => "VirtualE1000",
        "E1000e" => "VirtualE1000e",
        "VMXNet2" => "VirtualVmxnet2",
        "PCNet32" => "VirtualPCNet32",
        _ => return None,
    })
}

pub(super) fn differences(wanted: &[WantedNic], seen: &Seen, spec: &mut VirtualMachineConfigSpec) {
    let cards: Vec<&VirtualDevice> = seen.nics().collect();
    // Removals first: a place that gets free may be taken.
    let surplus = cards.iter().skip(wanted.len());
    spec.device_change.extend(surplus.map(|card| remove_device(card, BackingFile::Keep)));
    for (index, wanted) in wanted.iter().enumerate() {
        match cards.get(index) {
            Some(card) => spec.device_change.extend(moved(card, wanted)),
            None => spec.device_change.push(new_card(wanted, key(index))),
        }
    }
}

fn key(index: usize) -> i32 {
    FIRST_KEY - i32::try_from(index).unwrap_or_default()
}

/// Cards for a VM that has none.
pub(crate) fn new_cards(wanted: &[WantedNic]) -> Vec<VirtualDeviceConfigSpec> {
    wanted.iter().enumerate().map(|(index, wanted)| new_card(wanted, key(index))).collect()
}

/// Cards for a clone, whose template has these.
pub(crate) fn cards_for_clone(
    wanted: &[WantedNic],
    template: &[VirtualDevice],
) -> Vec<VirtualDeviceConfigSpec> {
    let surplus = template.iter().skip(wanted.len());
    let mut all: Vec<_> = surplus.map(|card| remove_device(card, BackingFile::Keep)).collect();
    for (index, wanted) in wanted.iter().enumerate() {
        let is_kind =
            |card: &&VirtualDevice| wanted.class.as_ref().is_none_or(|class| *class == card.class);
        match template.get(index) {
            Some(card) if !is_kind(&card) => {
                all.push(remove_device(card, BackingFile::Keep));
                all.push(new_card(wanted, key(index)));
            }
            Some(card) => {
                let mut moved = roost_vim::move_nic(card, &wanted.network);
                set_mac(&mut moved.device, wanted);
                all.push(moved);
            }
            None => all.push(new_card(wanted, key(index))),
        }
    }
    all
}

fn new_card(wanted: &WantedNic, key: i32) -> VirtualDeviceConfigSpec {
    let mut device = VirtualDevice {
        key,
        backing: card_backing(&wanted.network),
        ..VirtualDevice::of(wanted.class.as_deref().unwrap_or("VirtualVmxnet3"))
    };
    set_mac(&mut device, wanted);
    VirtualDeviceConfigSpec {
        operation: Some(Operation::Add),
        device,
        ..VirtualDeviceConfigSpec::default()
    }
}

fn set_mac(device: &mut VirtualDevice, wanted: &WantedNic) {
    if let Some(mac) = &wanted.mac {
        device.address_type = Some("manual".to_owned());
        device.mac_address = Some(mac.clone());
    }
}

/// `None` if the card is as wanted.
fn moved(card: &VirtualDevice, wanted: &WantedNic) -> Option<VirtualDeviceConfigSpec> {
    let on_network = card_backing(&wanted.network);
    let is_there = same_network(card.backing.as_ref(), on_network.as_ref());
    let has_mac = wanted.mac.as_ref().is_none_or(|mac| {
        card.mac_address.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(mac))
    });
    if is_there && has_mac {
        return None;
    }
    let mut device = card.clone();
    if !is_there {
        device.backing = on_network;
    }
    set_mac(&mut device, wanted);
    Some(VirtualDeviceConfigSpec {
        operation: Some(Operation::Edit),
        device,
        ..VirtualDeviceConfigSpec::default()
    })
}

fn same_network(
    one: Option<&VirtualDeviceBackingInfo>,
    other: Option<&VirtualDeviceBackingInfo>,
) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    match (&one.port, &other.port) {
        (Some(one), Some(other)) => {
            one.switch_uuid == other.switch_uuid && one.portgroup_key == other.portgroup_key
        }
        (None, None) if one.opaque_network_id.is_some() || other.opaque_network_id.is_some() => {
            one.opaque_network_id == other.opaque_network_id
        }
        (None, None) => match (&one.network, &other.network) {
            (Some(one), Some(other)) => one == other,
            _ => one.device_name == other.device_name,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use roost_vim::wire::{MoRef, MoType};

    use super::*;

    fn on(name: &str, mac: Option<&str>) -> WantedNic {
        let network = MoRef::new(MoType::Network, name);
        let network = NetworkBacking::Standard { name: name.into(), network };
        WantedNic { network: Arc::new(network), mac: mac.map(Into::into), class: None }
    }

    #[test]
    fn a_card_is_moved_only_if_its_network_or_address_differs() {
        let card = VirtualDevice {
            key: 4000,
            mac_address: Some("00:50:56:aa:bb:cc".into()),
            ..new_card(&on("a", None), 4000).device
        };
        assert_eq!(moved(&card, &on("a", None)), None);
        assert_eq!(moved(&card, &on("a", Some("00:50:56:AA:BB:CC"))), None);
        let other = moved(&card, &on("b", None)).unwrap().device;
        assert_eq!(
            (other.key, other.mac_address),
            (4000, card.mac_address.clone()),
            "it stays the same card"
        );
        let mac = moved(&card, &on("a", Some("00:50:56:00:00:01"))).unwrap().device;
        assert_eq!(mac.address_type.as_deref(), Some("manual"));
    }

    #[test]
    fn a_clone_keeps_as_many_cards_as_are_wanted() {
        let card = |key| VirtualDevice { key, ..VirtualDevice::of("VirtualE1000") };
        let template = [card(4000), card(4001)];
        let operations = |changes: Vec<VirtualDeviceConfigSpec>| -> Vec<_> {
            changes
                .into_iter()
                .map(|change| (change.operation.unwrap(), change.device.class))
                .collect()
        };
        let (e1000, vmxnet3) = ("VirtualE1000".to_owned(), "VirtualVmxnet3".to_owned());
        assert_eq!(
            operations(cards_for_clone(&[on("a", None)], &template)),
            [(Operation::Remove, e1000.clone()), (Operation::Edit, e1000.clone())]
        );
        assert_eq!(
            operations(cards_for_clone(&[on("a", None), on("b", None)], &template[..1])),
            [(Operation::Edit, e1000.clone()), (Operation::Add, vmxnet3.clone())]
        );
        let other = WantedNic { class: Some(vmxnet3.clone()), ..on("a", None) };
        assert_eq!(
            operations(cards_for_clone(&[other], &template[..1])),
            [(Operation::Remove, e1000), (Operation::Add, vmxnet3)],
            "a card of another type takes its place"
        );
    }
}
