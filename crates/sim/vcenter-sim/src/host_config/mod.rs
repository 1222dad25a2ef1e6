//! What a host is configured with: the subsystems behind its `configManager`, each an object of its own.
//!
//! A host's configuration is made when it is first changed; until then all hosts share the usual one.

mod datastores;
mod network;
mod service;
mod storage;

use std::collections::BTreeMap;

use roost_vim_wire::{Element, MoRef, MoType, Request, Value};

use crate::call::{CallContext, CallResult, Failure};
use crate::inventory::property::is_documented;
use crate::inventory::{HostConnection, Inventory, Record};
use crate::model::calls;
use crate::property::{Found, no_such};
use crate::world::World;

/// The hosts whose configuration is no longer the usual one.
#[derive(Debug, Default)]
pub(crate) struct HostConfigs(BTreeMap<MoRef, HostConfig>);

#[derive(Debug, Clone, Default)]
struct HostConfig {
    network: network::Network,
    services: service::Services,
    options: Options,
    ntp_servers: Vec<String>,
}

/// Field of `configManager`, kind, and what its id begins with. Those that nobody has modelled have unset properties and answer
/// `NotSupported`.
const SUBSYSTEMS: &[(&str, &str, &str)] = &[
    ("cpuScheduler", "HostCpuSchedulerSystem", "cpuSchedulerSystem"),
    ("datastoreSystem", "HostDatastoreSystem", "datastoreSystem"),
    ("memoryManager", "HostMemorySystem", "memoryManager"),
    ("storageSystem", "HostStorageSystem", "storageSystem"),
    ("networkSystem", "HostNetworkSystem", "networkSystem"),
    ("vmotionSystem", "HostVMotionSystem", "vmotionSystem"),
    ("virtualNicManager", "HostVirtualNicManager", "virtualNicManager"),
    ("serviceSystem", "HostServiceSystem", "serviceSystem"),
    ("firewallSystem", "HostFirewallSystem", "firewallSystem"),
    ("advancedOption", "OptionManager", "EsxHostAdvSettings"),
    ("diagnosticSystem", "HostDiagnosticSystem", "diagnosticSystem"),
    ("autoStartManager", "HostAutoStartManager", "autoStartManager"),
    ("snmpSystem", "HostSnmpSystem", "snmpSystem"),
    ("dateTimeSystem", "HostDateTimeSystem", "dateTimeSystem"),
    ("patchManager", "HostPatchManager", "patchManager"),
    ("imageConfigManager", "HostImageConfigManager", "imageConfigManager"),
    ("bootDeviceSystem", "HostBootDeviceSystem", "bootDeviceSystem"),
    ("firmwareSystem", "HostFirmwareSystem", "firmwareSystem"),
    ("healthStatusSystem", "HostHealthStatusSystem", "healthStatusSystem"),
    ("pciPassthruSystem", "HostPciPassthruSystem", "pciPassthruSystem"),
    ("kernelModuleSystem", "HostKernelModuleSystem", "kernelModuleSystem"),
    ("authenticationManager", "HostAuthenticationManager", "authenticationManager"),
    ("powerSystem", "HostPowerSystem", "powerSystem"),
    ("cacheConfigurationManager", "HostCacheConfigurationManager", "cacheConfigManager"),
    ("esxAgentHostManager", "HostEsxAgentHostManager", "esxAgentHostManager"),
    ("iscsiManager", "IscsiManager", "iscsiManager"),
    ("vFlashManager", "HostVFlashManager", "vFlashManager"),
    ("vsanSystem", "HostVsanSystem", "vsanSystem"),
    ("messageBusProxy", "MessageBusProxy", "messageBusProxy"),
    ("hostAccessManager", "HostAccessManager", "hostAccessManager"),
    ("graphicsManager", "HostGraphicsManager", "graphicsManager"),
    ("vsanInternalSystem", "HostVsanInternalSystem", "vsanInternalSystem"),
    ("certificateManager", "HostCertificateManager", "certificateManager"),
    ("cryptoManager", "CryptoManagerHost", "cryptoManager"),
    ("nvdimmSystem", "HostNvdimmSystem", "nvdimmSystem"),
    ("assignableHardwareManager", "HostAssignableHardwareManager", "assignableHardwareManager"),
];

/// `host-17` has `networkSystem-17`; the one host of an ESXi has `networkSystem`.
fn id_of(stem: &str, host: &MoRef) -> String {
    match host.id.strip_prefix("host-") {
        Some(number) => format!("{stem}-{number}"),
        None => stem.to_owned(),
    }
}

/// The `configManager` of a host.
pub(crate) fn managers(host: &MoRef) -> Value {
    let all =
        SUBSYSTEMS.iter().fold(Record::of("HostConfigManager"), |all, (field, kind, stem)| {
            all.put(field, Value::Ref(MoRef::new(MoType::from(*kind), id_of(stem, host))))
        });
    all.value()
}

/// The host that a subsystem belongs to.
pub(crate) fn host_of(inventory: &Inventory, obj: &MoRef) -> Option<MoRef> {
    let (_, _, stem) = SUBSYSTEMS.iter().find(|(_, kind, _)| *kind == obj.kind.as_str())?;
    let host = match obj.id.strip_prefix(stem)? {
        "" => MoRef::new(MoType::HostSystem, "ha-host"),
        rest => MoRef::new(MoType::HostSystem, format!("host{rest}")),
    };
    inventory.hosts.contains(&host).then_some(host)
}

/// The configuration of a host, to be read.
fn read(world: &World, host: &MoRef) -> HostConfig {
    world.host_configs.0.get(host).cloned().unwrap_or_default()
}

fn change<'a>(world: &'a mut World, host: &MoRef) -> &'a mut HostConfig {
    world.host_configs.0.entry(host.clone()).or_default()
}

pub(crate) fn property(world: &World, obj: &MoRef, path: &str) -> Option<Found> {
    let host = host_of(&world.inventory, obj)?;
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let whole = match (obj.kind.as_str(), first) {
        ("HostNetworkSystem", "networkInfo") => network::info(world, &host),
        ("HostVirtualNicManager", "info") => network::nic_manager_info(world, &host),
        ("HostStorageSystem", "storageDeviceInfo") => storage::devices(world, &host),
        ("HostStorageSystem", "fileSystemVolumeInfo") => storage::volumes(world, &host),
        ("HostDatastoreSystem", "datastore") => {
            let all = world.inventory.datastores.iter();
            let own = all.filter(|(_, row)| row.hosts.contains(&host));
            let refs = own.map(|(at, _)| Value::Ref(at.clone())).collect();
            Value::Array(roost_vim_wire::Array::new("ManagedObjectReference", refs))
        }
        ("HostDatastoreSystem", "capabilities") => Record::of("HostDatastoreSystemCapabilities")
            .set("nfsMountCreationRequired", &true)
            .set("nfsMountCreationSupported", &true)
            .set("localDatastoreSupported", &true)
            .value(),
        ("HostServiceSystem", "serviceInfo") => service::info(world, &host),
        ("HostFirewallSystem", "firewallInfo") => service::firewall(world, &host),
        ("HostDateTimeSystem", "dateTimeInfo") => date_time(&read(world, &host).ntp_servers),
        ("OptionManager", "setting") => read(world, &host).options.setting(),
        (kind, first) if is_documented(kind, first) => return Some(Ok(None)),
        _ => return Some(no_such(path)),
    };
    let steps = rest.split('.').filter(|step| !step.is_empty());
    Some(Ok(steps.into_iter().try_fold(whole, |value, step| value.get(step))))
}

/// The properties that `all = true` reads.
pub(crate) fn all_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "HostNetworkSystem" => &["networkInfo"],
        "HostVirtualNicManager" => &["info"],
        "HostStorageSystem" => &["fileSystemVolumeInfo", "storageDeviceInfo"],
        "HostDatastoreSystem" => &["capabilities", "datastore"],
        "HostServiceSystem" => &["serviceInfo"],
        "HostFirewallSystem" => &["firewallInfo"],
        "HostDateTimeSystem" => &["dateTimeInfo"],
        _ => &[],
    }
}

pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    let host = host_of(&world.inventory, this)?;
    let row = world.inventory.hosts.get(&host)?;
    if row.connection != HostConnection::Connected {
        return Some(Err(Failure::of("HostNotConnected", "The host is not connected.")));
    }
    calls! { request;
        QueryNetworkHint => |asked| Ok(network::hints(&asked.device)),
        AddVirtualSwitch => |asked| {
            network::add_switch(world, &host, &asked.vswitch_name, asked.spec.as_ref())
        },
        RemoveVirtualSwitch => |asked| network::remove_switch(world, &host, &asked.vswitch_name),
        AddPortGroup => |asked| network::add_port_group(world, &host, &asked.portgrp),
        RemovePortGroup => |asked| network::remove_port_group(world, &host, &asked.pg_name),
        RefreshNetworkSystem => |_| Ok(()),
        RescanAllHba => |_| Ok(()),
        RescanVmfs => |_| Ok(()),
        RefreshStorageSystem => |_| Ok(()),
        CreateLocalDatastore => |asked| {
            datastores::create(world, &host, (&asked.name, &asked.path))
        },
        CreateNasDatastore => |asked| {
            let text = |name| asked.spec.text_of(name).unwrap_or_default().to_owned();
            let path = format!("{}:{}", text("remoteHost"), text("remotePath"));
            datastores::create(world, &host, (&text("localPath"), &path))
        },
        RemoveDatastore => |asked| datastores::remove(world, &host, &asked.datastore),
        QueryAvailableDisksForVmfs => |_| Ok(Vec::<Element>::new()),
        StartService => |asked| service::run(world, &host, &asked.id, true),
        StopService => |asked| service::run(world, &host, &asked.id, false),
        RestartService => |asked| service::run(world, &host, &asked.id, true),
        UpdateServicePolicy => |asked| {
            service::set_policy(world, &host, &asked.id, &asked.policy)
        },
        RefreshServices => |_| Ok(()),
        EnableRuleset => |asked| service::set_rules(world, &host, &asked.id, true),
        DisableRuleset => |asked| service::set_rules(world, &host, &asked.id, false),
        RefreshFirewall => |_| Ok(()),
        QueryDateTime => |_| Ok(cx.now),
        UpdateDateTimeConfig => |asked| {
            if let Some(ntp) = asked.config.child("ntpConfig") {
                let servers = ntp.children.iter().filter(|child| child.name == "server");
                change(world, &host).ntp_servers =
                    servers.map(|server| server.text.clone()).collect();
            }
            Ok(())
        },
    }
}

fn date_time(servers: &[String]) -> Value {
    let zone = Record::of("HostDateTimeSystemTimeZone")
        .text("key", "UTC")
        .text("name", "UTC")
        .text("description", "UTC")
        .set("gmtOffset", &0_i32);
    Record::of("HostDateTimeInfo")
        .record("timeZone", zone)
        .text("systemClockProtocol", "ntp")
        .record("ntpConfig", Record::of("HostNtpConfig").set("server", &servers.to_vec()))
        .value()
}

/// The advanced settings of a host.
#[derive(Debug, Clone)]
pub(crate) struct Options(BTreeMap<String, Value>);

impl Default for Options {
    fn default() -> Self {
        Self(BTreeMap::from([
            ("Config.HostAgent.log.level".into(), Value::string("info")),
            ("Config.HostAgent.plugins.solo.enableMob".into(), Value::Bool(false)),
            ("Mem.ShareForceSalting".into(), Value::Long(2)),
            ("UserVars.SuppressShellWarning".into(), Value::Long(0)),
        ]))
    }
}

impl Options {
    fn setting(&self) -> Value {
        crate::settings::as_array(&self.0)
    }
}

/// The settings behind an option manager that is a host's.
pub(crate) fn options(world: &World, this: &MoRef) -> Option<BTreeMap<String, Value>> {
    let host = host_of(&world.inventory, this)?;
    Some(read(world, &host).options.0)
}

pub(crate) fn set_options(
    world: &mut World,
    this: &MoRef,
    changed: impl IntoIterator<Item = (String, Value)>,
) {
    if let Some(host) = host_of(&world.inventory, this) {
        change(world, &host).options.0.extend(changed);
    }
}
