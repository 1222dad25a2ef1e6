//! CPUs, memory and controllers as vSphere has them.

use roost_vim::wire::types::VirtualDevice;

use super::super::seen::Seen;
use crate::api::vm::{
    ControllerDeviceStatus, ControllerDeviceType, ControllerStatus, ControllerType, CpuStatus,
    CryptoStatus, HardwareStatus, MemoryStatus,
};
use crate::api::{Quantity, VirtualMachine};

const MIB: i64 = 1 << 20;

pub(super) fn update_hardware_status(vm: &mut VirtualMachine, seen: &Seen) {
    let Some(hardware) = seen.hardware() else { return };
    let cpu = CpuStatus {
        total: hardware.num_cpu,
        reservation: positive(seen.cpu_allocation().and_then(|of| of.reservation)).unwrap_or(0),
        limit: seen.cpu_allocation().and_then(|of| of.limit).filter(|limit| *limit >= 0),
        cores_per_socket: hardware.num_cores_per_socket.unwrap_or_default(),
        hot_add_enabled: seen.flag("config.cpuHotAddEnabled"),
        ..CpuStatus::default()
    };
    let memory = seen.memory_allocation();
    let bytes = |mebibytes: i64| Quantity::from_bytes(mebibytes * MIB);
    let memory = MemoryStatus {
        total: Some(bytes(hardware.memory_mb.into())),
        reservation: positive(memory.and_then(|of| of.reservation)).map(bytes),
        limit: memory.and_then(|of| of.limit).filter(|limit| *limit >= 0).map(bytes),
        hot_add_enabled: seen.flag("config.memoryHotAddEnabled"),
        ..MemoryStatus::default()
    };
    let status = vm.status_mut();
    let known = status.hardware.take().unwrap_or_default();
    status.hardware = Some(HardwareStatus {
        cpu: Some(cpu),
        memory: Some(memory),
        controllers: controllers(&hardware.device),
        ..known
    });
    let has_vtpm = hardware.device.iter().any(|device| device.class == "VirtualTPM");
    if has_vtpm || status.crypto.is_some() {
        let known = status.crypto.take().unwrap_or_default();
        status.crypto = Some(CryptoStatus { has_vtpm, ..known });
    }
}

fn positive(amount: Option<i64>) -> Option<i64> {
    amount.filter(|amount| *amount > 0)
}

/// By the class of a controller.
pub(crate) fn controller_type(device: &VirtualDevice) -> Option<ControllerType> {
    match device.class.as_str() {
        "VirtualIDEController" => Some(ControllerType::Ide),
        "VirtualSATAController" | "VirtualAHCIController" => Some(ControllerType::Sata),
        "VirtualNVMEController" => Some(ControllerType::Nvme),
        "ParaVirtualSCSIController"
        | "VirtualBusLogicController"
        | "VirtualLsiLogicController"
        | "VirtualLsiLogicSASController"
        | "VirtualSCSIController" => Some(ControllerType::Scsi),
        _ => None,
    }
}

fn controllers(devices: &[VirtualDevice]) -> Vec<ControllerStatus> {
    let attached = |key: i32| {
        let mut all: Vec<ControllerDeviceStatus> = devices
            .iter()
            .filter(|device| device.controller_key == Some(key))
            .filter_map(|device| {
                let type_ = if device.is_disk() {
                    ControllerDeviceType::Disk
                } else if device.is_cdrom() {
                    ControllerDeviceType::Cdrom
                } else {
                    return None;
                };
                Some(ControllerDeviceStatus { type_, unit_number: device.unit_number? })
            })
            .collect();
        all.sort_by_key(|device| device.unit_number);
        // The API server takes one device per unit; a vCenter that shows two there is not a reason to show nothing.
        all.dedup_by_key(|device| device.unit_number);
        all
    };
    let mut all: Vec<ControllerStatus> = devices
        .iter()
        .filter_map(|device| {
            Some(ControllerStatus {
                type_: controller_type(device)?,
                bus_number: device.bus_number?,
                device_key: device.key,
                devices: attached(device.key),
            })
        })
        .collect();
    all.sort_by_key(|controller| (controller.type_, controller.bus_number));
    all.dedup_by_key(|controller| (controller.type_, controller.bus_number));
    all
}
