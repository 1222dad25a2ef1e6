//! Names, addresses and interfaces.

use std::net::IpAddr;

use super::{AdmissionSettings, Problems};
use crate::api::VirtualMachine;
use crate::api::vm::{Bootstrap, GuestFamily, Interface, Network};

const AT: &str = "spec.network";
/// What Windows allows.
const WINDOWS_HOST_LENGTH: usize = 15;
const LABEL_LENGTH: usize = 63;
const NAME_LENGTH: usize = 255;

pub(super) fn check(
    vm: &VirtualMachine,
    old: Option<&VirtualMachine>,
    settings: &AdmissionSettings,
    problems: &mut Problems,
) {
    let Some(network) = &vm.spec.network else { return };
    let bootstrap = vm.spec.bootstrap.clone().unwrap_or_default();
    host_and_domain(vm, network, &bootstrap, problems);
    global_dns(network, &bootstrap, problems);
    for (index, interface) in network.interfaces.iter().enumerate() {
        let at = format!("{AT}.interfaces[{index}]");
        guest_features(&at, interface, &bootstrap, problems);
        addresses(&at, interface, problems);
    }
    let is_fixed = !settings.mutable_networks && !network.disabled;
    let old = old.and_then(|old| old.spec.network.as_ref());
    if let Some(old) = old.filter(|_| is_fixed) {
        same_interfaces(network, old, problems);
    }
}

fn host_and_domain(
    vm: &VirtualMachine,
    network: &Network,
    bootstrap: &Bootstrap,
    problems: &mut Problems,
) {
    let (host, domain) = (&network.host_name, &network.domain_name);
    let is_ip = host.parse::<IpAddr>().is_ok();
    let is_windows =
        bootstrap.sysprep.is_some() || GuestFamily::of(&vm.spec.guest_id) == GuestFamily::Windows;
    if !host.is_empty() && !is_ip {
        let at = format!("{AT}.hostName");
        problems.when(!is_label(host), &at, "is no RFC 1123 label");
        problems.when(
            is_windows && host.len() > WINDOWS_HOST_LENGTH,
            &at,
            "Windows has host names of at most 15 characters",
        );
    }
    problems.when(
        is_ip && !domain.is_empty(),
        format!("{AT}.hostName"),
        "an address as host name goes with no domain name",
    );
    if !domain.is_empty() {
        let at = format!("{AT}.domainName");
        problems.when(!domain.split('.').all(is_label), &at, "is no domain name");
        let name = vm.metadata.name.clone().unwrap_or_default();
        let host = if host.is_empty() { &name } else { host };
        let length = host.len() + 1 + domain.len();
        problems.when(
            length > NAME_LENGTH,
            &at,
            "host and domain have at most 255 characters together",
        );
    }
}

fn is_label(text: &str) -> bool {
    let is_outer = |c: char| c.is_ascii_alphanumeric();
    !text.is_empty()
        && text.len() <= LABEL_LENGTH
        && text.starts_with(is_outer)
        && text.ends_with(is_outer)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Name servers for all interfaces reach the guest only by providers that know of them.
fn global_dns(network: &Network, bootstrap: &Bootstrap, problems: &mut Problems) {
    addresses_only(&format!("{AT}.nameservers"), &network.nameservers, problems);
    let is_v_app_only = bootstrap.v_app_config.is_some()
        && bootstrap.linux_prep.is_none()
        && bootstrap.sysprep.is_none();
    let cloud_init = bootstrap.cloud_init.as_ref();
    let no_servers =
        cloud_init.is_some_and(|of| of.use_global_nameservers_as_default == Some(false));
    let no_domains =
        cloud_init.is_some_and(|of| of.use_global_search_domains_as_default == Some(false));
    let needs = "needs LinuxPrep, Sysprep, or CloudInit that uses it as default";
    problems.when(
        !network.nameservers.is_empty() && (is_v_app_only || no_servers),
        format!("{AT}.nameservers"),
        needs,
    );
    problems.when(
        !network.search_domains.is_empty() && (is_v_app_only || no_domains),
        format!("{AT}.searchDomains"),
        needs,
    );
}

fn addresses_only(at: &str, texts: &[String], problems: &mut Problems) {
    for (index, text) in texts.iter().enumerate() {
        problems.when(
            text.parse::<IpAddr>().is_err(),
            format!("{at}[{index}]"),
            "must be an IPv4 or IPv6 address",
        );
    }
}

fn guest_features(at: &str, interface: &Interface, bootstrap: &Bootstrap, problems: &mut Problems) {
    let has_cloud_init = bootstrap.cloud_init.is_some();
    let needs = "is available only with CloudInit";
    let mut only_cloud_init = |is_set: bool, field: &str| {
        problems.when(is_set && !has_cloud_init, format!("{at}.{field}"), needs);
    };
    only_cloud_init(!interface.guest_device_name.is_empty(), "guestDeviceName");
    only_cloud_init(interface.mtu.is_some(), "mtu");
    only_cloud_init(!interface.routes.is_empty(), "routes");
    only_cloud_init(!interface.search_domains.is_empty(), "searchDomains");
    problems.when(
        !interface.nameservers.is_empty() && !has_cloud_init && bootstrap.sysprep.is_none(),
        format!("{at}.nameservers"),
        "is available only with CloudInit and Sysprep",
    );
    addresses_only(&format!("{at}.nameservers"), &interface.nameservers, problems);
    for (index, route) in interface.routes.iter().enumerate() {
        let at = format!("{at}.routes[{index}]");
        let to = if route.to == "default" { None } else { Some(cidr(&route.to)) };
        let via: Option<IpAddr> = route.via.parse().ok();
        problems.when(
            to == Some(None),
            format!("{at}.to"),
            "must be an address with a prefix length",
        );
        problems.when(via.is_none(), format!("{at}.via"), "must be an address");
        if let (Some(Some(to)), Some(via)) = (to, via) {
            problems.when(
                to.is_ipv4() != via.is_ipv4(),
                &at,
                "to and via are of different families",
            );
        }
    }
}

fn cidr(text: &str) -> Option<IpAddr> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let prefix: u8 = prefix.parse().ok()?;
    (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some(address)
}

fn addresses(at: &str, interface: &Interface, problems: &mut Problems) {
    let (mut has4, mut has6) = (false, false);
    for (index, text) in interface.addresses.iter().enumerate() {
        let at = format!("{at}.addresses[{index}]");
        let Some(address) = cidr(text) else {
            problems.at(at, "must be an address with a prefix length, such as 10.0.0.2/24");
            continue;
        };
        let (has, dhcp, name) = if address.is_ipv4() {
            (&mut has4, interface.dhcp4, "dhcp4")
        } else {
            (&mut has6, interface.dhcp6, "dhcp6")
        };
        *has = true;
        problems.when(dhcp == Some(true), at, format!("goes with {name} false only"));
    }
    let families = [
        ("gateway4", interface.gateway4(), has4, interface.dhcp4, true),
        ("gateway6", interface.gateway6(), has6, interface.dhcp6, false),
    ];
    for (field, gateway, has_address, dhcp, v4) in families {
        let Some(gateway) = gateway else { continue };
        let at = format!("{at}.{field}");
        let parsed: Option<IpAddr> = gateway.parse().ok();
        let family = if v4 { "must be an IPv4 address" } else { "must be an IPv6 address" };
        problems.when(parsed.is_none_or(|address| address.is_ipv4() != v4), &at, family);
        problems.when(!has_address, &at, "needs an address of its family");
        problems.when(dhcp == Some(true), &at, "goes with no DHCP of its family");
    }
}

fn same_interfaces(network: &Network, old: &Network, problems: &mut Problems) {
    let at = format!("{AT}.interfaces");
    // Defaulting may have filled in what was left open.
    if old.interfaces.is_empty() {
        return;
    }
    if network.interfaces.len() != old.interfaces.len() {
        problems.at(at, "network interfaces cannot be added or removed");
        return;
    }
    for (index, (new, old)) in network.interfaces.iter().zip(&old.interfaces).enumerate() {
        problems.when(new.name != old.name, format!("{at}[{index}].name"), super::IMMUTABLE);
        let was = old.network.as_ref().filter(|of| !of.name.is_empty());
        let is_other = was.is_some_and(|was| new.network.as_ref() != Some(was));
        problems.when(is_other, format!("{at}[{index}].network"), super::IMMUTABLE);
    }
}
