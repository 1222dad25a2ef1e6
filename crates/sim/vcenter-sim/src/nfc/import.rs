//! `CreateImportSpec` and `ImportVApp`.

use std::time::Duration;

use bytes::Bytes;
use roost_vim_wire::methods::{CreateImportSpec, ImportVApp};
use roost_vim_wire::types::{
    TaskInfoState, VirtualDeviceBackingInfo, VirtualMachineConfigSpec, VirtualMachineFileInfo,
};
use roost_vim_wire::{Element, MoRef};

use super::export::place_of;
use super::lease::{Lease, LeaseFile, State, fail, open, set_state};
use crate::call::{CallContext, Failure};
use crate::ovf::{Choices, Envelope, Provisioning, config_spec};
use crate::store;
use crate::vm::{Device, FilePath, NewVm, Own, create_as};
use crate::world::{Handle, World};

/// An answer that says what is wrong instead of a fault, as the OVF manager does.
fn problem(words: String) -> Element {
    let failure = Failure::of("OvfInvalidPackage", words).with("lineNumber", &0);
    Element::new("returnval").with_field("error", &failure.localized())
}

/// Formats of disks that only hosted products have are another fault than those that nobody has.
fn no_provisioning(asked: &str) -> Element {
    let of_hosted =
        ["monolithicSparse", "monolithicFlat", "twoGbMaxExtentSparse", "twoGbMaxExtentFlat"];
    let failure = if of_hosted.contains(&asked) {
        let message =
            format!("The platform has no disks of type {asked} (DeviceUnsupportedForVmPlatform).");
        Failure::of("DeviceUnsupportedForVmPlatform", message)
    } else {
        let message = format!("Disk provisioning type not supported: {asked}");
        Failure::of("OvfUnsupportedDiskProvisioning", message)
            .with("diskProvisioning", &asked.to_owned())
            .with("supportedDiskProvisioning", &"thin,thick,eagerZeroedThick".to_owned())
    };
    Element::new("returnval").with_field("error", &failure.localized())
}

/// The first property that is given another value than the package fixes for it.
fn fixed_property(envelope: &Envelope, asked: &Element) -> Option<String> {
    let given = asked.children_named("propertyMapping");
    let mut given = given.filter_map(|pair| Some((pair.text_of("key")?, pair.text_of("value")?)));
    given.find_map(|(key, value)| {
        let is_it = |property: &&crate::ovf::Property| property.key() == key;
        let property = envelope.properties.iter().find(is_it)?;
        (!property.user_configurable && property.value != value).then(|| key.to_owned())
    })
}

pub(super) fn import_spec(world: &World, call: &CreateImportSpec) -> Element {
    let envelope = match Envelope::parse(call.ovf_descriptor.as_bytes()) {
        Ok(envelope) => envelope,
        Err(error) => return problem(error.to_string()),
    };
    let asked = &call.cisp;
    let text = |name: &str| asked.text_of(name).filter(|text| !text.is_empty());
    let asked_provisioning = text("diskProvisioning").unwrap_or("thin");
    let Some(provisioning) = Provisioning::parse(asked_provisioning) else {
        return no_provisioning(asked_provisioning);
    };
    if let Some(key) = fixed_property(&envelope, asked) {
        let message = format!("Property '{key}' cannot be configured by a user.");
        let fault =
            Failure::of("OvfProperty", message).with("type", &String::new()).with("value", &key);
        return Element::new("returnval").with_field("error", &fault.localized());
    }
    let mut choices = Choices {
        name: text("entityName").unwrap_or(&envelope.name).to_owned(),
        provisioning,
        option: text("deploymentOption").map(Into::into),
        ..Choices::default()
    };
    for mapping in asked.children_named("networkMapping") {
        let network = mapping.child("network").and_then(Element::moref);
        let name = mapping.text_of("name").unwrap_or_default().to_owned();
        choices.networks.extend(network.map(|network| (name, network)));
    }
    for pair in asked.children_named("propertyMapping") {
        let field = |name: &str| pair.text_of(name).unwrap_or_default().to_owned();
        choices.properties.push((field("key"), field("value")));
    }
    let datacenter = world.inventory.datacenter_of(&call.resource_pool);
    let row = datacenter.and_then(|at| world.inventory.datacenters.get(&at));
    choices.default_network = row.and_then(|row| row.networks.first().cloned());
    let (mut config, uploads) = config_spec(&world.inventory, &envelope, &choices);
    let datastore = world.inventory.datastores.get(&call.datastore);
    config.files = datastore.map(|row| VirtualMachineFileInfo {
        vm_path_name: Some(format!("[{}]", row.name)),
        ..VirtualMachineFileInfo::default()
    });
    let import = Element::new("importSpec")
        .typed("VirtualMachineImportSpec")
        .with_field("configSpec", &config);
    let mut result = Element::new("returnval").with(import);
    for upload in uploads {
        let item = Element::new("fileItem")
            .with_field("deviceId", &upload.import_key)
            .with_field("path", &upload.href)
            .with_field("size", &upload.size)
            .with_field("cimType", &if upload.is_disk { 17 } else { 15 })
            .with_field("create", &!upload.is_disk);
        result = result.with(item);
    }
    result
}

pub(super) fn parse(descriptor: &str) -> Element {
    let envelope = match Envelope::parse(descriptor.as_bytes()) {
        Ok(envelope) => envelope,
        Err(error) => return problem(error.to_string()),
    };
    let mut result = Element::new("returnval");
    for eula in &envelope.eulas {
        result = result.with_field("eula", eula);
    }
    for (name, description) in &envelope.networks {
        let network =
            Element::new("network").with_field("name", name).with_field("description", description);
        result = result.with(network);
    }
    for (key, property) in (0_i32..).zip(&envelope.properties) {
        let row = Element::new("property")
            .with_field("key", &key)
            .with_field("classId", &property.class)
            .with_field("instanceId", &property.instance)
            .with_field("id", &property.id)
            .with_field("category", &property.category)
            .with_field("label", &property.label)
            .with_field("type", &property.kind)
            .with_field("userConfigurable", &property.user_configurable)
            .with_field("defaultValue", &property.value)
            .with_field("description", &property.description);
        result = result.with(row);
    }
    let flat: i64 = envelope.disks.iter().map(|disk| disk.capacity).sum();
    let download: i64 = envelope.files.iter().map(|file| file.size).sum();
    result = result
        .with_field("annotation", &envelope.annotation)
        .with_field("approximateDownloadSize", &download)
        .with_field("approximateFlatDeploymentSize", &flat)
        .with_field("approximateSparseDeploymentSize", &download)
        .with_field("defaultEntityName", &envelope.name)
        .with_field("virtualApp", &false);
    for option in &envelope.options {
        let row = Element::new("deploymentOption")
            .with_field("key", &option.id)
            .with_field("label", &option.label)
            .with_field("description", &option.description);
        result = result.with(row);
    }
    let default = envelope.default_option().unwrap_or_default().to_owned();
    result.with_field("defaultDeploymentOption", &default)
}

pub(super) fn validate_host() -> Element {
    ["thin", "thick", "eagerZeroedThick", "sparse", "flat"]
        .into_iter()
        .fold(Element::new("returnval"), |result, kind| {
            result.with_field("supportedDiskProvisioning", &kind.to_owned())
        })
}

/// Where the devices of a configuration that are to be filled sit, by the keys in the configuration itself.
fn import_keys(config: &VirtualMachineConfigSpec) -> Vec<(bool, String)> {
    let name = config.name.as_deref().unwrap_or_default();
    let devices = config.device_change.iter().map(|change| &change.device);
    let wanted = devices.clone().filter(|device| device.is_disk() || device.is_cdrom());
    wanted
        .map(|device| {
            let controller = devices.clone().find(|other| Some(other.key) == device.controller_key);
            let (class, bus) = controller.map_or(("", 0), |controller| {
                (controller.class.as_str(), controller.bus_number.unwrap_or(0))
            });
            let unit = device.unit_number.unwrap_or(0);
            (device.is_disk(), format!("/{name}/{class}{bus}:{unit}"))
        })
        .collect()
}

pub(crate) fn import(
    world: &mut World,
    cx: &CallContext<'_>,
    pool: &MoRef,
    call: &ImportVApp,
) -> Result<MoRef, Failure> {
    if call.spec.xsi_type.as_deref() == Some("VirtualAppImportSpec") {
        return Err(Failure::of(
            "NotSupported",
            "Only packages with one virtual machine can be imported.",
        ));
    }
    let config: VirtualMachineConfigSpec = call.spec.get("configSpec");
    let default = || {
        let datacenter = world.inventory.datacenter_of(pool)?;
        world.inventory.datacenters.get(&datacenter).map(|row| row.vm_folder.clone())
    };
    let folder = call.folder.clone().or_else(default).ok_or_else(|| Failure::not_found(pool))?;
    let keys = import_keys(&config);
    let takes = cx.handle.options.timings.create.draw(&mut world.random);
    let new = NewVm {
        method: "ImportVAppLRO",
        entity: pool.clone(),
        takes,
        folder,
        pool: pool.clone(),
        host: call.host.clone(),
        spec: config,
        has_tools: true,
    };
    let (task, vm) = create_as(world, cx, new);
    let lease = Lease {
        entity: vm,
        state: State::Initializing,
        progress: 0,
        touched: cx.now,
        files: Vec::new(),
        is_import: true,
        is_secure: cx.secure,
        thumbprint: cx.handle.thumbprint(),
    };
    let lease = open(world, cx.handle, lease);
    settle(world, cx.handle, lease.clone(), task, keys, Duration::from_millis(5));
    Ok(lease)
}

/// Makes the lease ready when its VM is there, or failed when it never will be.
fn settle(
    world: &mut World,
    handle: &Handle,
    lease: MoRef,
    task: MoRef,
    keys: Vec<(bool, String)>,
    pause: Duration,
) {
    let info = world.tasks.info(&task);
    match info.as_ref().map(|info| &info.state) {
        Some(TaskInfoState::Success) => fill(world, handle, &lease, &keys),
        Some(TaskInfoState::Error) | None => {
            let error = info.and_then(|info| info.error);
            let failure = error.map_or_else(
                || Failure::of("SystemError", "The import was lost."),
                |error| Failure::new(error.fault, error.localized_message.unwrap_or_default()),
            );
            fail(world, &lease, failure, handle.now());
        }
        Some(_) => handle.after(pause, move |world, handle| {
            let pause = (pause * 2).min(Duration::from_millis(500));
            settle(world, handle, lease, task, keys, pause);
        }),
    }
}

/// Says which files the lease is for. An image gets a file beside the VM's own, empty until it is sent.
fn fill(world: &mut World, handle: &Handle, lease: &MoRef, keys: &[(bool, String)]) {
    let Some(vm) = world.leases.get(lease).map(|row| row.entity.clone()) else { return };
    let mut files = Vec::new();
    let mut images = Vec::new();
    if let Some(row) = world.inventory.vms.get(&vm) {
        let devices: Vec<&Device> = row
            .config
            .devices
            .iter()
            .filter(|device| device.base.is_disk() || device.base.is_cdrom())
            .collect();
        for (device, (_, import_key)) in devices.into_iter().zip(keys) {
            let key = format!("/{}/{}", vm.id, place_of(row, device.key()));
            let import_key = import_key.clone();
            if let Own::Disk(disk) = &device.own {
                let name = format!("disk-{}.vmdk", files.len());
                let (path, capacity_kb) = (disk.file.path.clone(), disk.capacity_kb);
                files.push(LeaseFile {
                    name,
                    key,
                    import_key,
                    path,
                    is_disk: true,
                    capacity_kb,
                    size: 0,
                });
            } else {
                let image = format!("_deviceImage{}.iso", images.len());
                let path =
                    FilePath::new(&row.home.datastore, format!("{}/{image}", row.directory()));
                images.push((device.key(), path.clone()));
                files.push(LeaseFile {
                    name: image,
                    key,
                    import_key,
                    path,
                    is_disk: false,
                    capacity_kb: 0,
                    size: 0,
                });
            }
        }
    }
    for (device, path) in images {
        // A datastore that is full by now shows when the image is sent.
        let _ = store::put_file(world, &path, Bytes::new(), handle.now());
        let name = world.inventory.datastore_path(&path);
        insert_image(world, &vm, device, name, &path);
    }
    if let Some(row) = world.leases.get_mut(lease) {
        row.files = files;
        row.touched = handle.now();
    }
    set_state(world, lease, State::Ready);
}

fn insert_image(world: &mut World, vm: &MoRef, key: i32, name: String, path: &FilePath) {
    let backing = VirtualDeviceBackingInfo {
        file_name: Some(name),
        datastore: Some(path.datastore.clone()),
        ..VirtualDeviceBackingInfo::of("VirtualCdromIsoBackingInfo")
    };
    world.inventory.change_vm(vm, |row| {
        for device in row.config.devices.iter_mut().filter(|device| device.key() == key) {
            let mut base = (*device.base).clone();
            base.backing = Some(backing.clone());
            device.base = std::sync::Arc::new(base);
        }
    });
    world.inventory.changes.modified(vm, [format!("config.hardware.device[{key}]")]);
}
