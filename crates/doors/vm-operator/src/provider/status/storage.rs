//! Disks and what they take.

use std::collections::BTreeMap;

use roost_vim::wire::types::VirtualDevice;
use roost_vim::wire::{Element, Value};

use super::super::seen::Seen;
use super::hardware::controller_type;
use crate::api::vm::{
    DiskMode, StorageRequested, StorageStatus, StorageUsage, VolumeStatus, VolumeType,
};
use crate::api::{Quantity, VirtualMachine};

pub(super) fn update_storage_status(vm: &mut VirtualMachine, seen: &Seen) {
    let layout = Layout::of(seen);
    let mut classic: Vec<VolumeStatus> =
        seen.disks().map(|disk| volume(disk, seen.devices(), &layout)).collect();
    let (requested, used) =
        (sum(&classic, |of| of.limit.as_ref()), sum(&classic, |of| of.used.as_ref()));
    let status = vm.status_mut();
    // Volumes of claims are the volume controller's.
    let managed = status.volumes.drain(..).filter(|known| known.type_ == VolumeType::Managed);
    classic.extend(managed);
    classic.sort_by(|one, other| one.disk_uuid.cmp(&other.disk_uuid));
    status.volumes = classic;
    if !layout.is_known {
        return;
    }
    status.storage = Some(StorageStatus {
        total: Some(Quantity::from_bytes(requested + layout.other)),
        requested: Some(StorageRequested { disks: Some(Quantity::from_bytes(requested)) }),
        usage: Some(StorageUsage {
            disks: Some(Quantity::from_bytes(used)),
            other: Some(Quantity::from_bytes(layout.other)),
            ..StorageUsage::default()
        }),
    });
}

fn sum<'a>(
    volumes: &'a [VolumeStatus],
    of: impl Fn(&'a VolumeStatus) -> Option<&'a Quantity>,
) -> i64 {
    volumes.iter().filter_map(of).filter_map(|amount| amount.value().ok()).sum()
}

fn volume(disk: &VirtualDevice, devices: &[VirtualDevice], layout: &Layout) -> VolumeStatus {
    let backing = disk.backing.as_ref();
    let uuid = backing.and_then(|backing| backing.uuid.clone()).unwrap_or_default();
    let controller = devices.iter().find(|device| Some(device.key) == disk.controller_key);
    let bytes = disk.capacity_in_bytes.or(disk.capacity_in_kb.map(|kib| kib << 10));
    let size = bytes.map(Quantity::from_bytes);
    let mode = backing.and_then(|backing| backing.disk_mode.as_deref());
    VolumeStatus {
        name: if uuid.is_empty() { format!("disk-{}", disk.key) } else { uuid.clone() },
        type_: VolumeType::Classic,
        attached: true,
        disk_uuid: uuid,
        limit: size.clone(),
        requested: size,
        used: layout.of_disk(disk.key).map(Quantity::from_bytes),
        controller_type: controller.and_then(controller_type),
        controller_bus_number: controller.and_then(|controller| controller.bus_number),
        unit_number: disk.unit_number,
        disk_mode: mode.and_then(disk_mode),
        ..VolumeStatus::default()
    }
}

fn disk_mode(text: &str) -> Option<DiskMode> {
    match text {
        "persistent" => Some(DiskMode::Persistent),
        "nonpersistent" => Some(DiskMode::NonPersistent),
        "independent_persistent" => Some(DiskMode::IndependentPersistent),
        "independent_nonpersistent" => Some(DiskMode::IndependentNonPersistent),
        _ => None,
    }
}

/// Sizes of files, by what they belong to.
#[derive(Debug, Default)]
struct Layout {
    is_known: bool,
    disks: BTreeMap<i32, i64>,
    other: i64,
}

impl Layout {
    fn of(seen: &Seen) -> Self {
        match seen.detail.properties().get("layoutEx") {
            Some(Value::Other(layout)) => Self::read(layout),
            _ => Self::default(),
        }
    }

    fn read(layout: &Element) -> Self {
        let mut sizes = BTreeMap::new();
        let mut other = 0;
        for file in layout.children_named("file") {
            let Some(key) = file.number_of("key") else { continue };
            let size = file.number_of("uniqueSize").or(file.number_of("size")).unwrap_or_default();
            sizes.insert(key, size);
            let is_disk = file.text_of("type").is_some_and(|kind| kind.starts_with("disk"));
            let is_snapshot = file.text_of("type").is_some_and(|kind| kind.starts_with("snapshot"));
            if !is_disk && !is_snapshot {
                other += size;
            }
        }
        let mut disks = BTreeMap::new();
        for disk in layout.children_named("disk") {
            let Some(key) = disk.number_of("key").and_then(|key| i32::try_from(key).ok()) else {
                continue;
            };
            let keys = disk
                .children_named("chain")
                .flat_map(|chain| chain.children_named("fileKey"))
                .filter_map(|key| key.text.trim().parse::<i64>().ok());
            disks.insert(key, keys.filter_map(|key| sizes.get(&key)).sum());
        }
        Self { is_known: true, disks, other }
    }

    fn of_disk(&self, key: i32) -> Option<i64> {
        self.disks.get(&key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_for_their_disks_or_for_the_rest() {
        let layout = Element::parse(
            b"<l><file><key>0</key><type>config</type><uniqueSize>10</uniqueSize></file>\
              <file><key>1</key><type>diskDescriptor</type><size>1</size></file>\
              <file><key>2</key><type>diskExtent</type><uniqueSize>100</uniqueSize></file>\
              <file><key>3</key><type>snapshotData</type><uniqueSize>7</uniqueSize></file>\
              <disk><key>2000</key><chain><fileKey>1</fileKey><fileKey>2</fileKey></chain></disk></l>",
        )
        .unwrap();
        let layout = Layout::read(&layout);
        assert_eq!(
            (layout.of_disk(2000), layout.of_disk(2001), layout.other),
            (Some(101), None, 10)
        );
    }
}
