//! The services of a host, and the firewall before them.

use std::collections::BTreeMap;

use roost_vim_wire::{MoRef, Value};

use super::{change, read};
use crate::call::Failure;
use crate::inventory::Record;
use crate::world::World;

/// What differs from [`SERVICES`] and [`RULES`].
#[derive(Debug, Clone, Default)]
pub(super) struct Services {
    running: BTreeMap<String, bool>,
    policy: BTreeMap<String, String>,
    rules: BTreeMap<String, bool>,
}

struct Service {
    key: &'static str,
    label: &'static str,
    runs: bool,
    rules: &'static [&'static str],
}

const SERVICES: &[Service] = &[
    Service { key: "DCUI", label: "Direct Console UI", runs: true, rules: &[] },
    Service { key: "TSM", label: "ESXi Shell", runs: false, rules: &[] },
    Service { key: "TSM-SSH", label: "SSH", runs: false, rules: &["sshServer"] },
    Service { key: "ntpd", label: "NTP Daemon", runs: false, rules: &["ntpClient"] },
    Service { key: "snmpd", label: "SNMP Server", runs: false, rules: &["snmp"] },
    Service { key: "vpxa", label: "VMware vCenter Agent", runs: true, rules: &["vpxHeartbeats"] },
];

struct Rules {
    key: &'static str,
    label: &'static str,
    port: i32,
    direction: &'static str,
    protocol: &'static str,
    is_open: bool,
}

const RULES: &[Rules] = &[
    rules("sshServer", "SSH Server", 22, "inbound", "tcp", true),
    rules("sshClient", "SSH Client", 22, "outbound", "tcp", false),
    rules("ntpClient", "NTP Client", 123, "outbound", "udp", false),
    rules("snmp", "SNMP Server", 161, "inbound", "udp", false),
    rules("vSphereClient", "vSphere Web Client", 443, "inbound", "tcp", true),
    rules("nfsClient", "NFS Client", 2049, "outbound", "tcp", false),
    rules("vpxHeartbeats", "VMware vCenter Agent", 902, "outbound", "udp", true),
];

const fn rules(
    key: &'static str,
    label: &'static str,
    port: i32,
    direction: &'static str,
    protocol: &'static str,
    is_open: bool,
) -> Rules {
    Rules { key, label, port, direction, protocol, is_open }
}

pub(super) fn info(world: &World, host: &MoRef) -> Value {
    let own = read(world, host).services;
    let shown = SERVICES.iter().map(|service| {
        let runs = own.running.get(service.key).copied().unwrap_or(service.runs);
        let usual = if service.runs { "on" } else { "off" };
        let rules: Vec<String> = service.rules.iter().map(|&key| key.to_owned()).collect();
        Record::of("HostService")
            .text("key", service.key)
            .text("label", service.label)
            .set("required", &false)
            .set("uninstallable", &false)
            .set("running", &runs)
            .set("ruleset", &rules)
            .text("policy", own.policy.get(service.key).map_or(usual, String::as_str))
    });
    Record::of("HostServiceInfo").records("service", "HostService", shown.collect()).value()
}

pub(super) fn firewall(world: &World, host: &MoRef) -> Value {
    let own = read(world, host).services;
    let shown = RULES.iter().map(|rules| {
        let rule = Record::of("HostFirewallRule")
            .set("port", &rules.port)
            .text("direction", rules.direction)
            .text("portType", "dst")
            .text("protocol", rules.protocol);
        Record::of("HostFirewallRuleset")
            .text("key", rules.key)
            .text("label", rules.label)
            .set("required", &false)
            .records("rule", "HostFirewallRule", vec![rule])
            .set("enabled", &own.rules.get(rules.key).copied().unwrap_or(rules.is_open))
    });
    let usual = Record::of("HostFirewallDefaultPolicy")
        .set("incomingBlocked", &true)
        .set("outgoingBlocked", &true);
    Record::of("HostFirewallInfo")
        .record("defaultPolicy", usual)
        .records("ruleset", "HostFirewallRuleset", shown.collect())
        .value()
}

fn known(id: &str) -> Result<String, Failure> {
    let missing = || Failure::of("NotFound", "The object or item referred to could not be found.");
    SERVICES.iter().find(|service| service.key == id).map(|_| id.to_owned()).ok_or_else(missing)
}

pub(super) fn run(world: &mut World, host: &MoRef, id: &str, runs: bool) -> Result<(), Failure> {
    let id = known(id)?;
    change(world, host).services.running.insert(id, runs);
    Ok(())
}

pub(super) fn set_policy(
    world: &mut World,
    host: &MoRef,
    id: &str,
    policy: &str,
) -> Result<(), Failure> {
    let id = known(id)?;
    if !matches!(policy, "on" | "off" | "automatic") {
        return Err(Failure::invalid_argument("policy"));
    }
    change(world, host).services.policy.insert(id, policy.to_owned());
    Ok(())
}

pub(super) fn set_rules(
    world: &mut World,
    host: &MoRef,
    id: &str,
    is_open: bool,
) -> Result<(), Failure> {
    if !RULES.iter().any(|rules| rules.key == id) {
        return Err(Failure::of("NotFound", "The object or item referred to could not be found."));
    }
    change(world, host).services.rules.insert(id.to_owned(), is_open);
    Ok(())
}
