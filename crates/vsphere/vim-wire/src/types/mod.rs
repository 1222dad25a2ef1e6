//! The data types, by subject. Each file is a part of the schema, written down in schema order.

use std::sync::Arc;

use crate::xml::{Reader, Start};
use crate::{DataObject, Field, WireError};

mod device;
mod event;
mod file;
mod guest;
mod host;
mod option;
mod policy;
mod pool;
mod property;
mod service;
mod task;
mod vm_info;
mod vm_spec;

pub use device::*;
pub use event::*;
pub use file::*;
pub use guest::*;
pub use host::*;
pub use option::*;
pub use policy::*;
pub use pool::*;
pub use property::*;
pub use service::*;
pub use task::*;
pub use vm_info::*;
pub use vm_spec::*;

/// Reads the classes that are worth a type when they come as a property or a result; `None` for any other.
pub(crate) fn read_known(
    class: &str,
    r: &mut Reader<'_>,
    start: &Start<'_>,
) -> Result<Option<Arc<dyn DataObject>>, WireError> {
    fn read<T: Field + DataObject>(
        r: &mut Reader<'_>,
        start: &Start<'_>,
    ) -> Result<Option<Arc<dyn DataObject>>, WireError> {
        let mut object = T::default();
        object.read(r, start)?;
        Ok(Some(Arc::new(object)))
    }
    macro_rules! known {
        ($($name:ident)+) => {
            match class {
                $(stringify!($name) => read::<$name>(r, start),)+
                "LocalizedMethodFault" => read::<crate::LocalizedMethodFault>(r, start),
                "CustomFieldStringValue" => read::<CustomFieldValue>(r, start),
                "OpaqueNetworkSummary" => read::<NetworkSummary>(r, start),
                "HostDatastoreBrowserSearchResults" => read::<HostDatastoreBrowserSearchResults>(r, start),
                _ if is_device(class) => read::<VirtualDevice>(r, start),
                _ if class.ends_with("Event") || class == "EventEx" => read::<Event>(r, start),
                _ => Ok(None),
            }
        };
    }
    known! {
        TaskInfo GuestNicInfo GuestStackInfo ResourcePoolRuntimeInfo ResourcePoolResourceUsage VirtualMachineSnapshotInfo
        VirtualMachineSnapshotTree DatastoreSummary NetworkSummary OptionValue GuestInfoCustomizationInfo
        CustomFieldDef CustomFieldValue UserSession VirtualHardware VirtualMachineSummary VirtualMachineConfigSummary
        VirtualMachineConfigInfo VirtualMachineRuntimeInfo GuestInfo AboutInfo StoragePlacementResult
        VirtualMachineQuestionInfo
    }
}

fn is_device(class: &str) -> bool {
    matches!(
        class,
        "VirtualDevice"
            | "VirtualDisk"
            | "VirtualCdrom"
            | "VirtualFloppy"
            | "VirtualE1000"
            | "VirtualE1000e"
            | "VirtualVmxnet"
            | "VirtualVmxnet2"
            | "VirtualVmxnet3"
            | "VirtualPCNet32"
            | "VirtualSriovEthernetCard"
            | "VirtualEthernetCard"
            | "ParaVirtualSCSIController"
            | "VirtualLsiLogicController"
            | "VirtualLsiLogicSASController"
            | "VirtualBusLogicController"
            | "VirtualSCSIController"
            | "VirtualIDEController"
            | "VirtualAHCIController"
            | "VirtualSATAController"
            | "VirtualNVMEController"
            | "VirtualPCIController"
            | "VirtualPS2Controller"
            | "VirtualSIOController"
            | "VirtualController"
            | "VirtualKeyboard"
            | "VirtualPointingDevice"
            | "VirtualMachineVideoCard"
            | "VirtualMachineVMCIDevice"
            | "VirtualUSBController"
            | "VirtualUSBXHCIController"
            | "VirtualSerialPort"
            | "VirtualTPM"
    )
}
