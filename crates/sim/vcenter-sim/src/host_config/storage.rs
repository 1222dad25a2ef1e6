//! The disks that a host sees, one below each of its datastores.

use roost_vim_wire::{Array, MoRef, Value};

use crate::inventory::{Datastore, Record};
use crate::world::World;

const BLOCK: i32 = 512;

fn datastores<'a>(
    world: &'a World,
    host: &'a MoRef,
) -> impl Iterator<Item = (&'a MoRef, &'a Datastore)> {
    world.inventory.datastores.iter().filter(|(_, row)| row.hosts.contains(host))
}

pub(super) fn devices(world: &World, host: &MoRef) -> Value {
    let luns = datastores(world, host).map(|(at, row)| {
        let name = format!("naa.6000c29{:0>25}", at.id.trim_start_matches("datastore-"));
        // Encoding, type, reserved, length, then the name itself.
        let mut data = vec![2, 1, 0, u8::try_from(name.len()).unwrap_or(u8::MAX)];
        data.extend(name.bytes());
        let data = data.into_iter().map(|byte| Value::Byte(byte.cast_signed())).collect();
        let alternate = Record::of("ScsiLunDurableName")
            .text("namespace", "GENERIC_VPD")
            .put("namespaceId", Value::Byte(5))
            .put("data", Value::Array(Array::new("byte", data)));
        let capacity = Record::of("HostDiskDimensionsLba")
            .set("blockSize", &BLOCK)
            .set("block", &(row.capacity / i64::from(BLOCK)));
        Record::of("HostScsiDisk")
            .text("deviceName", &format!("/vmfs/devices/disks/{name}"))
            .text("deviceType", "disk")
            .text("key", &format!("key-vim.host.ScsiDisk-{name}"))
            .text("uuid", &name)
            .text("canonicalName", &name)
            .text("displayName", &format!("Local disk ({name})"))
            .text("lunType", "disk")
            .text("vendor", "Roost")
            .text("model", "Virtual disk")
            .records("alternateName", "ScsiLunDurableName", vec![alternate])
            .put("operationalState", crate::inventory::strings(["ok"]))
            .record("capacity", capacity)
            .text("devicePath", &format!("/vmfs/devices/disks/{name}"))
            .set("ssd", &true)
            .set("localDisk", &true)
    });
    let adapter = Record::of("HostBlockHba")
        .text("key", "key-vim.host.BlockHba-vmhba0")
        .text("device", "vmhba0")
        .set("bus", &3_i32)
        .text("status", "online")
        .text("model", "PVSCSI SCSI Controller")
        .text("driver", "pvscsi")
        .text("pci", "0000:03:00.0");
    Record::of("HostStorageDeviceInfo")
        .records("hostBusAdapter", "HostHostBusAdapter", vec![adapter])
        .records("scsiLun", "ScsiLun", luns.collect())
        .set("softwareInternetScsiEnabled", &false)
        .value()
}

pub(super) fn volumes(world: &World, host: &MoRef) -> Value {
    let mounts = datastores(world, host).map(|(_, row)| {
        let path = row.url.trim_start_matches("ds://").trim_end_matches('/');
        let mount = Record::of("HostMountInfo")
            .text("path", path)
            .text("accessMode", "readWrite")
            .set("accessible", &row.accessible);
        let volume = Record::of("HostFileSystemVolume")
            .text("type", row.kind.name())
            .text("name", &row.name)
            .set("capacity", &row.capacity);
        Record::of("HostFileSystemMountInfo").record("mountInfo", mount).record("volume", volume)
    });
    Record::of("HostFileSystemVolumeInfo")
        .put("volumeTypeList", crate::inventory::strings(["VMFS", "NFS", "NFS41", "vsan"]))
        .records("mountInfo", "HostFileSystemMountInfo", mounts.collect())
        .value()
}
