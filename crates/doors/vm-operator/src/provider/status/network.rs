//! Addresses, as the guest reports them.

use std::net::IpAddr;

use jiff::Timestamp;
use roost_vim::wire::Element;
use roost_vim::wire::types::{GuestNicInfo, NetIpConfigInfoIpAddress};

use super::super::seen::Seen;
use super::conditions;
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, Reason, Truth, mark, mark_false};
use crate::api::names::extra_config;
use crate::api::vm::{
    AddressStatus, DhcpFamilyStatus, DhcpStatus, InterfaceDnsStatus, InterfaceIpStatus,
    InterfaceStatus, NetworkStatus,
};

pub(super) fn update_network_status(vm: &mut VirtualMachine, seen: &Seen, now: Timestamp) {
    let names: Vec<String> = vm
        .spec
        .network
        .iter()
        .flat_map(|network| &network.interfaces)
        .map(|interface| interface.name.clone())
        .collect();
    let nics: Vec<&GuestNicInfo> =
        seen.detail.nics().filter(|nic| nic.device_config_id >= 0).collect();
    let keys: Vec<i32> = seen.nics().map(|device| device.key).collect();
    let mut interfaces: Vec<InterfaceStatus> =
        nics.iter().map(|nic| interface(nic, &keys, &names)).collect();
    interfaces.sort_by_key(|interface| interface.device_key);
    let (primary4, primary6) =
        if seen.row.is_on() { primary_addresses(vm, seen) } else { (None, None) };
    let config = vm.status_mut().network.take().and_then(|network| network.config);
    let network = NetworkStatus {
        config,
        host_name: seen.row.guest.host_name.as_deref().unwrap_or_default().to_owned(),
        interfaces,
        primary_ip4: primary4.map(|address| address.to_string()).unwrap_or_default(),
        primary_ip6: primary6.map(|address| address.to_string()).unwrap_or_default(),
        ..NetworkStatus::default()
    };
    let synced = is_synced(&network, &nics);
    vm.status_mut().network = (network != NetworkStatus::default()).then_some(network);
    let (all, kind) = (conditions(vm), ConditionType::GuestNetworkConfigSynced);
    if synced {
        mark(all, kind, Truth::True, Reason::Synced, "", now);
    } else {
        mark_false(all, kind, Reason::NotSynced, "the guest has not reported its address", now);
    }
}

/// A primary address is there, and the cards have it, if they say anything.
fn is_synced(network: &NetworkStatus, nics: &[&GuestNicInfo]) -> bool {
    let primary = [&network.primary_ip4, &network.primary_ip6];
    let mut told = primary.into_iter().filter(|address| !address.is_empty()).peekable();
    let has_it =
        |address: &String| nics.iter().any(|nic| nic.ip_address.iter().any(|own| own == address));
    told.peek().is_some() && (nics.is_empty() || told.all(has_it))
}

fn interface(nic: &GuestNicInfo, keys: &[i32], names: &[String]) -> InterfaceStatus {
    let index = keys.iter().position(|key| *key == nic.device_config_id);
    let name = index.and_then(|index| names.get(index)).cloned().unwrap_or_default();
    let told = nic.ip_config.as_ref().map(|config| config.ip_address.as_slice());
    let addresses = match told {
        Some(told) if !told.is_empty() => told.iter().map(address).collect(),
        _ => nic
            .ip_address
            .iter()
            .map(|address| AddressStatus { address: address.clone(), ..AddressStatus::default() })
            .collect(),
    };
    let config = nic.ip_config.as_ref();
    let ip = InterfaceIpStatus {
        mac_addr: nic.mac_address.clone().unwrap_or_default(),
        auto_configuration_enabled: config.and_then(|config| config.auto_configuration_enabled),
        addresses,
        dhcp: config.and_then(|config| config.dhcp.as_ref()).map(dhcp),
    };
    InterfaceStatus {
        name,
        device_key: nic.device_config_id,
        ip: Some(ip),
        dns: nic.dns_config.as_ref().map(dns),
        ..InterfaceStatus::default()
    }
}

fn address(told: &NetIpConfigInfoIpAddress) -> AddressStatus {
    AddressStatus {
        address: format!("{}/{}", told.ip_address, told.prefix_length),
        origin: told.origin.clone(),
        state: told.state.clone(),
        ..AddressStatus::default()
    }
}

fn dhcp(told: &Element) -> DhcpStatus {
    let is_on = |family: &str| {
        told.child(family).and_then(|of| of.text_of("enable")).is_some_and(|text| text == "true")
    };
    let family =
        |name: &str| DhcpFamilyStatus { enabled: is_on(name), ..DhcpFamilyStatus::default() };
    DhcpStatus { ip4: family("ipv4"), ip6: family("ipv6") }
}

fn dns(told: &Element) -> InterfaceDnsStatus {
    let text = |name: &str| told.text_of(name).unwrap_or_default().to_owned();
    let list = |name: &str| told.children_named(name).map(|child| child.text.clone()).collect();
    InterfaceDnsStatus {
        dhcp: told.text_of("dhcp") == Some("true"),
        host_name: text("hostName"),
        domain_name: text("domainName"),
        nameservers: list("ipAddress"),
        search_domains: list("searchDomain"),
    }
}

/// What cloud-init says counts most, then what vSphere calls primary; a family that is missing is taken from the card that has the other one.
fn primary_addresses(vm: &VirtualMachine, seen: &Seen) -> (Option<IpAddr>, Option<IpAddr>) {
    let is_cloud_init =
        vm.spec.bootstrap.as_ref().is_some_and(|bootstrap| bootstrap.cloud_init.is_some());
    let said = |key: &str| {
        let text = seen.extra_config(key).filter(|_| is_cloud_init)?;
        text.parse::<IpAddr>().ok().filter(|address| is_usable(*address))
    };
    let guest = seen.row.guest.address.filter(|address| is_usable(*address));
    let mut v4 = said(extra_config::LOCAL_IPV4).or(guest.filter(IpAddr::is_ipv4));
    let mut v6 = said(extra_config::LOCAL_IPV6).or(guest.filter(IpAddr::is_ipv6));
    let nics = &seen.row.guest.nics;
    let usable = |nic: &roost_fleet::GuestNic, is_v4: bool| {
        let mut of_family = nic
            .addresses
            .iter()
            .filter(|address| address.is_ipv4() == is_v4 && is_usable(**address));
        let first = of_family.next().copied();
        // Among several nobody can say which.
        if of_family.next().is_some() { None } else { first }
    };
    let card = match v4.or(v6) {
        Some(known) => nics.iter().find(|nic| nic.addresses.contains(&known)),
        None if nics.len() == 1 => nics.first(),
        None => None,
    };
    if let Some(card) = card {
        v4 = v4.or_else(|| usable(card, true));
        v6 = v6.or_else(|| usable(card, false));
    }
    (v4, v6)
}

fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_loopback() || v4.is_link_local()),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_loopback() || v6.is_unicast_link_local()),
    }
}
