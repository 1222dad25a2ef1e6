//! What cloud-init reads of a VM's extra configuration: `guestinfo.metadata`, its name and its network.

use std::io::Read as _;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use roost_vim_wire::Value;

use crate::guest::{GuestAddress, Identity};
use crate::vm::{Mac, Vm};

/// No metadata is as large when it is unpacked.
const MAX_METADATA: u64 = 1 << 20;

/// The identity that a VM's metadata gives its system, if it has any.
pub(super) fn identity_of(vm: &Vm) -> Option<Identity> {
    let option = |key: &str| {
        let found = vm.config.extra.iter().find(|option| option.key == key)?;
        found.value.as_ref().and_then(Value::as_str)
    };
    let encoding = option("guestinfo.metadata.encoding").unwrap_or_default();
    let metadata = decode(option("guestinfo.metadata")?, encoding)?;
    Some(read(vm, &metadata))
}

fn decode(text: &str, encoding: &str) -> Option<String> {
    let unpacked = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
    let plain =
        || base64::engine::general_purpose::STANDARD.decode(text.trim().replace('\n', "")).ok();
    match encoding {
        "" => Some(text.to_owned()),
        "base64" | "b64" => unpacked(plain()?),
        "gzip+base64" | "gz+b64" => {
            let mut bytes = Vec::new();
            let packed = plain()?;
            let reader = flate2::read::GzDecoder::new(packed.as_slice());
            reader.take(MAX_METADATA).read_to_end(&mut bytes).ok()?;
            unpacked(bytes)
        }
        _ => None,
    }
}

fn read(vm: &Vm, metadata: &str) -> Identity {
    let name = metadata
        .lines()
        .find_map(|line| value(line, "local-hostname").or_else(|| value(line, "hostname")));
    let mut addresses = Vec::new();
    for (index, card) in cards(&network(metadata)).into_iter().enumerate() {
        let by_mac = card.mac.and_then(|mac| vm.config.nics().find(|nic| nic.mac() == Some(mac)));
        // A card that is matched by an address that no card has is nobody's.
        let nic = if card.mac.is_some() { by_mac } else { vm.config.nics().nth(index) };
        let Some(nic) = nic else { continue };
        let own = card.addresses.into_iter();
        addresses.extend(own.map(|(ip, prefix)| GuestAddress {
            device: nic.key(),
            ip,
            prefix,
            is_static: true,
        }));
    }
    let name = name.filter(|name| !name.is_empty());
    Identity { host_name: name.map_or_else(|| Arc::clone(&vm.name), Into::into), addresses }
}

/// The network part, which may be packed once more inside the metadata.
fn network(metadata: &str) -> String {
    let packed = metadata.lines().find_map(|line| value(line, "network"));
    let encoding = metadata.lines().find_map(|line| value(line, "network.encoding"));
    match packed.filter(|text| !text.is_empty() && !text.starts_with('{')) {
        Some(text) => decode(&text, &encoding.unwrap_or("base64".into())).unwrap_or_default(),
        None => metadata.to_owned(),
    }
}

/// `key: value` of a line; the value without quotes.
fn value(line: &str, key: &str) -> Option<String> {
    let line = line.trim().trim_start_matches("- ");
    let rest = line.strip_prefix(key).or_else(|| line.strip_prefix(&format!("\"{key}\"")))?;
    let rest = rest.trim_start().strip_prefix(':')?;
    Some(rest.trim().trim_end_matches(',').trim_matches(['"', '\'']).to_owned())
}

/// One card of a network configuration.
#[derive(Debug, Default, PartialEq, Eq)]
struct Card {
    mac: Option<Mac>,
    addresses: Vec<(IpAddr, u8)>,
}

/// The cards below `ethernets`, in their order. Only what is indented by one step more than it begins a card.
fn cards(network: &str) -> Vec<Card> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut cards: Vec<Card> = Vec::new();
    let (mut outer, mut step) = (None, None);
    let mut in_addresses = false;
    for line in network.lines().filter(|line| !line.trim().is_empty()) {
        let at = indent(line);
        let Some(begin) = outer else {
            outer = (line.trim() == "ethernets:").then_some(at);
            continue;
        };
        if at <= begin {
            break;
        }
        let step = *step.get_or_insert(at);
        if at == step {
            cards.push(Card::default());
            in_addresses = false;
        }
        let Some(card) = cards.last_mut() else { continue };
        let text = line.trim();
        if let Some((_, rest)) = text.split_once("macaddress:") {
            let mac = rest.split([',', '}']).next().unwrap_or_default();
            card.mac = Mac::parse(mac.trim().trim_matches(['"', '\'']));
        }
        if let Some(rest) = value(text, "addresses") {
            in_addresses = true;
            card.addresses.extend(rest.split([',', '[', ']']).filter_map(address));
        } else if let Some(item) = text.strip_prefix("- ").filter(|_| in_addresses) {
            card.addresses.extend(address(item));
        } else {
            in_addresses = false;
        }
    }
    cards
}

/// An address with a prefix length; name servers have none and are not taken for one.
fn address(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, prefix) = text.trim().trim_matches(['"', '\'']).split_once('/')?;
    Some((ip.parse().ok()?, prefix.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = "instance-id: i-1\nlocal-hostname: web-0.lab\nnetwork:\n  version: 2\n  ethernets:\n    eth0:\n      \
        addresses:\n      - 10.0.0.21/24\n      gateway4: 10.0.0.1\n      match:\n        macaddress: \"00:50:56:80:00:02\"\n      \
        nameservers:\n        addresses: [10.0.0.2]\n      routes:\n      - to: 10.9.0.0/16\n        via: 10.0.0.254\n    \
        eth1:\n      dhcp4: true\n      match: {macaddress: 00:50:56:80:00:03}\n";

    #[test]
    fn cards_have_their_own_addresses_and_nothing_of_routes_and_name_servers() {
        let found = cards(METADATA);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].mac, Mac::parse("00:50:56:80:00:02"));
        assert_eq!(found[0].addresses, [("10.0.0.21".parse().unwrap(), 24)]);
        assert_eq!((found[1].mac, found[1].addresses.len()), (Mac::parse("00:50:56:80:00:03"), 0));
    }

    #[test]
    fn metadata_may_be_packed() {
        use std::io::Write as _;
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(METADATA.as_bytes()).unwrap();
        let packed = base64::engine::general_purpose::STANDARD.encode(packer.finish().unwrap());
        assert_eq!(decode(&packed, "gzip+base64").as_deref(), Some(METADATA));
        assert_eq!(decode("a", "rot13"), None);
    }
}
