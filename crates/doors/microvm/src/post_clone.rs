//! A clone wakes with the network of its source. This is the script that gives it its own.

use crate::record::{Backend, Nic, VmRecord};

/// Where a VM's disk came from, as far as it decides who configures its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceImage {
    /// A container image: systemd-networkd units.
    Container,
    /// A cloud image: cloud-init.
    Cloud,
}

impl SourceImage {
    /// `image`: what the snapshot names as its base; `has_overlay`: the VM's disk is a cloud image's overlay.
    pub fn of(image: &str, has_overlay: bool) -> Self {
        let is_url = image.starts_with("http://") || image.starts_with("https://");
        if is_url || has_overlay { Self::Cloud } else { Self::Container }
    }
}

/// What a cloned Linux guest must do before its network works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostClone {
    pub script: String,
}

impl PostClone {
    /// `None` where nothing is owed: Cloud Hypervisor gives the clone new cards, and DHCP by MAC address does the rest.
    pub fn needed(vm: &VmRecord, image: SourceImage) -> Option<Self> {
        // Each guest has a network of its own, the same for all, so that what a clone remembers is right.
        if vm.hypervisor.as_str() == Backend::QEMU {
            return None;
        }
        let is_needed = vm.hypervisor.is_firecracker()
            || image == SourceImage::Cloud
            || vm.has_static_address();
        is_needed.then(|| Self { script: script(vm, image) })
    }
}

fn script(vm: &VmRecord, image: SourceImage) -> String {
    let mut lines = vec![
        "echo 3 > /proc/sys/vm/drop_caches".to_owned(),
        format!("echo {} > /etc/hostname", vm.name()),
    ];
    if vm.hypervisor.is_firecracker() {
        // Firecracker restores the cards of the source with their addresses.
        for (index, nic) in vm.network_configs.iter().enumerate() {
            let (card, mac) = (format!("eth{index}"), &nic.mac);
            lines.push(format!(
                "ip link set dev {card} down && ip link set dev {card} address {mac} && ip link set dev {card} up"
            ));
        }
    }
    lines.push("rm -f /etc/systemd/network/10-*.network".to_owned());
    match image {
        SourceImage::Cloud => lines.extend([
            "cloud-init clean --logs --seed --configs network && cloud-init init --local && cloud-init init".to_owned(),
            "cloud-init modules --mode=config && systemctl restart systemd-networkd".to_owned(),
        ]),
        SourceImage::Container => {
            lines.extend(vm.network_configs.iter().map(unit));
            lines.push("systemctl restart systemd-networkd".to_owned());
        }
    }
    lines.join("\n")
}

/// One card's unit; `\n` stays as two characters for `printf` in the guest.
fn unit(nic: &Nic) -> String {
    let network = match &nic.network {
        Some(address) => {
            format!(r"Address={}/{}\nGateway={}\n", address.ip, address.prefix, address.gateway)
        }
        None => r"DHCP=ipv4\n\n[DHCPv4]\nClientIdentifier=mac\n".to_owned(),
    };
    let mac = &nic.mac;
    let file = mac.replace(':', "");
    format!(
        r"printf '[Match]\nMACAddress={mac}\n\n[Network]\n{network}' > /etc/systemd/network/10-{file}.network"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Backend, StaticAddress, VmConfig};

    fn vm(backend: &str, nics: &[(&str, Option<&str>)]) -> VmRecord {
        let nic = |(mac, ip): &(&str, Option<&str>)| Nic {
            mac: (*mac).to_owned(),
            network: ip.map(|ip| StaticAddress {
                ip: ip.to_owned(),
                gateway: "10.0.0.1".to_owned(),
                prefix: 24,
            }),
            ..Nic::default()
        };
        VmRecord {
            hypervisor: Backend::new(backend),
            config: VmConfig { name: "vk-ns-a-0".to_owned(), ..VmConfig::default() },
            network_configs: nics.iter().map(nic).collect(),
            ..VmRecord::default()
        }
    }

    const MAC: &str = "02:00:00:00:00:01";

    #[test]
    fn who_owes_the_guest_a_script() {
        use SourceImage::{Cloud, Container};
        for (case, vm, image, is_needed) in [
            ("CH, container, DHCP", vm("cloud-hypervisor", &[(MAC, None)]), Container, false),
            (
                "CH, container, static",
                vm("cloud-hypervisor", &[(MAC, Some("10.0.0.5"))]),
                Container,
                true,
            ),
            ("CH, cloud image", vm("cloud-hypervisor", &[(MAC, None)]), Cloud, true),
            ("Firecracker", vm("firecracker", &[(MAC, None)]), Container, true),
            ("CH without cards", vm("cloud-hypervisor", &[]), Container, false),
        ] {
            assert_eq!(PostClone::needed(&vm, image).is_some(), is_needed, "{case}");
        }
        assert_eq!(SourceImage::of("https://host/disk.img", false), Cloud);
        assert_eq!(SourceImage::of("repo:tag", true), Cloud);
        assert_eq!(SourceImage::of("repo:tag", false), Container);
    }

    #[test]
    fn firecracker_with_a_static_and_a_dhcp_card() {
        let vm = vm("firecracker", &[(MAC, Some("10.0.0.5")), ("02:00:00:00:00:02", None)]);
        let script = PostClone::needed(&vm, SourceImage::Container).unwrap().script;
        assert_eq!(
            script.lines().collect::<Vec<_>>(),
            [
                "echo 3 > /proc/sys/vm/drop_caches",
                "echo vk-ns-a-0 > /etc/hostname",
                "ip link set dev eth0 down && ip link set dev eth0 address 02:00:00:00:00:01 && ip link set dev eth0 up",
                "ip link set dev eth1 down && ip link set dev eth1 address 02:00:00:00:00:02 && ip link set dev eth1 up",
                "rm -f /etc/systemd/network/10-*.network",
                r"printf '[Match]\nMACAddress=02:00:00:00:00:01\n\n[Network]\nAddress=10.0.0.5/24\nGateway=10.0.0.1\n' > /etc/systemd/network/10-020000000001.network",
                r"printf '[Match]\nMACAddress=02:00:00:00:00:02\n\n[Network]\nDHCP=ipv4\n\n[DHCPv4]\nClientIdentifier=mac\n' > /etc/systemd/network/10-020000000002.network",
                "systemctl restart systemd-networkd",
            ]
        );
    }

    #[test]
    fn a_cloud_image_is_left_to_cloud_init() {
        let vm = vm("cloud-hypervisor", &[(MAC, None)]);
        let script = PostClone::needed(&vm, SourceImage::Cloud).unwrap().script;
        assert!(script.contains("cloud-init init --local") && !script.contains("printf"));
    }
}
