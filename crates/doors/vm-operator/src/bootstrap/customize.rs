//! LinuxPrep, and what all customizations of guests have in common.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use roost_vim::wire::Element;
use roost_vim::wire::types::{
    CustomizationAdapterMapping, CustomizationGlobalIPSettings, CustomizationIPSettings,
    CustomizationIdentitySettings, CustomizationIpGenerator, CustomizationName, CustomizationSpec,
};

use super::network::{GuestCard, GuestNetwork};
use super::{BootstrapError, Secrets, payload_hash, secret_text};
use crate::api::vm::{LinuxPrep, ScriptText};

/// A customization, ready to be sent. It may hold passwords, so it is not printed.
#[derive(Clone, PartialEq)]
pub struct Customize(pub CustomizationSpec);

impl fmt::Debug for Customize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Customize").field(&self.0.identity.class).finish()
    }
}

impl Customize {
    /// The hash by which it is remembered once it was applied.
    pub fn hash(&self) -> String {
        let elements = Element::of_field("spec", &self.0);
        payload_hash(&elements.iter().map(text_of).collect::<Vec<_>>())
    }
}

fn text_of(element: &Element) -> String {
    let children: Vec<String> = element.children.iter().map(text_of).collect();
    let class = element.xsi_type.as_deref().unwrap_or_default();
    format!("{}:{class}={}({})", element.name, element.text, children.join(","))
}

/// Is the guest to be customized at this power-on? The object may say so; else it is when the payload is another than the last one.
pub fn customize_now(asked: Option<bool>, hash: &str, last: Option<&str>) -> bool {
    asked.unwrap_or(last != Some(hash))
}

pub fn linux_prep(
    prep: &LinuxPrep,
    network: &GuestNetwork,
    secrets: &dyn Secrets,
) -> Result<Customize, BootstrapError> {
    let mut rest = Vec::new();
    if let Some(password) = &prep.password {
        rest.push(hidden("password", secret_text(secrets, password, &["password"])?));
    }
    if prep.expire_password_after_next_login {
        rest.push(Element::leaf("resetPassword", "true"));
    }
    let identity = CustomizationIdentitySettings {
        host_name: Some(CustomizationName {
            name: Some(network.host_name.clone()),
            ..CustomizationName::of("CustomizationFixedName")
        }),
        domain: Some(network.domain_name.clone()),
        time_zone: Some(prep.time_zone.clone()).filter(|zone| !zone.is_empty()),
        hw_clock_utc: prep.hardware_clock_is_utc,
        script_text: script(prep.script_text.as_ref(), secrets)?,
        rest,
        ..CustomizationIdentitySettings::of("CustomizationLinuxPrep")
    };
    Ok(Customize(spec(identity, network)?))
}

pub(super) fn script(
    text: Option<&ScriptText>,
    secrets: &dyn Secrets,
) -> Result<Option<String>, BootstrapError> {
    match text {
        None => Ok(None),
        Some(ScriptText { from: Some(from), .. }) => secret_text(secrets, from, &[]).map(Some),
        Some(ScriptText { value, .. }) => Ok(value.clone()),
    }
}

/// A password in the form that vSphere wants it.
pub(super) fn hidden(name: &str, value: String) -> Element {
    Element::new(name)
        .typed("CustomizationPassword")
        .with(Element::leaf("value", value))
        .with(Element::leaf("plainText", "true"))
}

pub(super) fn spec(
    identity: CustomizationIdentitySettings,
    network: &GuestNetwork,
) -> Result<CustomizationSpec, BootstrapError> {
    let cards = network.cards.iter().map(|card| adapter(card, network));
    Ok(CustomizationSpec {
        options: None,
        identity,
        global_ip_settings: CustomizationGlobalIPSettings {
            dns_suffix_list: network.search_domains.clone(),
            dns_server_list: network.nameservers.clone(),
        },
        nic_setting_map: cards.collect::<Result<_, _>>()?,
    })
}

fn adapter(
    card: &GuestCard,
    network: &GuestNetwork,
) -> Result<CustomizationAdapterMapping, BootstrapError> {
    let mut adapter = CustomizationIPSettings::default();
    let first = card.addresses_of(true).next();
    match (card.dhcp4, first) {
        (true, _) => adapter.ip = CustomizationIpGenerator::of("CustomizationDhcpIpGenerator"),
        (false, Some(cidr)) => {
            let (address, prefix) = parse(cidr)?;
            adapter.ip = CustomizationIpGenerator {
                ip_address: Some(address.to_string()),
                ..CustomizationIpGenerator::of("CustomizationFixedIp")
            };
            adapter.subnet_mask = Some(mask(prefix).to_string());
            adapter.gateway.extend(card.gateway4.clone());
        }
        (false, None) => adapter.ip = CustomizationIpGenerator::of("CustomizationDisableIpV4"),
    }
    adapter.ip_v6_spec = ipv6(card)?;
    let servers =
        if card.nameservers.is_empty() { &network.nameservers } else { &card.nameservers };
    adapter.dns_server_list.clone_from(servers);
    Ok(CustomizationAdapterMapping {
        mac_address: Some(card.mac.clone()).filter(|mac| !mac.is_empty()),
        adapter,
    })
}

fn ipv6(card: &GuestCard) -> Result<Option<Element>, BootstrapError> {
    let mut spec = Element::new("ipV6Spec");
    if card.dhcp6 {
        spec = spec.with(Element::new("ip").typed("CustomizationDhcpIpV6Generator"));
    } else {
        for cidr in card.addresses_of(false) {
            let (address, prefix) = parse(cidr)?;
            let ip = Element::new("ip")
                .typed("CustomizationFixedIpV6")
                .with(Element::leaf("ipAddress", address.to_string()))
                .with(Element::leaf("subnetMask", prefix.to_string()));
            spec = spec.with(ip);
        }
        if let Some(gateway) = card.gateway6.as_ref().filter(|_| !spec.children.is_empty()) {
            spec = spec.with(Element::leaf("gateway", gateway.clone()));
        }
    }
    Ok((!spec.children.is_empty()).then_some(spec))
}

fn parse(cidr: &str) -> Result<(IpAddr, u8), BootstrapError> {
    let wrong = || BootstrapError::Address { address: cidr.to_owned() };
    let (address, prefix) = cidr.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    if prefix > longest { Err(wrong()) } else { Ok((address, prefix)) }
}

fn mask(prefix: u8) -> Ipv4Addr {
    let bits = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
    Ipv4Addr::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::network::DnsDefaults;
    use super::super::tests::{secrets, vm};
    use super::*;

    fn network() -> GuestNetwork {
        let vm = vm(json!({"network": {
            "hostName": "db-0", "domainName": "lab", "nameservers": ["10.0.0.2"], "searchDomains": ["lab"],
            "interfaces": [
                {"name": "eth0", "addresses": ["10.0.0.21/22", "fd00::21/64"], "gateway4": "10.0.0.1", "gateway6": "fd00::1"},
                {"name": "eth1", "dhcp4": true, "dhcp6": true},
                {"name": "eth2", "addresses": ["fd00::31/64"]},
            ],
        }}));
        let macs = ["00:50:56:00:00:01", "00:50:56:00:00:02", "00:50:56:00:00:03"];
        GuestNetwork::of(&vm, &macs.map(str::to_owned), &DnsDefaults::default())
    }

    #[test]
    fn linux_prep_tells_name_password_and_addresses() {
        let prep: LinuxPrep = serde_json::from_value(json!({
            "hardwareClockIsUTC": true, "timeZone": "Europe/Zurich", "expirePasswordAfterNextLogin": true,
            "password": {"name": "boot"}, "scriptText": {"from": {"name": "boot", "key": "script"}},
        }))
        .unwrap();
        let all = secrets(&[("boot", "password", "pw"), ("boot", "script", "#!/bin/sh")]);
        let made = linux_prep(&prep, &network(), &all).unwrap();
        assert_eq!(
            format!("{made:?}"),
            "Customize(\"CustomizationLinuxPrep\")",
            "no secret is printed"
        );
        assert_eq!(made.hash(), linux_prep(&prep, &network(), &all).unwrap().hash());
        let other = secrets(&[("boot", "password", "other"), ("boot", "script", "#!/bin/sh")]);
        assert_ne!(made.hash(), linux_prep(&prep, &network(), &other).unwrap().hash());
        let Customize(spec) = made;
        assert_eq!(spec.identity.host_name.unwrap().name.as_deref(), Some("db-0"));
        assert_eq!(spec.identity.script_text.as_deref(), Some("#!/bin/sh"));
        assert_eq!(spec.identity.rest[0].text_of("value"), Some("pw"));
        assert_eq!(spec.identity.rest[1].name, "resetPassword");
        assert_eq!(spec.global_ip_settings.dns_server_list, ["10.0.0.2"]);
        let [eth0, eth1, eth2] = &spec.nic_setting_map[..] else { panic!("three cards") };
        assert_eq!(eth0.mac_address.as_deref(), Some("00:50:56:00:00:01"));
        assert_eq!(eth0.adapter.ip.ip_address.as_deref(), Some("10.0.0.21"));
        assert_eq!(eth0.adapter.subnet_mask.as_deref(), Some("255.255.252.0"));
        assert_eq!(eth0.adapter.gateway, ["10.0.0.1"]);
        let six = eth0.adapter.ip_v6_spec.as_ref().unwrap();
        assert_eq!(six.children[0].text_of("subnetMask"), Some("64"));
        assert_eq!(six.text_of("gateway"), Some("fd00::1"));
        assert_eq!(eth1.adapter.ip.class, "CustomizationDhcpIpGenerator");
        let six = eth1.adapter.ip_v6_spec.as_ref().unwrap();
        assert_eq!(six.children[0].xsi_type.as_deref(), Some("CustomizationDhcpIpV6Generator"));
        assert_eq!(eth2.adapter.ip.class, "CustomizationDisableIpV4");
    }

    #[test]
    fn a_guest_is_customized_when_it_is_asked_or_when_it_is_new() {
        for (asked, last, now) in [
            (None, None, true),
            (None, Some("h"), false),
            (None, Some("old"), true),
            (Some(true), Some("h"), true),
            (Some(false), None, false),
        ] {
            assert_eq!(customize_now(asked, "h", last), now, "{asked:?} {last:?}");
        }
    }

    #[test]
    fn an_address_without_its_prefix_is_told() {
        let mut network = network();
        network.cards[0].addresses = vec!["10.0.0.1".to_owned()];
        let error = linux_prep(&LinuxPrep::default(), &network, &secrets(&[])).unwrap_err();
        assert_eq!(error, BootstrapError::Address { address: "10.0.0.1".to_owned() });
        assert_eq!((mask(0), mask(32)), (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST));
    }
}
