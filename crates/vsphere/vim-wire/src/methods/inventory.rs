//! Folders, pools and clusters, and what all entities have.

use crate::types::{
    ResourceConfigSpec, StoragePlacementResult, StoragePlacementSpec, VirtualMachineConfigSpec,
};
use crate::{Element, MoRef};

methods! {
    on ManagedEntity {
        change RenameTask = "Rename_Task" task "VirtualMachine.rename" "Rename virtual machine"
        { new_name "newName": String } -> MoRef;
        change DestroyTask = "Destroy_Task" task "VirtualMachine.destroy" "Delete virtual machine"
        {} -> MoRef;
    }

    on Folder {
        change CreateVmTask = "CreateVM_Task" needs "VirtualMachine.Inventory.Create" task "Folder.createVm" "Create virtual machine"
        {
            config: VirtualMachineConfigSpec,
            pool: MoRef,
            host: Option<MoRef>,
        } -> MoRef;
        change RegisterVmTask = "RegisterVM_Task" needs "VirtualMachine.Inventory.Register" task "Folder.registerVm" "Register virtual machine"
        {
            path: String,
            name: Option<String>,
            as_template "asTemplate": bool,
            pool: Option<MoRef>,
            host: Option<MoRef>,
        } -> MoRef;
        change CreateDatacenter = "CreateDatacenter" needs "Datacenter.Create"
        { name: String } -> MoRef;
        change CreateClusterEx = "CreateClusterEx" needs "Host.Inventory.CreateCluster"
        { name: String, spec: Element } -> MoRef;
        change AddStandaloneHostTask = "AddStandaloneHost_Task" needs "Host.Inventory.AddStandaloneHost" task "Folder.addStandaloneHost" "Add standalone host"
        {
            spec: Element,
            comp_res_spec "compResSpec": Option<Element>,
            add_connected "addConnected": bool,
            license: Option<String>,
        } -> MoRef;
        change CreateDvsTask = "CreateDVS_Task" needs "DVSwitch.Create" task "Folder.createDistributedVirtualSwitch" "Create a vSphere Distributed Switch"
        { spec: Element } -> MoRef;
        change CreateFolder = "CreateFolder" needs "Folder.Create"
        { name: String } -> MoRef;
        change MoveIntoFolderTask = "MoveIntoFolder_Task" needs "Folder.Move" task "Folder.moveIntoFolder" "Move entities"
        { list: Vec<MoRef> } -> MoRef;
        read PlaceVmsXCluster = "PlaceVmsXCluster" { placement_spec "placementSpec": Element } -> Element;
    }

    on ResourcePool {
        change CreateResourcePool = "CreateResourcePool" needs "Resource.CreatePool"
        { name: String, spec: ResourceConfigSpec } -> MoRef;
        change CreateVApp = "CreateVApp" needs "VApp.Create"
        {
            name: String,
            res_spec "resSpec": ResourceConfigSpec,
            config_spec "configSpec": Element,
            vm_folder "vmFolder": Option<MoRef>,
        } -> MoRef;
        change CreateChildVmTask = "CreateChildVM_Task" needs "VirtualMachine.Inventory.Create" task "ResourcePool.createVm" "Create virtual machine"
        { config: VirtualMachineConfigSpec, host: Option<MoRef> } -> MoRef;
        change DestroyChildren = "DestroyChildren" needs "Resource.DeletePool"
        {} -> ();
        change UpdateConfig = "UpdateConfig" needs "Resource.EditPool"
        {
            name: Option<String>,
            config: Option<ResourceConfigSpec>,
        } -> ();
    }

    on VirtualApp {
        change PowerOnVAppTask = "PowerOnVApp_Task" needs "VApp.PowerOn" task "VirtualApp.powerOn" "Power On vApp"
        {} -> MoRef;
        change PowerOffVAppTask = "PowerOffVApp_Task" needs "VApp.PowerOff" task "VirtualApp.powerOff" "Power Off vApp"
        { force: bool } -> MoRef;
        change SuspendVAppTask = "SuspendVApp_Task" needs "VApp.Suspend" task "VirtualApp.suspend" "Suspend vApp"
        {} -> MoRef;
        change UpdateVAppConfig = "UpdateVAppConfig" needs "VApp.ApplicationConfig"
        { spec: Element } -> ();
    }

    on ClusterComputeResource {
        read PlaceVm = "PlaceVm" { placement_spec "placementSpec": Element } -> Element;
    }

    on EnvironmentBrowser {
        read QueryConfigOption = "QueryConfigOption" { key: Option<String>, host: Option<MoRef> } -> Option<Element>;
        read QueryConfigOptionEx = "QueryConfigOptionEx" { spec: Option<Element> } -> Option<Element>;
        read QueryConfigTarget = "QueryConfigTarget" { host: Option<MoRef> } -> Option<Element>;
    }

    on StorageResourceManager {
        read RecommendDatastores = "RecommendDatastores" {
            storage_spec "storageSpec": StoragePlacementSpec,
        } -> StoragePlacementResult;
    }
}
