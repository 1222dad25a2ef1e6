//! The VMs and templates that are there at the start.

use std::net::IpAddr;
use std::sync::Arc;

use roost_vim_wire::types::VirtualDevice;
use roost_vim_wire::{MoRef, MoType};

use crate::guest::{Guest, GuestAddress, GuestBehaviour, ToolsState};
use crate::inventory::build::{Builder, Places};
use crate::inventory::draw_uuid;
use crate::options::{Product, TemplateOptions};
use crate::pool::Demand;
use crate::vm::{
    Config, Device, Disk, DiskFile, FilePath, Own, Place, Power, Settings, Snapshot, Snapshots,
    StandardDevices, Vm, hardware, initial_bytes, keys,
};

/// Of a model VM, as vcsim has it.
const MODEL_DISK_KB: i64 = 10 << 20;
const MODEL_MEMORY_MB: i32 = 32;

/// What the VMs of one kind have in common.
struct Pattern {
    devices: StandardDevices,
    nic: Arc<VirtualDevice>,
    nic_key: i32,
    settings: Arc<Settings>,
    behaviour: Arc<GuestBehaviour>,
    cpus: i32,
    memory_mb: i32,
    disk_kb: i64,
    has_tools: bool,
}

impl Builder<'_> {
    /// So many VMs at the start, by place: one pool or one standalone host.
    fn model_places(&self) -> usize {
        let options = self.options;
        match options.product {
            Product::VirtualCenter => {
                options.datacenters
                    * (options.clusters * (options.pools.max(1) + options.apps)
                        + options.standalone_hosts)
            }
            Product::HostAgent => 1,
        }
    }

    /// Cores and memory of a host: so that the VMs which it may have to run at the start take at most half.
    pub(super) fn host_size(&self) -> (i16, i64) {
        let options = self.options;
        let per_cluster = options.vms * (options.pools.max(1) + options.apps);
        let per_host = per_cluster.div_ceil(options.hosts.max(1)).max(options.vms);
        let per_host = i64::try_from(per_host).unwrap_or(i64::MAX);
        let one = Demand::of(1, MODEL_MEMORY_MB, &Settings::default());
        let cores =
            (per_host.saturating_mul(one.mhz) * 2 / 2_400 + 1).clamp(32, i64::from(i16::MAX));
        let memory = per_host.saturating_mul(one.memory).saturating_mul(2).max(256 << 30);
        let cores = options.host_cores.unwrap_or_else(|| i16::try_from(cores).unwrap_or(i16::MAX));
        (cores, options.host_memory_gb.map_or(memory, |gb| gb << 30))
    }

    pub(super) fn datastore_capacity(&self) -> i64 {
        let options = self.options;
        let vms = options.vms.saturating_mul(self.model_places()) / options.datastores.max(1) + 1;
        let needed = initial_bytes(MODEL_DISK_KB, true)
            .saturating_mul(i64::try_from(vms).unwrap_or(i64::MAX));
        options.datastore_gb.map_or((4 << 40_i64).max(needed.saturating_mul(2)), |gb| gb << 30)
    }

    pub(super) fn model_vms(
        &mut self,
        prefix: &str,
        places: &Places,
        computes: &[MoRef],
        networks: &[MoRef],
    ) {
        let Some(pattern) = self.pattern(networks) else { return };
        let mut serial = 0;
        for compute in computes {
            let Some(row) = self.inventory.computes.get(compute).cloned() else { continue };
            if row.hosts.is_empty() {
                continue;
            }
            let root_pool = self
                .inventory
                .pools
                .get(&row.pool)
                .map(|pool| pool.pools.clone())
                .unwrap_or_default();
            let pools: Vec<(MoRef, String)> = if compute.kind == MoType::ComputeResource {
                let name = if prefix == "ha" { "ha-host".into() } else { row.name.to_string() };
                vec![(row.pool.clone(), name)]
            } else {
                let own = (self.options.pools == 0)
                    .then(|| (row.pool.clone(), format!("{}_RP0", row.name)));
                let name = |pool: &MoRef| self.inventory.name(pool).unwrap_or_default().to_owned();
                own.into_iter()
                    .chain(root_pool.iter().map(|pool| (pool.clone(), name(pool))))
                    .collect()
            };
            for (pool, prefix) in pools {
                for index in 0..self.options.vms {
                    let name: Arc<str> = format!("{prefix}_VM{index}").into();
                    let host = row.hosts[index % row.hosts.len()].clone();
                    let at = (places.vm.clone(), pool.clone(), host);
                    let (moref, vm) = self.model_vm(&name, at, &pattern, serial);
                    self.inventory.place_vm(&moref, vm);
                    serial += 1;
                }
            }
        }
    }

    fn pattern(&self, networks: &[MoRef]) -> Option<Pattern> {
        let backing = self.inventory.nic_backing(networks.first()?)?;
        Some(Pattern {
            devices: StandardDevices::new(),
            nic: Arc::new(hardware::nic("VirtualE1000", backing)),
            nic_key: keys::NIC,
            settings: Arc::new(Settings::default()),
            behaviour: Arc::new(GuestBehaviour::default()),
            cpus: 1,
            memory_mb: MODEL_MEMORY_MB,
            disk_kb: MODEL_DISK_KB,
            has_tools: true,
        })
    }

    fn model_vm(
        &mut self,
        name: &Arc<str>,
        (folder, pool, host): (MoRef, MoRef, MoRef),
        pattern: &Pattern,
        serial: usize,
    ) -> (MoRef, Vm) {
        let moref = self.inventory.ids.vm();
        let mac = self.inventory.next_mac();
        let datacenter = self.inventory.datacenter_of(&folder);
        let datastores = datacenter
            .and_then(|dc| self.inventory.datacenters.get(&dc))
            .map(|row| row.datastores.as_slice());
        let datastore = datastores
            .and_then(|all| all.get(serial % all.len().max(1)))
            .cloned()
            .unwrap_or_else(|| MoRef::new(MoType::Datastore, "none"));
        let disk = Disk {
            capacity_kb: pattern.disk_kb,
            is_blank: false,
            file: Arc::new(DiskFile {
                path: FilePath::new(&datastore, format!("{name}/{name}.vmdk")),
                uuid: draw_uuid(self.random),
                thin: true,
                parent: None,
            }),
        };
        let is_on = self.options.autostart;
        let guest = if is_on && pattern.has_tools {
            let ip = self.inventory.dhcp.lease(mac);
            let prefix = self.inventory.dhcp.prefix;
            let address = |ip| GuestAddress {
                device: pattern.nic_key,
                ip: IpAddr::V4(ip),
                prefix,
                is_static: false,
            };
            Guest {
                boot: 1,
                tools: ToolsState::Running,
                is_ready: true,
                host_name: Some(Arc::clone(name)),
                addresses: ip.map(address).into_iter().collect(),
                customization: None,
            }
        } else {
            Guest::default()
        };
        let config = Config {
            annotation: None,
            cpus: pattern.cpus,
            cores_per_socket: 1,
            memory_mb: pattern.memory_mb,
            has_tools: pattern.has_tools,
            settings: Arc::clone(&pattern.settings),
            extra: Arc::default(),
            devices: pattern.devices.complete(disk, &pattern.nic, mac),
        };
        let home = FilePath::new(&datastore, format!("{name}/{name}.vmx"));
        let place = Place { folder, pool: Some(pool), host, home };
        let mut vm = Vm::new(Arc::clone(name), place, config, self.random, self.now);
        vm.power = if is_on { Power::On } else { Power::Off };
        vm.boot_time = is_on.then_some(self.now);
        vm.guest = guest;
        vm.behaviour = Arc::clone(&pattern.behaviour);
        (moref, vm)
    }

    pub(super) fn templates(&mut self, places: &Places, computes: &[MoRef], networks: &[MoRef]) {
        // A cluster rather than a standalone host, where there is one.
        let Some(compute) =
            computes.last().and_then(|compute| self.inventory.computes.get(compute)).cloned()
        else {
            return;
        };
        let Some(host) = compute.hosts.first().cloned() else { return };
        for template in &self.options.templates {
            let at = (places.vm.clone(), compute.pool.clone(), host.clone());
            if let Some((moref, vm)) = self.template(template, at, networks) {
                self.inventory.place_vm(&moref, vm);
            }
        }
    }

    /// A template that is not in the tables yet.
    pub(super) fn template(
        &mut self,
        template: &TemplateOptions,
        at: (MoRef, MoRef, MoRef),
        networks: &[MoRef],
    ) -> Option<(MoRef, Vm)> {
        let pattern = self.template_pattern(template, networks)?;
        let (moref, mut vm) = self.model_vm(&template.name.as_str().into(), at, &pattern, 0);
        self.switch_off(&mut vm);
        vm.pool = None;
        vm.template = true;
        if template.snapshot {
            self.add_base_snapshot(&moref, &mut vm);
        }
        Some((moref, vm))
    }

    /// A VM like those at the start, off, that is not in the tables yet.
    pub(super) fn foreign_vm(
        &mut self,
        name: &Arc<str>,
        at: (MoRef, MoRef, MoRef),
        networks: &[MoRef],
    ) -> Option<(MoRef, Vm)> {
        let pattern = self.pattern(networks)?;
        let (moref, mut vm) = self.model_vm(name, at, &pattern, 0);
        self.switch_off(&mut vm);
        Some((moref, vm))
    }

    fn switch_off(&mut self, vm: &mut Vm) {
        vm.power = Power::Off;
        vm.boot_time = None;
        if let Some(mac) = vm.config.nics().find_map(Device::mac) {
            self.inventory.dhcp.release(mac);
        }
        vm.guest = Guest::default();
    }

    fn template_pattern(&self, template: &TemplateOptions, networks: &[MoRef]) -> Option<Pattern> {
        let backing = self.inventory.nic_backing(networks.first()?)?;
        let mut settings =
            Settings { guest_id: guest_id(&template.name).into(), ..Settings::default() };
        if !template.tools {
            settings.tools.tools_version = Some(0);
            settings.tools.tools_install_type = Some("guestToolsTypeUnknown".into());
        }
        let behaviour = GuestBehaviour {
            credentials: template.guest_credentials.clone(),
            ..GuestBehaviour::default()
        };
        Some(Pattern {
            devices: StandardDevices::new(),
            nic: Arc::new(hardware::nic("VirtualVmxnet3", backing)),
            nic_key: keys::NIC,
            settings: Arc::new(settings),
            behaviour: Arc::new(behaviour),
            cpus: template.cpus,
            memory_mb: i32::try_from(template.memory_mb).unwrap_or(i32::MAX),
            disk_kb: template.disk_gb << 20,
            has_tools: template.tools,
        })
    }

    /// The snapshot that makes linked clones of a template possible: its disk has a parent from then on.
    fn add_base_snapshot(&mut self, moref: &MoRef, vm: &mut Vm) {
        let snapshot = Snapshot {
            moref: self.inventory.ids.snapshot(),
            parent: None,
            name: "base".into(),
            description: "What linked clones share".into(),
            number: 1,
            time: self.now,
            quiesced: false,
            power: Power::Off,
            config: vm.config.clone(),
        };
        for device in &mut vm.config.devices {
            if let Own::Disk(disk) = &mut device.own {
                disk.file = Arc::new(DiskFile {
                    path: FilePath::new(
                        &vm.home.datastore,
                        format!("{0}/{0}-000001.vmdk", vm.name),
                    ),
                    uuid: disk.file.uuid,
                    thin: true,
                    parent: Some(Arc::clone(&disk.file)),
                });
            }
        }
        self.inventory.snapshots.insert(&snapshot.moref, moref.clone());
        let current = Some(snapshot.moref.clone());
        vm.snapshots = Some(Box::new(Snapshots { list: vec![snapshot], current, made: 1 }));
    }
}

/// The guest id that fits a template's name.
fn guest_id(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let known = [
        ("debian12", "debian12_64Guest"),
        ("debian", "debian11_64Guest"),
        ("ubuntu", "ubuntu64Guest"),
        ("centos", "centos9_64Guest"),
        ("rhel", "rhel9_64Guest"),
        ("windows", "windows2022srvNext_64Guest"),
    ];
    known.iter().find(|(part, _)| name.contains(part)).map_or("other5xLinux64Guest", |(_, id)| id)
}
