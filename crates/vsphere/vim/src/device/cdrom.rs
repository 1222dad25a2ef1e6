use roost_vim_wire::Element;
use roost_vim_wire::types::{VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec};

use super::{connected_at_start, edit};
use crate::files::DatastorePath;

/// The bus that a new CD-ROM drive is put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CdromBus {
    #[default]
    Ide,
    /// For guests without IDE, and for more than four drives.
    Sata,
}

pub(crate) fn new_cdrom(key: i32, controller_key: i32, iso: &DatastorePath) -> VirtualDevice {
    VirtualDevice {
        key,
        backing: Some(iso_backing(iso)),
        connectable: Some(connected_at_start()),
        controller_key: Some(controller_key),
        unit_number: Some(0),
        ..VirtualDevice::of("VirtualCdrom")
    }
}

/// Puts an ISO into a drive that exists, in place of what is there.
pub fn insert_iso(drive: &VirtualDevice, iso: &DatastorePath) -> VirtualDeviceConfigSpec {
    edit(VirtualDevice {
        device_info: None,
        backing: Some(iso_backing(iso)),
        connectable: Some(connected_at_start()),
        ..drive.clone()
    })
}

/// Empties a drive: it becomes the client's device, which no client offers.
pub fn eject(drive: &VirtualDevice) -> VirtualDeviceConfigSpec {
    let mut connectable = connected_at_start();
    (connectable.start_connected, connectable.connected) = (false, false);
    let nothing = VirtualDeviceBackingInfo {
        device_name: Some(String::new()),
        use_auto_detect: Some(false),
        rest: vec![Element::leaf("exclusive", "false")],
        ..VirtualDeviceBackingInfo::of("VirtualCdromRemotePassthroughBackingInfo")
    };
    edit(VirtualDevice {
        device_info: None,
        backing: Some(nothing),
        connectable: Some(connectable),
        ..drive.clone()
    })
}

fn iso_backing(iso: &DatastorePath) -> VirtualDeviceBackingInfo {
    VirtualDeviceBackingInfo {
        file_name: Some(iso.to_string()),
        ..VirtualDeviceBackingInfo::of("VirtualCdromIsoBackingInfo")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{compact, written};

    fn drive() -> VirtualDevice {
        let iso = DatastorePath::new("LocalDS_0", "iso/boot.iso");
        VirtualDevice { key: 3000, ..new_cdrom(0, 200, &iso) }
    }

    #[test]
    fn swapping_an_iso_edits_the_whole_drive_with_a_new_backing() {
        let change = insert_iso(&drive(), &DatastorePath::new("LocalDS_0", "iso/next.iso"));
        assert_eq!(
            written("deviceChange", &change),
            compact(
                r#"<deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>edit</operation><device xsi:type="VirtualCdrom"><key>3000</key>
                <backing xsi:type="VirtualCdromIsoBackingInfo"><fileName>[LocalDS_0] iso/next.iso</fileName></backing>
                <connectable><startConnected>true</startConnected><allowGuestControl>true</allowGuestControl><connected>true</connected></connectable>
                <controllerKey>200</controllerKey><unitNumber>0</unitNumber></device></deviceChange>"#
            )
        );
    }

    #[test]
    fn ejecting_leaves_the_drive_with_nothing_behind_it() {
        let change = eject(&drive());
        assert_eq!(
            written("backing", &change.device.backing),
            compact(
                r#"<backing xsi:type="VirtualCdromRemotePassthroughBackingInfo"><deviceName></deviceName>
                <useAutoDetect>false</useAutoDetect><exclusive>false</exclusive></backing>"#
            )
        );
        assert!(!change.device.connectable.unwrap().start_connected);
    }
}
