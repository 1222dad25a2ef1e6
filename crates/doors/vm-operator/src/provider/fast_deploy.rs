//! Fast deploy: a VM of disks that lie on its datastore already, copied or linked, instead of one that vCenter fetches from a library.

use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt as _;
use roost_fleet::{DiskPlace, DiskSource, FromDisks, MakeBy};
use roost_vim::wire::Element;
use roost_vim::wire::MoRef;
use roost_vim::wire::methods::CreateVmTask;
use roost_vim::wire::types::{
    OptionValue, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecFileOperation as FileOperation, VirtualMachineConfigSpec,
    VirtualMachineFileInfo,
};
use roost_vim::{DatastorePath, ImportSpec, defined_profile, thin_disk};

use super::prereq::Prereqs;
use super::{FastDeployMode, Provider};
use crate::api::names::{annotation, extra_config};
use crate::api::{CacheFile, CacheFileType, VirtualMachine};
use crate::class::has_passthrough;
use crate::flow::{Flow, Halt};
use crate::images::has_extension;

/// An image whose files are where the VM goes.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    pub(crate) mode: FastDeployMode,
    pub(crate) place: Arc<DiskPlace>,
    pub(crate) files: Vec<CacheFile>,
    pub(crate) descriptor: Arc<str>,
}

/// What the trial at the start has shown of this vCenter: whether disks outlive VMs that are linked to them.
#[derive(Debug, Default)]
pub(crate) struct Linked(Mutex<Option<bool>>);

impl Linked {
    pub(crate) fn set(&self, keeps_parents: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeps_parents);
    }

    pub(crate) fn is_safe(&self) -> bool {
        self.verdict() == Some(true)
    }

    pub(crate) fn verdict(&self) -> Option<bool> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the disks of a VM come to be; `None` is by vCenter, without the cache. The annotation goes before the configuration. Linked disks need a server that keeps what
/// they stand on; devices that are passed through cannot be promoted while the VM runs, and a disk on top of another does not grow.
pub(crate) fn mode(
    vm: &VirtualMachine,
    base: &VirtualMachineConfigSpec,
    configured: Option<FastDeployMode>,
    is_linking_safe: bool,
) -> Option<FastDeployMode> {
    let configured = configured?;
    let has_instance_storage = vm.spec.volumes.iter().any(|volume| {
        volume.persistent_volume_claim.as_ref().is_some_and(|of| of.instance_volume_claim.is_some())
    });
    if has_instance_storage {
        return None;
    }
    let said = vm.annotations().get(annotation::FAST_DEPLOY).filter(|text| !text.is_empty());
    let mode = match said {
        Some(text) => FastDeployMode::parse(text)?,
        None => configured,
    };
    let grows = vm.spec.advanced.as_ref().is_some_and(|of| of.boot_disk_capacity.is_some());
    let is_direct = !is_linking_safe || has_passthrough(base) || grows;
    Some(if is_direct { FastDeployMode::Direct } else { mode })
}

impl Provider {
    pub(crate) fn fast_deploy_mode(
        &self,
        vm: &VirtualMachine,
        base: &VirtualMachineConfigSpec,
    ) -> Option<FastDeployMode> {
        mode(vm, base, self.settings.features.fast_deploy, self.linked.is_safe())
    }

    /// Whether the files that the cache speaks of are there.
    pub(crate) async fn has_all_files(&self, cached: &Cached) -> Flow<bool> {
        let failed = || Halt::because("looking at the image cache");
        let paths: Vec<DatastorePath> =
            cached.files.iter().filter_map(|file| file.id.parse().ok()).collect();
        let Some(directory) = paths.first().map(DatastorePath::parent) else { return Ok(false) };
        let DiskPlace { datacenter, datastore, .. } = &*cached.place;
        let observer = self.fleet.observer();
        let files = observer.observe_datastore(datacenter, datastore).await.map_err(failed())?;
        let there = files.list(&directory, None).await.map_err(failed())?.unwrap_or_default();
        let is_there = |path: &DatastorePath| {
            there.iter().any(|file| file.path.file_name() == path.file_name())
        };
        Ok(paths.len() == cached.files.len() && paths.iter().all(is_there))
    }

    /// The request for a VM of cached disks. `config` has what the object and its class say, and no devices of the image.
    pub(crate) async fn make_of_cached(
        &self,
        vm: &VirtualMachine,
        prereqs: &Prereqs,
        cached: &Cached,
        (folder, pool): (&MoRef, &MoRef),
        config: VirtualMachineConfigSpec,
    ) -> Flow<MakeBy> {
        let name = vm.name_any();
        let datastore = &cached.place.datastore;
        let asked = self.fleet.observer();
        let described = asked.import_spec(&cached.descriptor, &name, pool, &datastore.moref).await;
        let described = described.map_err(Halt::because("the image's descriptor"))?;
        let directory = vm.uid().unwrap_or_else(|| name.clone());
        let home = DatastorePath::new(datastore.name.clone(), &directory);
        let policy = prereqs.storage.policy.as_deref();
        let plan = Plan { cached, home: &home, name: &name, policy };
        let made = plan.make(described, config).map_err(Halt::failed)?;
        let Made { config, disks, files } = made;
        let create = CreateVmTask { this: folder.clone(), config, pool: pool.clone(), host: None };
        Ok(MakeBy::FromDisks(Box::new(FromDisks {
            place: DiskPlace::clone(&cached.place),
            directory,
            disks,
            disk_spec: Some(thin_disk(policy, None)),
            files,
            create,
        })))
    }
}

/// What is known before the request is written.
struct Plan<'a> {
    cached: &'a Cached,
    home: &'a DatastorePath,
    name: &'a str,
    policy: Option<&'a str>,
}

#[derive(Debug)]
struct Made {
    config: VirtualMachineConfigSpec,
    disks: Vec<DiskSource>,
    files: Vec<DiskSource>,
}

/// Devices of the image keep apart from those of the class and from new cards: all are named by negative keys.
const APART: i32 = 10_000;

impl Plan<'_> {
    /// The image's hardware, with what the object and its class say before it. The disks are where they will be.
    fn make(
        &self,
        described: ImportSpec,
        mut config: VirtualMachineConfigSpec,
    ) -> Result<Made, String> {
        let ImportSpec { config: image, files: filled } = described;
        let mut made = Made {
            config: VirtualMachineConfigSpec::default(),
            disks: Vec::new(),
            files: Vec::new(),
        };
        let mut parents = Vec::new();
        let mut devices = Vec::new();
        let mut disks = 0_usize;
        for mut change in image.device_change.clone() {
            if change.device.is_nic() {
                continue;
            }
            if change.device.is_disk() {
                let source = filled.iter().find(|(key, _)| *key == change.device.key);
                let source = source.map(|(_, file)| self.source(file)).transpose()?;
                let own = format!("disk-{disks}.vmdk");
                disks += 1;
                self.lay_disk(&mut change, &own, source.as_ref());
                match source {
                    Some(parent) if self.cached.mode == FastDeployMode::Linked => {
                        parents.push(parent.file_name().to_owned());
                    }
                    Some(from) => made.disks.push(DiskSource { from, to: own }),
                    None => {}
                }
            }
            move_apart(&mut change);
            devices.push(change);
        }
        devices.append(&mut config.device_change);
        config.device_change = devices;
        inherit(&mut config, image);
        config.files = Some(VirtualMachineFileInfo {
            vm_path_name: Some(self.home.join(&format!("{}.vmx", self.name)).to_string()),
            ..VirtualMachineFileInfo::default()
        });
        if let Some(policy) = self.policy {
            config.vm_profile = vec![defined_profile("vmProfile", policy)];
        }
        if !parents.is_empty() {
            set(&mut config, extra_config::KEEP_DISKS, &parents.join(","));
        }
        let others = self.cached.files.iter().filter(|file| file.type_ == CacheFileType::Other);
        for file in others.filter(|file| has_extension(&file.id, "nvram")) {
            let to = format!("{}.nvram", self.name);
            set(&mut config, "nvram", &to);
            let from = file.id.parse().map_err(|error| format!("the image cache: {error}"))?;
            made.files.push(DiskSource { from, to });
        }
        made.config = config;
        Ok(made)
    }

    /// The cached file that a disk of the image is filled from.
    fn source(&self, file: &str) -> Result<DatastorePath, String> {
        let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
        let is_it = |known: &&CacheFile| base(&known.name) == base(file);
        let found = self.cached.files.iter().find(is_it);
        let found = found.ok_or_else(|| format!("the image cache has no {file}"))?;
        found.id.parse().map_err(|error| format!("the image cache: {error}"))
    }

    fn lay_disk(
        &self,
        change: &mut VirtualDeviceConfigSpec,
        own: &str,
        source: Option<&DatastorePath>,
    ) {
        let backing = |file: &DatastorePath| VirtualDeviceBackingInfo {
            file_name: Some(file.to_string()),
            disk_mode: Some("persistent".to_owned()),
            thin_provisioned: Some(true),
            ..VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")
        };
        let mut new = backing(&self.home.join(own));
        let is_linked = self.cached.mode == FastDeployMode::Linked;
        change.file_operation = match source {
            // The copy is there.
            Some(_) if !is_linked => None,
            Some(parent) => {
                new.parent = Some(Box::new(backing(parent)));
                Some(FileOperation::Create)
            }
            None => Some(FileOperation::Create),
        };
        change.device.backing = Some(new);
        change.profile =
            self.policy.map(|policy| defined_profile("profile", policy)).into_iter().collect();
    }
}

fn move_apart(change: &mut VirtualDeviceConfigSpec) {
    let apart = |key: &mut i32| {
        if *key < 0 {
            *key -= APART;
        }
    };
    apart(&mut change.device.key);
    if let Some(key) = &mut change.device.controller_key {
        apart(key);
    }
}

fn set(config: &mut VirtualMachineConfigSpec, key: &str, value: &str) {
    config.extra_config.retain(|option| option.key != key);
    config.extra_config.push(OptionValue::text(key, value));
}

/// What the image says and nobody else does.
fn inherit(config: &mut VirtualMachineConfigSpec, image: VirtualMachineConfigSpec) {
    config.guest_id = config.guest_id.take().or(image.guest_id);
    config.version = config.version.take().or(image.version);
    config.firmware = config.firmware.take().or(image.firmware);
    config.boot_options = config.boot_options.take().or(image.boot_options);
    config.num_cpus = config.num_cpus.or(image.num_cpus);
    config.memory_mb = config.memory_mb.or(image.memory_mb);
    config.num_cores_per_socket = config.num_cores_per_socket.or(image.num_cores_per_socket);
    config.cpu_hot_add_enabled = config.cpu_hot_add_enabled.or(image.cpu_hot_add_enabled);
    config.memory_hot_add_enabled = config.memory_hot_add_enabled.or(image.memory_hot_add_enabled);
    config.nested_hv_enabled = config.nested_hv_enabled.or(image.nested_hv_enabled);
    config.v_app_config = image.v_app_config.map(open_properties);
    for option in image.extra_config {
        let is_set = config.extra_config.iter().any(|known| known.key == option.key);
        if !is_set && extra_config::is_inherited(&option.key) {
            config.extra_config.push(option);
        }
    }
}

/// What a deployment by vCenter would have worked out or asked for is for the user to set: expressions and addresses out of pools are plain texts.
fn open_properties(mut config: Element) -> Element {
    for property in config.children.iter_mut().filter(|child| child.name == "property") {
        let Some(info) = property.child_mut("info") else { continue };
        let kind = info.text_of("type").unwrap_or_default();
        if kind != "expression" && !kind.starts_with("ip:") {
            continue;
        }
        for (name, value) in
            [("type", "string"), ("userConfigurable", "true"), ("defaultValue", "")]
        {
            if let Some(field) = info.child_mut(name) {
                value.clone_into(&mut field.text);
            }
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use roost_vim::Found;
    use roost_vim::wire::MoType;
    use roost_vim::wire::types::VirtualDevice;

    use super::*;
    use crate::api::CachedDiskType;
    use crate::api::vm::Advanced;

    #[test]
    fn the_annotation_goes_before_the_configuration_and_safety_before_both() {
        use FastDeployMode::{Direct, Linked};
        let pci = VirtualMachineConfigSpec {
            device_change: vec![VirtualDeviceConfigSpec {
                device: VirtualDevice::of("VirtualPCIPassthrough"),
                ..VirtualDeviceConfigSpec::default()
            }],
            ..VirtualMachineConfigSpec::default()
        };
        let plain = VirtualMachineConfigSpec::default();
        for (case, said, base, configured, is_safe, want) in [
            ("off", Some("linked"), &plain, None, true, None),
            ("configured", None, &plain, Some(Linked), true, Some(Linked)),
            ("said", Some("Direct"), &plain, Some(Linked), true, Some(Direct)),
            ("said the other way", Some("linked"), &plain, Some(Direct), true, Some(Linked)),
            ("said no", Some("no"), &plain, Some(Linked), true, None),
            ("said nothing", Some(""), &plain, Some(Linked), true, Some(Linked)),
            ("not tried yet", None, &plain, Some(Linked), false, Some(Direct)),
            ("passthrough", None, &pci, Some(Linked), true, Some(Direct)),
        ] {
            let mut vm = VirtualMachine::default();
            if let Some(said) = said {
                vm.annotations_mut().insert(annotation::FAST_DEPLOY.into(), said.into());
            }
            assert_eq!(mode(&vm, base, configured, is_safe), want, "{case}");
        }
        let mut grown = VirtualMachine::default();
        grown.spec.advanced = Some(Advanced {
            boot_disk_capacity: Some(crate::api::Quantity::new("10Gi")),
            ..Advanced::default()
        });
        assert_eq!(mode(&grown, &plain, Some(Linked), true), Some(Direct));
    }

    fn cached(mode: FastDeployMode) -> Cached {
        let found = |name: &str, kind| Found {
            path: String::new(),
            name: name.to_owned(),
            moref: roost_vim::wire::MoRef::new(kind, "x-1"),
        };
        let file = |id: &str, name: &str, type_| CacheFile {
            id: id.to_owned(),
            type_,
            name: name.to_owned(),
            disk_type: Some(CachedDiskType::Classic),
        };
        Cached {
            mode,
            place: Arc::new(DiskPlace {
                datacenter: found("DC0", MoType::Datacenter),
                datastore: found("ds", MoType::Datastore),
                names_directories: false,
            }),
            files: vec![
                file("[ds] vmi-1/a.vmdk", "d.vmdk", CacheFileType::Disk),
                file("[ds] vmi-1/b.nvram", "d.nvram", CacheFileType::Other),
            ],
            descriptor: "".into(),
        }
    }

    fn described() -> ImportSpec {
        let disk = |key: i32| VirtualDeviceConfigSpec {
            device: VirtualDevice {
                key,
                controller_key: Some(-1),
                ..VirtualDevice::of("VirtualDisk")
            },
            ..VirtualDeviceConfigSpec::default()
        };
        let card = VirtualDeviceConfigSpec {
            device: VirtualDevice { key: -9, ..VirtualDevice::of("VirtualVmxnet3") },
            ..VirtualDeviceConfigSpec::default()
        };
        ImportSpec {
            config: VirtualMachineConfigSpec {
                guest_id: Some("ubuntu64Guest".into()),
                device_change: vec![disk(-2), disk(-3), card],
                extra_config: vec![
                    OptionValue::text("guestinfo.x", "1"),
                    OptionValue::text("y", "2"),
                ],
                ..VirtualMachineConfigSpec::default()
            },
            files: vec![(-2, "d.vmdk".to_owned())],
        }
    }

    #[test]
    fn disks_are_copied_or_linked_and_blank_ones_are_made() {
        let home = DatastorePath::new("ds", "uid-1");
        for mode in [FastDeployMode::Direct, FastDeployMode::Linked] {
            let cached = cached(mode);
            let plan = Plan { cached: &cached, home: &home, name: "web-0", policy: Some("p") };
            let made = plan.make(described(), VirtualMachineConfigSpec::default()).unwrap();
            let devices = &made.config.device_change;
            assert_eq!(devices.len(), 2, "cards are the object's");
            let backing = |index: usize| devices[index].device.backing.as_ref().unwrap();
            assert_eq!(backing(0).file_name.as_deref(), Some("[ds] uid-1/disk-0.vmdk"));
            let parent = backing(0).parent.as_ref().and_then(|of| of.file_name.clone());
            let keep =
                made.config.extra_config.iter().find(|of| of.key == extra_config::KEEP_DISKS);
            if mode == FastDeployMode::Linked {
                assert_eq!(parent.as_deref(), Some("[ds] vmi-1/a.vmdk"));
                assert!(made.disks.is_empty());
                assert_eq!(devices[0].file_operation, Some(FileOperation::Create));
                assert_eq!(keep.unwrap().value.as_ref().unwrap().as_str(), Some("a.vmdk"));
            } else {
                assert_eq!((parent, devices[0].file_operation.clone()), (None, None));
                assert_eq!(made.disks.len(), 1);
                assert!(keep.is_none());
            }
            assert_eq!(devices[1].file_operation, Some(FileOperation::Create), "a blank disk");
            assert_eq!(devices[1].device.controller_key, Some(-1 - APART));
            assert_eq!(made.config.guest_id.as_deref(), Some("ubuntu64Guest"));
            let keys: Vec<_> = made.config.extra_config.iter().map(|of| &*of.key).collect();
            assert!(!keys.contains(&"guestinfo.x") && keys.contains(&"y"), "{keys:?}");
            assert_eq!(made.files[0].to, "web-0.nvram");
            assert_eq!(devices[0].profile.len(), 1);
        }
        let mut other = described();
        other.files[0].1 = "unknown.vmdk".to_owned();
        let cached = cached(FastDeployMode::Direct);
        let plan = Plan { cached: &cached, home: &home, name: "web-0", policy: None };
        let error = plan.make(other, VirtualMachineConfigSpec::default()).unwrap_err();
        assert_eq!(error, "the image cache has no unknown.vmdk");
    }
}
