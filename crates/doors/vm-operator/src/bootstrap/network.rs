//! The network that a guest shall have.

use std::net::IpAddr;

use crate::api::VirtualMachine;
use crate::api::vm::{
    DhcpFamilyStatus, DhcpStatus, DnsStatus, Interface, InterfaceConfig, InterfaceIpConfig,
    NetworkConfig, Route, Vlan,
};

/// Name servers and search domains for guests whose objects name none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsDefaults {
    pub nameservers: Vec<String>,
    pub search_domains: Vec<String>,
}

impl DnsDefaults {
    /// From the ConfigMap `vmoperator-network-config`: words with spaces between.
    pub fn of_config_map(nameservers: &str, search_suffixes: &str) -> Self {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Self { nameservers: words(nameservers), search_domains: words(search_suffixes) }
    }
}

/// Everything that a guest is told about its network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestNetwork {
    pub host_name: String,
    pub domain_name: String,
    pub nameservers: Vec<String>,
    pub search_domains: Vec<String>,
    pub cards: Vec<GuestCard>,
    pub vlans: Vec<Vlan>,
}

/// One card, with what holds for it after all defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestCard {
    pub name: String,
    pub device_name: String,
    /// Lower case, with colons.
    pub mac: String,
    pub addresses: Vec<String>,
    pub dhcp4: bool,
    pub dhcp6: bool,
    pub gateway4: Option<String>,
    pub gateway6: Option<String>,
    pub mtu: Option<i64>,
    pub nameservers: Vec<String>,
    pub search_domains: Vec<String>,
    pub routes: Vec<Route>,
}

impl GuestNetwork {
    /// `macs` are the hardware addresses of the VM's cards, in the order of the interfaces.
    pub fn of(vm: &VirtualMachine, macs: &[String], defaults: &DnsDefaults) -> Self {
        let network = vm.spec.network.clone().unwrap_or_default();
        let name = vm.metadata.name.clone().unwrap_or_default();
        let or =
            |own: Vec<String>, usual: &[String]| if own.is_empty() { usual.to_vec() } else { own };
        let interfaces = if network.disabled { &[][..] } else { &network.interfaces };
        let cards = interfaces.iter().enumerate().map(|(index, interface)| {
            let mac = macs.get(index).map_or(interface.mac_addr.as_str(), String::as_str);
            GuestCard::of(interface, mac)
        });
        let (cards, vlans) = (cards.collect(), network.vlans.clone());
        Self {
            host_name: if network.host_name.is_empty() { name } else { network.host_name },
            domain_name: network.domain_name,
            nameservers: or(network.nameservers, &defaults.nameservers),
            search_domains: or(network.search_domains, &defaults.search_domains),
            cards,
            vlans,
        }
    }

    /// The name with its domain.
    pub fn fqdn(&self) -> String {
        if self.domain_name.is_empty() {
            self.host_name.clone()
        } else {
            format!("{}.{}", self.host_name, self.domain_name)
        }
    }

    /// What `status.network.config` shows.
    pub fn config(&self) -> NetworkConfig {
        let dns = DnsStatus {
            host_name: self.host_name.clone(),
            domain_name: self.domain_name.clone(),
            nameservers: self.nameservers.clone(),
            search_domains: self.search_domains.clone(),
        };
        NetworkConfig {
            dns: Some(dns),
            interfaces: self.cards.iter().map(GuestCard::config).collect(),
        }
    }
}

/// Of which family is this address, with or without its prefix length?
fn is_ipv4(address: &str) -> Option<bool> {
    let text = address.split_once('/').map_or(address, |(address, _)| address);
    text.parse::<IpAddr>().ok().map(|address| address.is_ipv4())
}

impl GuestCard {
    fn of(interface: &Interface, mac: &str) -> Self {
        let has = |v4: bool| interface.addresses.iter().any(|text| is_ipv4(text) == Some(v4));
        // Nobody gives addresses to a card on a named network but DHCP.
        let is_unset = interface.addresses.is_empty() && interface.dhcp6 != Some(true);
        let gateway = |text: Option<&str>, dhcp: bool| text.filter(|_| !dhcp).map(str::to_owned);
        let dhcp4 = interface.dhcp4.unwrap_or(!has(true) && is_unset);
        let dhcp6 = interface.dhcp6.unwrap_or(false);
        Self {
            name: interface.name.clone(),
            device_name: interface.device_name().to_owned(),
            mac: mac.to_ascii_lowercase().replace('-', ":"),
            addresses: interface.addresses.clone(),
            dhcp4,
            dhcp6,
            gateway4: gateway(interface.gateway4(), dhcp4),
            gateway6: gateway(interface.gateway6(), dhcp6),
            mtu: interface.mtu,
            nameservers: interface.nameservers.clone(),
            search_domains: interface.search_domains.clone(),
            routes: interface.routes.clone(),
        }
    }

    /// Its addresses of one family, with their prefix lengths.
    pub fn addresses_of(&self, v4: bool) -> impl Iterator<Item = &str> {
        self.addresses.iter().map(String::as_str).filter(move |text| is_ipv4(text) == Some(v4))
    }

    fn config(&self) -> InterfaceConfig {
        let mut addresses = self.addresses.clone();
        addresses.sort();
        let family = |enabled| DhcpFamilyStatus { enabled, ..DhcpFamilyStatus::default() };
        let dhcp = DhcpStatus { ip4: family(self.dhcp4), ip6: family(self.dhcp6) };
        let dns = DnsStatus {
            nameservers: self.nameservers.clone(),
            search_domains: self.search_domains.clone(),
            ..DnsStatus::default()
        };
        let ip = InterfaceIpConfig {
            addresses,
            gateway4: self.gateway4.clone().unwrap_or_default(),
            gateway6: self.gateway6.clone().unwrap_or_default(),
            dhcp: (self.dhcp4 || self.dhcp6).then_some(dhcp),
        };
        InterfaceConfig {
            name: self.name.clone(),
            ip: Some(ip),
            dns: (dns != DnsStatus::default()).then_some(dns),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::vm;
    use super::*;

    #[test]
    fn a_card_without_a_word_on_addresses_asks_by_dhcp() {
        for (interface, dhcp4, dhcp6, gateway4) in [
            (json!({"name": "eth0"}), true, false, None),
            (
                json!({"name": "eth0", "addresses": ["10.0.0.2/24"], "gateway4": "10.0.0.1"}),
                false,
                false,
                Some("10.0.0.1"),
            ),
            (
                json!({"name": "eth0", "addresses": ["10.0.0.2/24"], "gateway4": "None"}),
                false,
                false,
                None,
            ),
            (json!({"name": "eth0", "addresses": ["fd00::2/64"]}), false, false, None),
            (json!({"name": "eth0", "dhcp6": true}), false, true, None),
            (json!({"name": "eth0", "dhcp4": false}), false, false, None),
            (json!({"name": "eth0", "dhcp4": true, "dhcp6": true}), true, true, None),
        ] {
            let vm = vm(json!({"network": {"interfaces": [interface]}}));
            let network = GuestNetwork::of(&vm, &[], &DnsDefaults::default());
            let card = &network.cards[0];
            assert_eq!((card.dhcp4, card.dhcp6), (dhcp4, dhcp6), "{interface}");
            assert_eq!(card.gateway4.as_deref(), gateway4, "{interface}");
        }
    }

    #[test]
    fn the_status_shows_what_was_told() {
        let vm = vm(json!({"network": {"domainName": "lab", "interfaces": [
            {"name": "eth0", "addresses": ["10.0.0.3/24", "10.0.0.2/24"], "nameservers": ["10.0.0.9"]},
        ]}}));
        let defaults = DnsDefaults::of_config_map("1.1.1.1 9.9.9.9", "corp");
        let network = GuestNetwork::of(&vm, &["00-50-56-AA-BB-CC".to_owned()], &defaults);
        assert_eq!(network.fqdn(), "web-0.lab");
        assert_eq!(network.cards[0].mac, "00:50:56:aa:bb:cc");
        let config = serde_json::to_value(network.config()).unwrap();
        let expected = json!({
            "dns": {"hostName": "web-0", "domainName": "lab", "nameservers": ["1.1.1.1", "9.9.9.9"], "searchDomains": ["corp"]},
            "interfaces": [{
                "name": "eth0",
                "ip": {"addresses": ["10.0.0.2/24", "10.0.0.3/24"]},
                "dns": {"nameservers": ["10.0.0.9"]},
            }],
        });
        assert_eq!(config, expected);
    }
}
