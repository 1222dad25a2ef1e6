use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use roost_vim_wire::types::CustomizationSpec;

use crate::guest::GuestAddress;
use crate::vm::{Mac, Vm};

/// What customization makes of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub host_name: Arc<str>,
    /// The static addresses; cards without one ask the network.
    pub addresses: Vec<GuestAddress>,
}

/// The identity that a VM's pending customization asks for.
pub(super) fn identity_of(vm: &Vm) -> Identity {
    let Some(spec) = vm.customization.as_deref() else {
        return Identity { host_name: Arc::clone(&vm.name), addresses: Vec::new() };
    };
    match &spec.identity.metadata {
        Some(metadata) => cloud_init(vm, metadata),
        None => Identity { host_name: host_name(vm, spec), addresses: static_addresses(vm, spec) },
    }
}

fn host_name(vm: &Vm, spec: &CustomizationSpec) -> Arc<str> {
    let asked = spec.identity.host_name.as_ref();
    match asked.map(|name| name.class.as_str()) {
        Some("CustomizationFixedName") => {
            asked.and_then(|name| name.name.as_deref()).unwrap_or(&vm.name).into()
        }
        Some("CustomizationPrefixName") => {
            let base = asked.and_then(|name| name.base.as_deref()).unwrap_or_default();
            format!("{base}-{:x}", vm.uuid & 0xffff).into()
        }
        _ => Arc::clone(&vm.name),
    }
}

fn static_addresses(vm: &Vm, spec: &CustomizationSpec) -> Vec<GuestAddress> {
    let mut addresses = Vec::new();
    for (index, mapping) in spec.nic_setting_map.iter().enumerate() {
        let mac = mapping.mac_address.as_deref().and_then(Mac::parse);
        let by_mac = mac.and_then(|mac| vm.config.nics().find(|nic| nic.mac() == Some(mac)));
        let Some(nic) = by_mac.or_else(|| vm.config.nics().nth(index)) else { continue };
        let Some(ip) =
            mapping.adapter.ip.ip_address.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok())
        else {
            continue;
        };
        let mask =
            mapping.adapter.subnet_mask.as_deref().and_then(|mask| mask.parse::<Ipv4Addr>().ok());
        let prefix = mask.map_or(24, |mask| u32::from(mask).leading_ones());
        addresses.push(GuestAddress {
            device: nic.key(),
            ip,
            prefix: u8::try_from(prefix).unwrap_or(24),
            is_static: true,
        });
    }
    addresses
}

/// The two things that matter here in a cloud-init document: the name, and addresses with a prefix length, card by card.
fn cloud_init(vm: &Vm, metadata: &str) -> Identity {
    let value = |line: &str, key: &str| {
        let rest = line.trim().strip_prefix(key)?.trim_start().strip_prefix(':')?;
        Some(rest.trim().trim_matches(['"', '\'']).to_owned())
    };
    let mut lines = metadata.lines();
    let name =
        lines.find_map(|line| value(line, "local-hostname").or_else(|| value(line, "hostname")));
    let words = metadata.split(|char: char| char.is_whitespace() || "[],\"'".contains(char));
    let found = words.filter_map(|word| {
        let (ip, prefix) = word.trim_start_matches('-').split_once('/')?;
        Some((ip.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?))
    });
    let addresses = found.zip(vm.config.nics());
    Identity {
        host_name: name
            .filter(|name| !name.is_empty())
            .map_or_else(|| Arc::clone(&vm.name), Into::into),
        addresses: addresses
            .map(|((ip, prefix), nic)| GuestAddress {
                device: nic.key(),
                ip,
                prefix,
                is_static: true,
            })
            .collect(),
    }
}
