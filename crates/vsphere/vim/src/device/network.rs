use std::str::FromStr;

use roost_vim_wire::types::{
    DistributedVirtualSwitchPortConnection, VirtualDevice, VirtualDeviceBackingInfo,
    VirtualDeviceConfigSpec,
};
use roost_vim_wire::{MoRef, MoType, Value};

use super::edit;
use crate::{CallError, Observer, Remedy};

/// The network card that a guest sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Card {
    E1000,
    E1000e,
    Vmxnet2,
    /// Fast, and known to any Linux of this decade.
    #[default]
    Vmxnet3,
    PcNet32,
    Sriov,
}

impl Card {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::E1000 => "VirtualE1000",
            Self::E1000e => "VirtualE1000e",
            Self::Vmxnet2 => "VirtualVmxnet2",
            Self::Vmxnet3 => "VirtualVmxnet3",
            Self::PcNet32 => "VirtualPCNet32",
            Self::Sriov => "VirtualSriovEthernetCard",
        }
    }
}

/// Not one of the six names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no network card; there are e1000, e1000e, vmxnet2, vmxnet3, pcnet32 and sriov")]
pub struct UnknownCard(String);

/// By govmomi's names.
impl FromStr for Card {
    type Err = UnknownCard;

    fn from_str(name: &str) -> Result<Self, UnknownCard> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "e1000" => Self::E1000,
            "e1000e" => Self::E1000e,
            "vmxnet2" => Self::Vmxnet2,
            "vmxnet3" => Self::Vmxnet3,
            "pcnet32" => Self::PcNet32,
            "sriov" => Self::Sriov,
            _ => return Err(UnknownCard(name.into())),
        })
    }
}

/// A network as a card is put on it. Read once with [`Observer::network_backing`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkBacking {
    Standard { name: String, network: MoRef },
    Distributed { switch_uuid: String, portgroup_key: String },
    Opaque { id: String, kind: String },
}

impl NetworkBacking {
    pub(crate) fn to_wire(&self) -> VirtualDeviceBackingInfo {
        match self {
            Self::Standard { name, network } => VirtualDeviceBackingInfo {
                device_name: Some(name.clone()),
                network: Some(network.clone()),
                ..VirtualDeviceBackingInfo::of("VirtualEthernetCardNetworkBackingInfo")
            },
            Self::Distributed { switch_uuid, portgroup_key } => VirtualDeviceBackingInfo {
                port: Some(DistributedVirtualSwitchPortConnection {
                    switch_uuid: switch_uuid.clone(),
                    portgroup_key: Some(portgroup_key.clone()),
                    ..Default::default()
                }),
                ..VirtualDeviceBackingInfo::of(
                    "VirtualEthernetCardDistributedVirtualPortBackingInfo",
                )
            },
            Self::Opaque { id, kind } => VirtualDeviceBackingInfo {
                opaque_network_id: Some(id.clone()),
                opaque_network_type: Some(kind.clone()),
                ..VirtualDeviceBackingInfo::of("VirtualEthernetCardOpaqueNetworkBackingInfo")
            },
        }
    }
}

/// A card to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNic {
    pub card: Card,
    pub network: NetworkBacking,
}

impl NewNic {
    /// Without a MAC address, so that the server gives one.
    pub(crate) fn device(&self, key: i32) -> VirtualDevice {
        VirtualDevice {
            key,
            backing: Some(self.network.to_wire()),
            ..VirtualDevice::of(self.card.class())
        }
    }
}

/// Puts a card that exists on another network. The card keeps its class and its place; its MAC address is left out, so that
/// a clone does not take over the template's.
pub fn move_nic(card: &VirtualDevice, network: &NetworkBacking) -> VirtualDeviceConfigSpec {
    let mut card = VirtualDevice {
        device_info: None,
        backing: Some(network.to_wire()),
        address_type: None,
        mac_address: None,
        ..card.clone()
    };
    // The port on an NSX network that belongs to the template.
    card.rest.retain(|element| element.name != "externalId");
    edit(card)
}

/// Why a network cannot be used for a card.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("{network} is no network that a card can be put on")]
    Kind { network: MoRef },
    #[error("{network} has no {property}")]
    Incomplete { network: MoRef, property: &'static str },
    #[error("reading network {network}")]
    Read { network: MoRef, source: CallError },
}

impl NetworkError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Kind { .. } | Self::Incomplete { .. } => Remedy::GiveUp,
            Self::Read { source, .. } => source.remedy(),
        }
    }
}

impl Observer {
    /// What a card needs to know of a network, by the kind of the network.
    pub async fn network_backing(&self, network: &MoRef) -> Result<NetworkBacking, NetworkError> {
        let lacks = |property| NetworkError::Incomplete { network: network.clone(), property };
        let failed = |source| NetworkError::Read { network: network.clone(), source };
        match &network.kind {
            MoType::Network => {
                let read = self.properties(network, &["name"]).await.map_err(failed)?;
                let name = read.str("name").ok_or_else(|| lacks("name"))?.to_owned();
                Ok(NetworkBacking::Standard { name, network: network.clone() })
            }
            MoType::DistributedVirtualPortgroup => {
                const SWITCH: &str = "config.distributedVirtualSwitch";
                let read = self.properties(network, &["key", SWITCH]).await.map_err(failed)?;
                let portgroup_key = read.str("key").ok_or_else(|| lacks("key"))?.to_owned();
                let switch = read.moref(SWITCH).ok_or_else(|| lacks(SWITCH))?;
                let read = self.properties(switch, &["uuid"]).await.map_err(failed)?;
                let switch_uuid = read.str("uuid").ok_or_else(|| lacks("switch uuid"))?.to_owned();
                Ok(NetworkBacking::Distributed { switch_uuid, portgroup_key })
            }
            MoType::OpaqueNetwork => {
                let read = self.properties(network, &["summary"]).await.map_err(failed)?;
                let text = |field| match read.get("summary").and_then(|summary| summary.get(field))
                {
                    Some(Value::String(text)) => Some(text),
                    _ => None,
                };
                let id = text("opaqueNetworkId").ok_or_else(|| lacks("opaqueNetworkId"))?;
                let kind = text("opaqueNetworkType").ok_or_else(|| lacks("opaqueNetworkType"))?;
                Ok(NetworkBacking::Opaque { id, kind })
            }
            _ => Err(NetworkError::Kind { network: network.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{compact, written};
    use roost_vim_wire::Element;

    #[test]
    fn each_kind_of_network_has_its_backing() {
        for (network, xml) in [
            (
                NetworkBacking::Standard {
                    name: "VM Network".into(),
                    network: MoRef::new(MoType::Network, "network-7"),
                },
                r#"<backing xsi:type="VirtualEthernetCardNetworkBackingInfo"><deviceName>VM Network</deviceName>
                <network type="Network">network-7</network></backing>"#,
            ),
            (
                NetworkBacking::Distributed {
                    switch_uuid: "a86ec114".into(),
                    portgroup_key: "dvportgroup-12".into(),
                },
                r#"<backing xsi:type="VirtualEthernetCardDistributedVirtualPortBackingInfo">
                <port><switchUuid>a86ec114</switchUuid><portgroupKey>dvportgroup-12</portgroupKey></port></backing>"#,
            ),
            (
                NetworkBacking::Opaque { id: "ls-1".into(), kind: "nsx.LogicalSwitch".into() },
                r#"<backing xsi:type="VirtualEthernetCardOpaqueNetworkBackingInfo"><opaqueNetworkId>ls-1</opaqueNetworkId>
                <opaqueNetworkType>nsx.LogicalSwitch</opaqueNetworkType></backing>"#,
            ),
        ] {
            assert_eq!(written("backing", &network.to_wire()), compact(xml));
        }
    }

    #[test]
    fn a_moved_card_keeps_its_class_and_leaves_its_address_behind() {
        let card = VirtualDevice {
            key: 4000,
            mac_address: Some("00:0c:29:63:65:61".into()),
            address_type: Some("generated".into()),
            wake_on_lan_enabled: Some(true),
            rest: vec![
                Element::leaf("externalId", "x"),
                Element::leaf("uptCompatibilityEnabled", "true"),
            ],
            ..VirtualDevice::of("VirtualE1000")
        };
        let network = NetworkBacking::Opaque { id: "a".into(), kind: "b".into() };
        let moved = move_nic(&card, &network).device;
        assert_eq!(moved.class, "VirtualE1000");
        assert_eq!((moved.mac_address, moved.address_type), (None, None));
        assert_eq!(moved.wake_on_lan_enabled, Some(true));
        assert_eq!(moved.rest, [Element::leaf("uptCompatibilityEnabled", "true")]);
    }

    #[test]
    fn cards_have_govmomis_names() {
        assert_eq!("vmxnet3".parse(), Ok(Card::Vmxnet3));
        assert_eq!("E1000e".parse(), Ok(Card::E1000e));
        assert!("ne2000".parse::<Card>().unwrap_err().to_string().contains("vmxnet3"));
    }
}
