//! Virtual devices and their backings.
//!
//! Both are open structs: the classes differ in a few fields, and what a template's device holds beyond that goes back to the
//! server unchanged when the device is edited.

use crate::types::SharesInfo;
use crate::{Element, MoRef};

data! {
    /// A device of any class.
    open VirtualDevice {
        key: i32,
        device_info "deviceInfo": Option<Description>,
        backing: Option<VirtualDeviceBackingInfo>,
        connectable: Option<VirtualDeviceConnectInfo>,
        slot_info "slotInfo": Option<VirtualDeviceBusSlotInfo>,
        controller_key "controllerKey": Option<i32>,
        unit_number "unitNumber": Option<i32>,
        // Controllers.
        bus_number "busNumber": Option<i32>,
        device: Vec<i32>,
        hot_add_remove "hotAddRemove": Option<bool>,
        shared_bus "sharedBus": Option<String>,
        scsi_ctlr_unit_number "scsiCtlrUnitNumber": Option<i32>,
        // Disks.
        capacity_in_kb "capacityInKB": Option<i64>,
        capacity_in_bytes "capacityInBytes": Option<i64>,
        shares: Option<SharesInfo>,
        // Network cards.
        address_type "addressType": Option<String>,
        mac_address "macAddress": Option<String>,
        wake_on_lan_enabled "wakeOnLanEnabled": Option<bool>,
    }

    /// What is behind a device: a file, a host device, a network.
    open VirtualDeviceBackingInfo {
        // Host devices and standard networks.
        device_name "deviceName": Option<String>,
        use_auto_detect "useAutoDetect": Option<bool>,
        network: Option<MoRef>,
        in_passthrough_mode "inPassthroughMode": Option<bool>,
        // Files.
        file_name "fileName": Option<String>,
        datastore: Option<MoRef>,
        backing_object_id "backingObjectId": Option<String>,
        disk_mode "diskMode": Option<String>,
        split: Option<bool>,
        write_through "writeThrough": Option<bool>,
        thin_provisioned "thinProvisioned": Option<bool>,
        eagerly_scrub "eagerlyScrub": Option<bool>,
        uuid: Option<String>,
        content_id "contentId": Option<String>,
        change_id "changeId": Option<String>,
        parent: Option<Box<VirtualDeviceBackingInfo>>,
        delta_disk_format "deltaDiskFormat": Option<String>,
        digest_enabled "digestEnabled": Option<bool>,
        delta_grain_size "deltaGrainSize": Option<i32>,
        delta_disk_format_variant "deltaDiskFormatVariant": Option<String>,
        sharing: Option<String>,
        // Distributed and opaque networks.
        port: Option<DistributedVirtualSwitchPortConnection>,
        opaque_network_id "opaqueNetworkId": Option<String>,
        opaque_network_type "opaqueNetworkType": Option<String>,
    }

    open VirtualDeviceBusSlotInfo {
        pci_slot_number "pciSlotNumber": Option<i32>,
    }

    struct VirtualDeviceConnectInfo {
        migrate_connect "migrateConnect": Option<String>,
        start_connected "startConnected": bool,
        allow_guest_control "allowGuestControl": bool,
        connected: bool,
        status: Option<String>,
    }

    typed Description {
        label: String,
        summary: String,
    }

    struct DistributedVirtualSwitchPortConnection {
        switch_uuid "switchUuid": String,
        portgroup_key "portgroupKey": Option<String>,
        port_key "portKey": Option<String>,
        connection_cookie "connectionCookie": Option<i32>,
    }

    typed VirtualDeviceConfigSpec {
        operation: Option<VirtualDeviceConfigSpecOperation>,
        file_operation "fileOperation": Option<VirtualDeviceConfigSpecFileOperation>,
        device: VirtualDevice,
        /// The storage policy of a disk.
        profile: Vec<Element>,
    }
}

names! {
    enum VirtualDeviceConfigSpecOperation { Add = "add", Remove = "remove", Edit = "edit" }

    enum VirtualDeviceConfigSpecFileOperation { Create = "create", Destroy = "destroy", Replace = "replace" }
}

impl VirtualDevice {
    pub fn is_disk(&self) -> bool {
        self.class == "VirtualDisk"
    }

    pub fn is_nic(&self) -> bool {
        matches!(
            self.class.as_str(),
            "VirtualE1000"
                | "VirtualE1000e"
                | "VirtualVmxnet"
                | "VirtualVmxnet2"
                | "VirtualVmxnet3"
                | "VirtualPCNet32"
                | "VirtualSriovEthernetCard"
                | "VirtualEthernetCard"
        )
    }

    pub fn is_cdrom(&self) -> bool {
        self.class == "VirtualCdrom"
    }
}
