use roost_vim_wire::types::{
    AboutInfo, HostConfigSummary, HostHardwareSummary, HostListSummary, HostListSummaryQuickStats,
    HostRuntimeInfo,
};
use roost_vim_wire::{MoRef, Value};

use super::entity::{entity_properties, status};
use super::{Answer, enumeration, known, named, refs, text};
use crate::inventory::Record;
use crate::inventory::{Host, HostConnection};
use crate::options::Product;
use crate::service::about_product;
use crate::vm::MAX_VM_MEMORY_MB;
use crate::world::World;

pub(super) const ALL: &[&str] = entity_properties! {
    "config" "configManager" "datastore" "datastoreBrowser" "hardware" "network" "runtime" "summary" "vm"
};

const VENDOR: &str = "Roost";
const MODEL: &str = "Simulated Host";
const CPU_MODEL: &str = "Simulated CPU @ 2.40GHz";

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let row = world.inventory.hosts.get(obj)?;
    match path {
        "name" => text(&row.name),
        "runtime" => known(&runtime(row)),
        "runtime.connectionState" | "summary.runtime.connectionState" => {
            named("HostSystemConnectionState", row.connection.as_str())
        }
        "runtime.powerState" | "summary.runtime.powerState" => {
            named("HostSystemPowerState", "poweredOn")
        }
        "runtime.inMaintenanceMode" | "summary.runtime.inMaintenanceMode" => {
            known(&row.maintenance)
        }
        "summary" => known(&summary(world, obj, row)),
        "summary.config.sslThumbprint" => known(&world.inventory.host_thumbprint),
        "overallStatus" | "summary.overallStatus" => {
            Some(Some(status(row.connection == HostConnection::Connected)))
        }
        "hardware" => Some(Some(hardware(row).value())),
        "config" => Some(Some(config(world, row).value())),
        "vm" => refs(world.inventory.vms_of(obj)),
        "datastore" => refs(
            world
                .inventory
                .datastores
                .iter()
                .filter(|(_, ds)| ds.hosts.contains(obj))
                .map(|(at, _)| at),
        ),
        "network" => refs(
            world
                .inventory
                .networks
                .iter()
                .filter(|(_, net)| net.hosts.contains(obj))
                .map(|(at, _)| at),
        ),
        "datastoreBrowser" => {
            let first = world.inventory.datastores.iter().find(|(_, row)| row.hosts.contains(obj));
            known(&first.map(|(_, row)| row.browser.clone()))
        }
        "configManager" => Some(Some(crate::host_config::managers(obj))),
        "capability" => Some(Some(
            Record::of("HostCapability")
                .set("recursiveResourcePoolsSupported", &true)
                .set("cpuMemoryResourceConfigurationSupported", &true)
                .set("rebootSupported", &true)
                .set("shutdownSupported", &true)
                .set("vmotionSupported", &true)
                .set("maintenanceModeSupported", &true)
                .set("maxSupportedVMs", &1024)
                .set("maxSupportedVcpus", &4096)
                .set("snapshotRelayoutSupported", &true)
                .set("maxSupportedVmMemory", &i32::try_from(MAX_VM_MEMORY_MB).unwrap_or(i32::MAX))
                .set("nestedHVSupported", &true)
                .value(),
        )),
        "licensableResource"
        | "remediationState"
        | "remediationResult"
        | "precheckRemediationResult"
        | "systemResources"
        | "answerFileValidationState"
        | "answerFileValidationResult"
        | "complianceCheckState"
        | "complianceCheckResult" => Some(None),
        _ => None,
    }
}

fn runtime(row: &Host) -> HostRuntimeInfo {
    HostRuntimeInfo {
        connection_state: row.connection.as_str().into(),
        power_state: "poweredOn".into(),
        standby_mode: Some("none".into()),
        in_maintenance_mode: row.maintenance,
        boot_time: Some(row.boot_time),
    }
}

fn summary(world: &World, obj: &MoRef, row: &Host) -> HostListSummary {
    let narrow = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
    let threads = row.cores.saturating_mul(2);
    HostListSummary {
        host: Some(obj.clone()),
        hardware: Some(HostHardwareSummary {
            vendor: VENDOR.into(),
            model: MODEL.into(),
            uuid: row.uuid.clone(),
            memory_size: row.memory,
            cpu_model: CPU_MODEL.into(),
            cpu_mhz: row.mhz,
            num_cpu_pkgs: 2,
            num_cpu_cores: row.cores,
            num_cpu_threads: threads,
            num_nics: 2,
            num_hbas: 1,
        }),
        runtime: Some(runtime(row)),
        config: HostConfigSummary {
            name: row.name.as_ref().into(),
            port: 443,
            ssl_thumbprint: world.inventory.host_thumbprint.clone(),
            product: Some(product(world)),
            vmotion_enabled: false,
        },
        quick_stats: HostListSummaryQuickStats {
            overall_cpu_usage: Some(narrow(row.demand.mhz)),
            overall_memory_usage: Some(narrow(row.demand.memory >> 20)),
            uptime: Some(3600),
        },
        overall_status: if row.connection == HostConnection::Connected { "green" } else { "red" }
            .into(),
        reboot_required: false,
    }
}

fn product(world: &World) -> AboutInfo {
    about_product(Product::HostAgent, &world.service.about.api_version)
}

fn hardware(row: &Host) -> Record {
    let hz = i64::from(row.mhz) * 1_000_000;
    Record::of("HostHardwareInfo")
        .record(
            "systemInfo",
            Record::of("HostSystemInfo")
                .text("vendor", VENDOR)
                .text("model", MODEL)
                .text("uuid", &row.uuid),
        )
        .record(
            "cpuInfo",
            Record::of("HostCpuInfo")
                .set("numCpuPackages", &2_i16)
                .set("numCpuCores", &row.cores)
                .set("numCpuThreads", &row.cores.saturating_mul(2))
                .set("hz", &hz),
        )
        .set("memorySize", &row.memory)
}

/// The part that transfers look at: where the host's management interface is.
fn config(world: &World, row: &Host) -> Record {
    // A host that was added by its address is there.
    let address = row
        .name
        .parse::<std::net::IpAddr>()
        .map_or_else(|_| "127.0.0.1".to_owned(), |ip| ip.to_string());
    let ip = Record::of("HostIpConfig")
        .set("dhcp", &false)
        .text("ipAddress", &address)
        .text("subnetMask", "255.0.0.0");
    let vnic = Record::of("HostVirtualNic")
        .text("device", "vmk0")
        .text("key", "management.key-vim.host.VirtualNic-vmk0")
        .text("portgroup", "Management Network")
        .record(
            "spec",
            Record::of("HostVirtualNicSpec").record("ip", ip).text("mac", "00:50:56:60:00:01"),
        );
    let net_config = Record::of("VirtualNicManagerNetConfig")
        .text("nicType", "management")
        .set("multiSelectAllowed", &true)
        .records("candidateVnic", "HostVirtualNic", vec![vnic.clone()])
        .put("selectedVnic", Value::string("management.key-vim.host.VirtualNic-vmk0"));
    Record::of("HostConfigInfo")
        .set("product", &product(world))
        .record(
            "network",
            Record::of("HostNetworkInfo").records("vnic", "HostVirtualNic", vec![vnic]),
        )
        .record(
            "virtualNicManagerInfo",
            Record::of("HostVirtualNicManagerInfo").records(
                "netConfig",
                "VirtualNicManagerNetConfig",
                vec![net_config],
            ),
        )
        .put("lockdownMode", enumeration("HostLockdownMode", "lockdownDisabled"))
}
