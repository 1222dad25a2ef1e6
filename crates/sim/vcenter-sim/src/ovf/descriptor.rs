//! Writing the descriptor of a VM.

use std::fmt::Write as _;

use quick_xml::escape::escape;

use crate::inventory::Inventory;
use crate::vm::{Device, Own, Vm, guest_full_name};

/// A disk of the VM as a file of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskRef {
    /// The key of its device.
    pub device: i32,
    pub href: String,
    pub size: i64,
}

const SPACES: &str = "xmlns=\"http://schemas.dmtf.org/ovf/envelope/1\" xmlns:cim=\"http://schemas.dmtf.org/wbem/wscim/1/common\" \
    xmlns:ovf=\"http://schemas.dmtf.org/ovf/envelope/1\" \
    xmlns:rasd=\"http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData\" \
    xmlns:vmw=\"http://www.vmware.com/schema/ovf\" \
    xmlns:vssd=\"http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";

/// The descriptor of a VM under this name, with its disks in these files.
pub(crate) fn describe(inventory: &Inventory, vm: &Vm, name: &str, disks: &[DiskRef]) -> String {
    let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Envelope {SPACES}>\n");
    // Writing to a string cannot fail.
    let _ = write_envelope(&mut xml, inventory, vm, name, disks);
    xml.push_str("</Envelope>\n");
    xml
}

fn write_envelope(
    xml: &mut String,
    inventory: &Inventory,
    vm: &Vm,
    name: &str,
    disks: &[DiskRef],
) -> std::fmt::Result {
    writeln!(xml, "  <References>")?;
    for (index, disk) in disks.iter().enumerate() {
        let (number, href) = (index + 1, escape(&disk.href));
        writeln!(
            xml,
            "    <File ovf:href=\"{href}\" ovf:id=\"file{number}\" ovf:size=\"{}\"/>",
            disk.size
        )?;
    }
    writeln!(xml, "  </References>\n  <DiskSection>\n    <Info>Virtual disk information</Info>")?;
    for (index, disk) in disks.iter().enumerate() {
        let number = index + 1;
        let capacity = vm.config.device(disk.device).map_or(0, capacity_kb);
        writeln!(
            xml,
            "    <Disk ovf:capacity=\"{capacity}\" ovf:capacityAllocationUnits=\"byte * 2^10\" ovf:diskId=\"vmdisk{number}\" \
             ovf:fileRef=\"file{number}\" ovf:format=\"http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized\"/>"
        )?;
    }
    writeln!(
        xml,
        "  </DiskSection>\n  <NetworkSection>\n    <Info>The list of logical networks</Info>"
    )?;
    for network in vm.networks() {
        let network = escape(inventory.name(&network).unwrap_or_default());
        writeln!(
            xml,
            "    <Network ovf:name=\"{network}\"><Description>The {network} network</Description></Network>"
        )?;
    }
    let (id, guest) = (escape(name), escape(&vm.config.settings.guest_id));
    writeln!(
        xml,
        "  </NetworkSection>\n  <VirtualSystem ovf:id=\"{id}\">\n    <Info>A virtual machine</Info>\n    <Name>{id}</Name>\n    \
         <OperatingSystemSection ovf:id=\"1\" vmw:osType=\"{guest}\"><Info>The kind of installed guest operating system</Info>\
         <Description>{}</Description></OperatingSystemSection>\n    <VirtualHardwareSection>\n      \
         <Info>Virtual hardware requirements</Info>",
        escape(guest_full_name(&vm.config.settings.guest_id))
    )?;
    writeln!(
        xml,
        "      <System><vssd:ElementName>Virtual Hardware Family</vssd:ElementName><vssd:InstanceID>0</vssd:InstanceID>\
         <vssd:VirtualSystemIdentifier>{id}</vssd:VirtualSystemIdentifier><vssd:VirtualSystemType>{}</vssd:VirtualSystemType></System>",
        escape(&vm.config.settings.version)
    )?;
    let (cpus, memory) = (vm.config.cpus, vm.config.memory_mb);
    writeln!(
        xml,
        "      <Item><rasd:AllocationUnits>hertz * 10^6</rasd:AllocationUnits><rasd:ElementName>{cpus} virtual CPU(s)</rasd:ElementName>\
         <rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>{cpus}</rasd:VirtualQuantity></Item>\n      \
         <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:ElementName>{memory}MB of memory</rasd:ElementName>\
         <rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>{memory}</rasd:VirtualQuantity></Item>"
    )?;
    for device in &vm.config.devices {
        write_device(xml, inventory, device, disks)?;
    }
    let firmware = escape(&vm.config.settings.firmware);
    writeln!(
        xml,
        "      <vmw:Config ovf:required=\"false\" vmw:key=\"firmware\" vmw:value=\"{firmware}\"/>\n    \
         </VirtualHardwareSection>\n  </VirtualSystem>"
    )
}

fn capacity_kb(device: &Device) -> i64 {
    match &device.own {
        Own::Disk(disk) => disk.capacity_kb,
        Own::Nothing | Own::Nic(_) => 0,
    }
}

fn write_device(
    xml: &mut String,
    inventory: &Inventory,
    device: &Device,
    disks: &[DiskRef],
) -> std::fmt::Result {
    let base = &device.base;
    let info = base.device_info.as_ref().map_or("device", |info| info.label.as_str());
    let (label, key) = (escape(info), device.key());
    let bus = base.bus_number.unwrap_or(0);
    let controller = |kind: i32, sub_kind: &str| {
        format!(
            "      <Item><rasd:Address>{bus}</rasd:Address><rasd:ElementName>{label}</rasd:ElementName><rasd:InstanceID>{key}</rasd:InstanceID>\
             <rasd:ResourceSubType>{sub_kind}</rasd:ResourceSubType><rasd:ResourceType>{kind}</rasd:ResourceType></Item>\n"
        )
    };
    let parent = base.controller_key.unwrap_or(0);
    let unit = base.unit_number.unwrap_or(0);
    match (base.class.as_str(), &device.own) {
        ("VirtualIDEController", _) => writeln!(
            xml,
            "      <Item><rasd:Address>{bus}</rasd:Address><rasd:ElementName>{label}</rasd:ElementName><rasd:InstanceID>{key}</rasd:InstanceID>\
             <rasd:ResourceType>5</rasd:ResourceType></Item>"
        )?,
        ("ParaVirtualSCSIController", _) => xml.push_str(&controller(6, "VirtualSCSI")),
        ("VirtualLsiLogicController", _) => xml.push_str(&controller(6, "lsilogic")),
        ("VirtualLsiLogicSASController", _) => xml.push_str(&controller(6, "lsilogicsas")),
        ("VirtualBusLogicController", _) => xml.push_str(&controller(6, "buslogic")),
        ("VirtualAHCIController", _) => xml.push_str(&controller(20, "vmware.sata.ahci")),
        ("VirtualNVMEController", _) => xml.push_str(&controller(20, "vmware.nvme.controller")),
        (_, Own::Disk(_)) => {
            let Some(number) = disks.iter().position(|disk| disk.device == key) else {
                return Ok(());
            };
            writeln!(
                xml,
                "      <Item><rasd:AddressOnParent>{unit}</rasd:AddressOnParent><rasd:ElementName>{label}</rasd:ElementName>\
                 <rasd:HostResource>ovf:/disk/vmdisk{}</rasd:HostResource><rasd:InstanceID>{key}</rasd:InstanceID>\
                 <rasd:Parent>{parent}</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>",
                number + 1
            )?;
        }
        (class, Own::Nic(_)) => {
            let network = device.network().and_then(|network| inventory.name(&network).map(escape));
            writeln!(
                xml,
                "      <Item><rasd:AddressOnParent>{unit}</rasd:AddressOnParent><rasd:AutomaticAllocation>true</rasd:AutomaticAllocation>\
                 <rasd:Connection>{}</rasd:Connection><rasd:ElementName>{label}</rasd:ElementName><rasd:InstanceID>{key}</rasd:InstanceID>\
                 <rasd:ResourceSubType>{}</rasd:ResourceSubType><rasd:ResourceType>10</rasd:ResourceType></Item>",
                network.unwrap_or_default(),
                class.trim_start_matches("Virtual")
            )?;
        }
        ("VirtualCdrom", _) => writeln!(
            xml,
            "      <Item ovf:required=\"false\"><rasd:AddressOnParent>{unit}</rasd:AddressOnParent><rasd:AutomaticAllocation>false</rasd:AutomaticAllocation>\
             <rasd:ElementName>{label}</rasd:ElementName><rasd:InstanceID>{key}</rasd:InstanceID><rasd:Parent>{parent}</rasd:Parent>\
             <rasd:ResourceSubType>vmware.cdrom.remotepassthrough</rasd:ResourceSubType><rasd:ResourceType>15</rasd:ResourceType></Item>"
        )?,
        _ => {}
    }
    Ok(())
}
