//! What a VM and an Agent have in common: the machine's uuid and the addresses of its cards.

use crate::api::OwnedVm;

/// The identity of an Agent. Empty where it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    pub uuid: String,
    pub macs: Vec<String>,
    /// The uuid is that of a VM of ours, so that nothing else tells which VM it is.
    pub is_settled: bool,
}

/// `VMware-42 32 97 ...` or any spelling of a uuid as `8-4-4-4-12` in lower case; empty for what is none.
pub fn uuid(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("VMware-").unwrap_or(text);
    let digits: String =
        text.chars().filter(|c| !matches!(c, ' ' | '-')).collect::<String>().to_ascii_lowercase();
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return String::new();
    }
    format!(
        "{}-{}-{}-{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..]
    )
}

/// Lower case, with hyphens.
pub fn mac(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace(':', "-")
}

/// The other byte order of a uuid: bytes of the first three groups reversed. Firmware and guest do not agree on it.
fn swapped(uuid: &str) -> String {
    let group = |text: &str| -> String {
        text.as_bytes().chunks(2).rev().map(|pair| String::from_utf8_lossy(pair)).collect()
    };
    let mut parts = uuid.splitn(4, '-');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(a), Some(b), Some(c), Some(rest)) => {
            format!("{}-{}-{}-{rest}", group(a), group(b), group(c))
        }
        _ => String::new(),
    }
}

fn same_uuid(one: &str, other: &str) -> bool {
    !one.is_empty() && !other.is_empty() && (one == other || swapped(one) == other)
}

/// Whether the machine's uuid is the VM's, in either byte order.
pub fn matches_uuid(vm: &OwnedVm, agent: &Identity) -> bool {
    same_uuid(&uuid(&vm.bios_uuid), &agent.uuid)
}

/// Whether any card of the Agent is the VM's.
pub fn matches_mac(vm: &OwnedVm, agent: &Identity) -> bool {
    let of_vm = mac(&vm.mac_address);
    !of_vm.is_empty() && agent.macs.contains(&of_vm)
}

/// Both say who they are, and it is not the same.
pub fn conflict(vm: &OwnedVm, agent: &Identity) -> bool {
    if agent.is_settled {
        return !matches_uuid(vm, agent);
    }
    let uuids = !uuid(&vm.bios_uuid).is_empty() && !agent.uuid.is_empty();
    let macs = !vm.mac_address.is_empty() && !agent.macs.is_empty();
    (uuids || macs) && !matches_uuid(vm, agent) && !matches_mac(vm, agent)
}

/// Whether two records mean the same machine.
pub fn same_machine(one: &OwnedVm, other: &OwnedVm) -> bool {
    let (own, theirs) = (uuid(&one.bios_uuid), uuid(&other.bios_uuid));
    // Two vCenters may give the same address to two cards.
    if !own.is_empty() && !theirs.is_empty() {
        return same_uuid(&own, &theirs);
    }
    !one.mac_address.is_empty() && mac(&one.mac_address) == mac(&other.mac_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VSPHERE: &str = "42324d21-274c-03a8-b6fe-f9e8edb55e33";
    const KERNEL: &str = "214d3242-4c27-a803-b6fe-f9e8edb55e33";

    fn vm(uuid: &str, mac: &str) -> OwnedVm {
        OwnedVm { bios_uuid: uuid.into(), mac_address: mac.into(), ..OwnedVm::named("a") }
    }

    fn agent(uuid: &str, macs: &[&str]) -> Identity {
        let macs = macs.iter().map(|mac| (*mac).to_owned()).collect();
        Identity { uuid: uuid.into(), macs, is_settled: false }
    }

    #[test]
    fn a_vmware_serial_number_is_a_uuid() {
        let serial = "VMware-42 32 97 c6 d7 2e 28 bb-b2 79 12 09 c2 9a b7 2b";
        assert_eq!(uuid(serial), "423297c6-d72e-28bb-b279-1209c29ab72b");
        assert_eq!(uuid(&VSPHERE.to_uppercase()), VSPHERE);
        for odd in ["", "None", "VMware-42", "zz324d21-274c-03a8-b6fe-f9e8edb55e33"] {
            assert_eq!(uuid(odd), "", "{odd}");
        }
    }

    #[test]
    fn both_byte_orders_are_the_same_machine() {
        assert_eq!(swapped(VSPHERE), KERNEL);
        assert_eq!(swapped(KERNEL), VSPHERE);
        for other in [VSPHERE, KERNEL] {
            assert!(matches_uuid(&vm(VSPHERE, ""), &agent(other, &[])));
        }
        assert!(!matches_uuid(&vm("", ""), &agent("", &[])), "nothing is no identity");
    }

    #[test]
    fn any_card_will_do() {
        let agent = agent("", &["00-50-56-00-00-01", "00-50-56-00-00-02"]);
        assert!(matches_mac(&vm("", "00:50:56:00:00:02"), &agent));
        assert!(!matches_mac(&vm("", "00-50-56-00-00-03"), &agent));
    }

    #[test]
    fn a_conflict_needs_something_to_compare() {
        let other = "00000000-0000-0000-0000-000000000001";
        for (case, vm, agent, conflicts) in [
            ("nothing known", vm("", ""), agent(VSPHERE, &["m"]), false),
            ("one agrees", vm(VSPHERE, "x"), agent(VSPHERE, &["y"]), false),
            ("uuids differ", vm(VSPHERE, ""), agent(other, &[]), true),
            ("cards differ", vm("", "x"), agent("", &["y"]), true),
            ("the other card agrees", vm(VSPHERE, "x"), agent(other, &["x"]), false),
        ] {
            assert_eq!(conflict(&vm, &agent), conflicts, "{case}");
        }
    }
}
