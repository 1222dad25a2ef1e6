//! Hosts, clusters, and the folders that they are made in.

use crate::{Element, MoRef};

methods! {
    on HostSystem {
        change EnterMaintenanceModeTask = "EnterMaintenanceMode_Task" needs "Host.Config.Maintenance" task "HostSystem.enterMaintenanceMode" "Enter maintenance mode"
        {
            timeout: i32,
            evacuate_powered_off_vms "evacuatePoweredOffVms": Option<bool>,
        } -> MoRef;
        change ExitMaintenanceModeTask = "ExitMaintenanceMode_Task" needs "Host.Config.Maintenance" task "HostSystem.exitMaintenanceMode" "Exit maintenance mode"
        { timeout: i32 } -> MoRef;
        change DisconnectHostTask = "DisconnectHost_Task" needs "Host.Config.Connection" task "HostSystem.disconnect" "Disconnect host"
        {} -> MoRef;
        change ReconnectHostTask = "ReconnectHost_Task" needs "Host.Config.Connection" task "HostSystem.reconnect" "Reconnect host"
        {} -> MoRef;
    }

    on ComputeResource {
        change ReconfigureComputeResourceTask = "ReconfigureComputeResource_Task" needs "Host.Inventory.EditCluster" task "ComputeResource.reconfigureEx" "Reconfigure cluster"
        { spec: Element, modify: bool } -> MoRef;
    }

    on ClusterComputeResource {
        change AddHostTask = "AddHost_Task" needs "Host.Inventory.AddHostToCluster" task "ClusterComputeResource.addHost" "Add host"
        {
            spec: Element,
            as_connected "asConnected": bool,
            resource_pool "resourcePool": Option<MoRef>,
            license: Option<String>,
        } -> MoRef;
        change MoveIntoTask = "MoveInto_Task" needs "Host.Inventory.MoveHost" task "ClusterComputeResource.moveInto" "Move host into cluster"
        { host: Vec<MoRef> } -> MoRef;
    }
}
