//! Whose method a call is, and who carries it out.

use roost_vim_wire::methods::MethodInfo;
use roost_vim_wire::{MoRef, Request};

use crate::call::{CallContext, CallResult};
use crate::world::World;
use crate::{
    collector, customization_specs, disk_object, event, extension, guest, host_config, inventory,
    license, nfc, performance, permission, policy, search, service, session, settings, store, task,
    view, vm, vslm,
};

/// Carries out a method. `None`: not one of its own.
pub(crate) type CarryOut =
    fn(&Request<'_>, &MoRef, &mut World, &CallContext<'_>) -> Option<CallResult>;

/// Whether objects of this kind have this method.
pub(crate) fn accepts(this: &MoRef, method: &MethodInfo) -> bool {
    this.kind.is_a(method.receiver)
}

/// The part of the simulator that has the methods of a receiver.
pub(crate) fn carries_out(receiver: &str) -> Option<CarryOut> {
    Some(match receiver {
        "ServiceInstance" => service::call,
        "SessionManager" => session::call,
        "PropertyCollector" | "PropertyFilter" => collector::call,
        "ViewManager" | "ListView" | "View" => view::call,
        "SearchIndex" => search::call,
        "OptionManager" => settings::call,
        "AuthorizationManager" => permission::call,
        "VirtualMachine"
        | "VirtualMachineSnapshot"
        | "ManagedEntity"
        | "VirtualMachineProvisioningChecker"
        | "VirtualMachineCompatibilityChecker" => vm::call,
        "Folder"
        | "ResourcePool"
        | "VirtualApp"
        | "ComputeResource"
        | "ClusterComputeResource"
        | "HostSystem"
        | "DistributedVirtualSwitch"
        | "DistributedVirtualPortgroup"
        | "CustomFieldsManager"
        | "EnvironmentBrowser"
        | "Datacenter"
        | "StorageResourceManager" => inventory::call,
        "Task" | "TaskManager" | "TaskHistoryCollector" => task::call,
        "EventManager" | "EventHistoryCollector" | "HistoryCollector" => event::call,
        "FileManager"
        | "HostDatastoreBrowser"
        | "VirtualDiskManager"
        | "DatastoreNamespaceManager" => store::call,
        "OvfManager" | "HttpNfcLease" => nfc::call,
        "VcenterVStorageObjectManager" => disk_object::call,
        "VslmServiceInstance" | "VslmVStorageObjectManager" | "VslmTask" => vslm::call,
        "PerformanceManager" => performance::call,
        "LicenseManager" | "LicenseAssignmentManager" => license::call,
        "CustomizationSpecManager" => customization_specs::call,
        "ExtensionManager" => extension::call,
        "PbmServiceInstance"
        | "PbmProfileProfileManager"
        | "PbmComplianceManager"
        | "PbmPlacementSolver" => policy::call,
        "HostNetworkSystem"
        | "HostStorageSystem"
        | "HostDatastoreSystem"
        | "HostServiceSystem"
        | "HostFirewallSystem"
        | "HostDateTimeSystem" => host_config::call,
        "GuestProcessManager" | "GuestFileManager" | "GuestAuthManager" => guest::call,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::{MoType, methods};

    use super::*;

    #[test]
    fn every_method_has_somebody_who_carries_it_out() {
        for method in methods::all().filter(|method| method.receiver != "ManagedObject") {
            assert!(carries_out(method.receiver).is_some(), "{method:?}");
        }
    }

    #[test]
    fn a_method_is_refused_by_objects_of_another_kind() {
        let accepts = |obj: &MoRef, name: &str| accepts(obj, methods::by_name(name).unwrap());
        assert!(accepts(&MoRef::vm("vm-1"), "PowerOnVM_Task"));
        assert!(!accepts(&MoRef::new(MoType::Folder, "group-d1"), "PowerOnVM_Task"));
        assert!(accepts(&MoRef::new(MoType::StoragePod, "group-p1"), "Rename_Task"));
    }
}
