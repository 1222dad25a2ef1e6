//! Where a VM's files are and what they take: `layout`, `layoutEx`, `storage`, and what a VM can do: `capability`.

use roost_vim_wire::MoRef;

use super::vm_summary;
use crate::inventory::Record;
use crate::vm::{Own, Power, Vm};
use crate::world::World;

/// What every VM of the simulated hosts can do.
pub(super) fn capability(world: &World, vm: &Vm) -> Record {
    let mut record = Record::of("VirtualMachineCapability");
    for (name, can) in [
        ("snapshotOperationsSupported", true),
        ("multipleSnapshotsSupported", true),
        ("snapshotConfigSupported", true),
        ("poweredOffSnapshotsSupported", true),
        ("memorySnapshotsSupported", true),
        ("revertToSnapshotSupported", true),
        ("quiescedSnapshotsSupported", true),
        ("disableSnapshotsSupported", false),
        ("lockSnapshotsSupported", false),
        ("consolePreferencesSupported", false),
        ("cpuFeatureMaskSupported", true),
        ("s1AcpiManagementSupported", true),
        ("settingScreenResolutionSupported", false),
        ("toolsAutoUpdateSupported", vm.has_tools(world)),
        ("vmNpivWwnSupported", false),
        ("npivWwnOnNonRdmVmSupported", false),
        ("vmNpivWwnDisableSupported", false),
        ("vmNpivWwnUpdateSupported", false),
        ("swapPlacementSupported", true),
        ("toolsSyncTimeSupported", true),
        ("virtualMmuUsageSupported", true),
        ("diskSharesSupported", true),
        ("bootOptionsSupported", true),
        ("bootRetryOptionsSupported", true),
        ("settingVideoRamSizeSupported", true),
        ("settingDisplayTopologySupported", false),
        ("recordReplaySupported", false),
        ("changeTrackingSupported", true),
        ("multipleCoresPerSocketSupported", true),
        ("hostBasedReplicationSupported", true),
        ("guestAutoLockSupported", true),
        ("memoryReservationLockSupported", true),
        ("featureRequirementSupported", true),
    ] {
        record = record.set(name, &can);
    }
    record
}

/// One file of the VM as the layouts name it.
struct Piece {
    key: i32,
    name: String,
    kind: &'static str,
    size: i64,
    datastore: MoRef,
}

/// The files that every VM has, then those of its disks, the top of a chain last.
fn pieces(world: &World, vm: &Vm) -> Vec<Piece> {
    let inventory = &world.inventory;
    let size = |file: &crate::vm::FilePath| {
        let shelf = world.store.shelf(&file.datastore);
        shelf.and_then(|shelf| shelf.get(&file.path)).map_or(0, |entry| entry.content.size())
    };
    let stem = vm.home.path.trim_end_matches(".vmx");
    let mut all: Vec<(String, &'static str, i64, MoRef)> = Vec::new();
    for (extension, kind) in [
        ("vmx", "config"),
        ("vmxf", "extendedConfig"),
        ("vmsd", "snapshotList"),
        ("nvram", "nvram"),
    ] {
        let file = crate::vm::FilePath::new(&vm.home.datastore, format!("{stem}.{extension}"));
        let is_there =
            world.store.shelf(&file.datastore).is_some_and(|shelf| shelf.get(&file.path).is_some());
        if is_there || kind == "config" {
            all.push((inventory.datastore_path(&file), kind, size(&file), file.datastore.clone()));
        }
    }
    for disk in vm.config.disks() {
        let mut chain: Vec<_> = disk.file.chain().collect();
        chain.reverse();
        for file in chain {
            let name = inventory.datastore_path(&file.path);
            let extent = name.trim_end_matches(".vmdk").to_owned() + "-flat.vmdk";
            all.push((name, "diskDescriptor", 0, file.path.datastore.clone()));
            all.push((extent, "diskExtent", size(&file.path), file.path.datastore.clone()));
        }
    }
    let numbered = all.into_iter().zip(0..);
    numbered
        .map(|((name, kind, size, datastore), key)| Piece { key, name, kind, size, datastore })
        .collect()
}

pub(super) fn layout_ex(world: &World, vm: &Vm) -> Record {
    let pieces = pieces(world, vm);
    let file = |piece: &Piece| {
        Record::of("VirtualMachineFileLayoutExFileInfo")
            .set("key", &piece.key)
            .text("name", &piece.name)
            .text("type", piece.kind)
            .set("size", &piece.size)
            .set("uniqueSize", &piece.size)
            .set("accessible", &true)
    };
    let files = pieces.iter().map(file).collect();
    let disks = vm.config.devices.iter().filter_map(|device| match &device.own {
        Own::Disk(disk) => Some((device.key(), disk)),
        _ => None,
    });
    let disks = disks.map(|(key, disk)| {
        let mut chain: Vec<_> = disk.file.chain().collect();
        chain.reverse();
        let units = chain.into_iter().map(|file| {
            let name = world.inventory.datastore_path(&file.path);
            let of_file = |piece: &&Piece| {
                piece.name == name
                    || piece.name.strip_suffix("-flat.vmdk") == name.strip_suffix(".vmdk")
            };
            let keys: Vec<i32> = pieces.iter().filter(of_file).map(|piece| piece.key).collect();
            Record::of("VirtualMachineFileLayoutExDiskUnit").set("fileKey", &keys)
        });
        Record::of("VirtualMachineFileLayoutExDiskLayout").set("key", &key).records(
            "chain",
            "VirtualMachineFileLayoutExDiskUnit",
            units.collect(),
        )
    });
    Record::of("VirtualMachineFileLayoutEx")
        .records("file", "VirtualMachineFileLayoutExFileInfo", files)
        .records("disk", "VirtualMachineFileLayoutExDiskLayout", disks.collect())
        .set("timestamp", &vm.created)
}

pub(super) fn layout(world: &World, vm: &Vm) -> Record {
    let own = |kinds: &[&str]| {
        let all = pieces(world, vm).into_iter().filter(|piece| kinds.contains(&piece.kind));
        // Relative to the directory of the VM.
        let name = |piece: Piece| piece.name.rsplit('/').next().unwrap_or_default().to_owned();
        all.map(name).collect::<Vec<String>>()
    };
    let disks = vm.config.devices.iter().filter_map(|device| match &device.own {
        Own::Disk(disk) => Some((device.key(), disk)),
        _ => None,
    });
    let disks = disks.map(|(key, disk)| {
        let mut files: Vec<String> =
            disk.file.chain().map(|file| world.inventory.datastore_path(&file.path)).collect();
        files.reverse();
        Record::of("VirtualMachineFileLayoutDiskLayout").set("key", &key).set("diskFile", &files)
    });
    let swap = (vm.power == Power::On).then(|| {
        let stem = vm.home.path.trim_end_matches(".vmx");
        let file = crate::vm::FilePath::new(&vm.home.datastore, format!("{stem}.vswp"));
        world.inventory.datastore_path(&file)
    });
    Record::of("VirtualMachineFileLayout")
        .set("configFile", &own(&["config", "extendedConfig", "snapshotList", "nvram"]))
        .set("logFile", &vec!["vmware.log".to_owned()])
        .records("disk", "VirtualMachineFileLayoutDiskLayout", disks.collect())
        .set("swapFile", &swap)
}

pub(super) fn storage(world: &World, vm: &Vm) -> Record {
    let whole = vm_summary::storage(world, vm);
    let pieces = pieces(world, vm);
    let usage = vm.datastores().into_iter().enumerate().map(|(index, datastore)| {
        let own = pieces.iter().filter(|piece| piece.datastore == datastore);
        let there: i64 = own.map(|piece| piece.size).sum();
        let committed = if index == 0 { whole.committed } else { there };
        let uncommitted = if index == 0 { whole.uncommitted } else { 0 };
        Record::of("VirtualMachineUsageOnDatastore")
            .set("datastore", &datastore)
            .set("committed", &committed)
            .set("uncommitted", &uncommitted)
            .set("unshared", &committed)
    });
    Record::of("VirtualMachineStorageInfo")
        .records("perDatastoreUsage", "VirtualMachineUsageOnDatastore", usage.collect())
        .set("timestamp", &whole.timestamp)
}
