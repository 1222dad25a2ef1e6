use roost_vim_wire::MoRef;
use roost_vim_wire::types::{VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec};

use super::{DeviceError, edit, label};

pub(crate) const KIB: u64 = 1024;

/// How the file of a new disk takes its space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provisioning {
    /// When it is written.
    #[default]
    Thin,
    /// At once, and zeroed when it is first written.
    Thick,
    /// At once, zeroed at once.
    EagerZeroed,
}

/// A disk to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    pub capacity_bytes: u64,
    pub provisioning: Provisioning,
    /// Where the VM's own files are if not set.
    pub datastore: Option<MoRef>,
}

impl NewDisk {
    pub fn thin(capacity_bytes: u64) -> Self {
        Self { capacity_bytes, provisioning: Provisioning::Thin, datastore: None }
    }

    /// An empty file name lets the server choose one in the VM's directory.
    pub(crate) fn backing(&self) -> VirtualDeviceBackingInfo {
        VirtualDeviceBackingInfo {
            file_name: Some(String::new()),
            datastore: self.datastore.clone(),
            disk_mode: Some("persistent".into()),
            thin_provisioned: match self.provisioning {
                Provisioning::Thin => Some(true),
                Provisioning::Thick => Some(false),
                Provisioning::EagerZeroed => None,
            },
            eagerly_scrub: (self.provisioning == Provisioning::EagerZeroed).then_some(true),
            ..VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")
        }
    }

    pub(crate) fn device(
        &self,
        key: i32,
        controller_key: i32,
        unit: i32,
    ) -> Result<VirtualDevice, DeviceError> {
        Ok(VirtualDevice {
            key,
            backing: Some(self.backing()),
            controller_key: Some(controller_key),
            unit_number: Some(unit),
            capacity_in_kb: Some(kib(self.capacity_bytes)?),
            ..VirtualDevice::of("VirtualDisk")
        })
    }
}

/// Rounded up: a disk must not come out smaller than asked.
fn kib(bytes: u64) -> Result<i64, DeviceError> {
    i64::try_from(bytes.div_ceil(KIB))
        .ok()
        .filter(|kib| kib.checked_mul(1024).is_some())
        .ok_or(DeviceError::TooLarge { wanted_bytes: bytes })
}

/// The disk that the guest boots from: the lowest unit on the lowest controller.
pub(crate) fn first_disk(devices: &[VirtualDevice]) -> Option<&VirtualDevice> {
    devices
        .iter()
        .filter(|device| device.is_disk())
        .min_by_key(|disk| (disk.controller_key, disk.unit_number, disk.key))
}

/// Grows a disk that exists; `None` if it has that size already.
///
/// The request names no file operation, which would make a new file, and both capacities, which must agree.
pub fn grow_disk(
    disk: &VirtualDevice,
    capacity_bytes: u64,
) -> Result<Option<VirtualDeviceConfigSpec>, DeviceError> {
    let wanted = kib(capacity_bytes)?;
    let has = disk.capacity_in_kb.unwrap_or_default();
    if wanted == has {
        return Ok(None);
    }
    if wanted < has {
        let has_bytes = u64::try_from(has).unwrap_or_default().saturating_mul(KIB);
        return Err(DeviceError::Shrink {
            disk: label(disk),
            has_bytes,
            wanted_bytes: capacity_bytes,
        });
    }
    let capacity_in_bytes = disk.capacity_in_bytes.map(|_| wanted * 1024);
    Ok(Some(edit(VirtualDevice {
        device_info: None,
        capacity_in_kb: Some(wanted),
        capacity_in_bytes,
        ..disk.clone()
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::written;

    fn disk() -> VirtualDevice {
        VirtualDevice {
            key: 2000,
            capacity_in_bytes: Some(10 << 20),
            ..NewDisk::thin(10 << 20).device(0, 1000, 0).unwrap()
        }
    }

    #[test]
    fn growing_names_no_file_operation_and_keeps_the_capacities_equal() {
        let change = grow_disk(&disk(), 20 << 20).unwrap().unwrap();
        let xml = written("deviceChange", &change);
        assert!(!xml.contains("fileOperation"), "{xml}");
        assert!(
            xml.contains(
                "<capacityInKB>20480</capacityInKB><capacityInBytes>20971520</capacityInBytes>"
            ),
            "{xml}"
        );
        let older = VirtualDevice { capacity_in_bytes: None, ..disk() };
        assert_eq!(grow_disk(&older, 20 << 20).unwrap().unwrap().device.capacity_in_bytes, None);
    }

    #[test]
    fn a_disk_keeps_its_size_or_grows_but_never_shrinks() {
        assert_eq!(grow_disk(&disk(), 10 << 20), Ok(None));
        assert!(matches!(grow_disk(&disk(), 5 << 20), Err(DeviceError::Shrink { .. })));
        assert!(matches!(grow_disk(&disk(), u64::MAX), Err(DeviceError::TooLarge { .. })));
        assert_eq!(
            grow_disk(&disk(), (10 << 20) + 1).unwrap().unwrap().device.capacity_in_kb,
            Some(10241)
        );
    }

    #[test]
    fn provisioning_says_what_the_server_expects() {
        for (provisioning, thin, eager) in [
            (Provisioning::Thin, Some(true), None),
            (Provisioning::Thick, Some(false), None),
            (Provisioning::EagerZeroed, None, Some(true)),
        ] {
            let backing = NewDisk { provisioning, ..NewDisk::thin(1) }.backing();
            assert_eq!(
                (backing.thin_provisioned, backing.eagerly_scrub),
                (thin, eager),
                "{provisioning:?}"
            );
        }
    }

    #[test]
    fn the_first_disk_is_the_one_on_the_lowest_unit() {
        let on = |controller, unit, key| VirtualDevice {
            key,
            controller_key: Some(controller),
            unit_number: Some(unit),
            ..VirtualDevice::of("VirtualDisk")
        };
        let devices = [
            on(1001, 0, 2016),
            on(1000, 1, 2001),
            on(1000, 0, 2000),
            VirtualDevice::of("VirtualCdrom"),
        ];
        assert_eq!(first_disk(&devices).unwrap().key, 2000);
        assert_eq!(first_disk(&devices[3..]), None);
    }
}
