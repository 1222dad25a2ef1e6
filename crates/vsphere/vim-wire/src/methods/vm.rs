//! VMs and their snapshots.

use crate::types::{
    CustomizationSpec, VirtualDevice, VirtualMachineCloneSpec, VirtualMachineConfigSpec,
    VirtualMachineInstantCloneSpec, VirtualMachineRelocateSpec,
};
use crate::{Element, MoRef};

methods! {
    on VirtualMachine {
        change CloneVmTask = "CloneVM_Task" needs "VirtualMachine.Provisioning.Clone" task "VirtualMachine.clone" "Clone virtual machine"
        { folder: MoRef, name: String, spec: VirtualMachineCloneSpec } -> MoRef;
        change ReconfigVmTask = "ReconfigVM_Task" needs "VirtualMachine.Config.Settings" task "VirtualMachine.reconfigure" "Reconfigure virtual machine"
        { spec: VirtualMachineConfigSpec } -> MoRef;
        change CustomizeVmTask = "CustomizeVM_Task" needs "VirtualMachine.Provisioning.Customize" task "VirtualMachine.customize" "Customize virtual machine guest OS"
        { spec: CustomizationSpec } -> MoRef;
        change PowerOnVmTask = "PowerOnVM_Task" needs "VirtualMachine.Interact.PowerOn" task "VirtualMachine.powerOn" "Power On virtual machine"
        { host: Option<MoRef> } -> MoRef;
        change PowerOffVmTask = "PowerOffVM_Task" needs "VirtualMachine.Interact.PowerOff" task "VirtualMachine.powerOff" "Power Off virtual machine"
        {} -> MoRef;
        change ResetVmTask = "ResetVM_Task" needs "VirtualMachine.Interact.Reset" task "VirtualMachine.reset" "Reset virtual machine"
        {} -> MoRef;
        change SuspendVmTask = "SuspendVM_Task" needs "VirtualMachine.Interact.Suspend" task "VirtualMachine.suspend" "Suspend virtual machine"
        {} -> MoRef;
        change ShutdownGuest = "ShutdownGuest" needs "VirtualMachine.Interact.PowerOff"
        {} -> ();
        change RebootGuest = "RebootGuest" needs "VirtualMachine.Interact.Reset"
        {} -> ();
        change StandbyGuest = "StandbyGuest" needs "VirtualMachine.Interact.Suspend"
        {} -> ();
        change MarkAsTemplate = "MarkAsTemplate" needs "VirtualMachine.Provisioning.MarkAsTemplate"
        {} -> ();
        change MarkAsVirtualMachine = "MarkAsVirtualMachine" needs "VirtualMachine.Provisioning.MarkAsVM"
        { pool: MoRef, host: Option<MoRef> } -> ();
        change UnregisterVm = "UnregisterVM" needs "VirtualMachine.Inventory.Unregister"
        {} -> ();
        change RelocateVmTask = "RelocateVM_Task" needs "Resource.ColdMigrate" task "VirtualMachine.relocate" "Relocate virtual machine"
        {
            spec: VirtualMachineRelocateSpec,
            priority: Option<String>,
        } -> MoRef;
        change UpgradeVmTask = "UpgradeVM_Task" needs "VirtualMachine.Config.UpgradeVirtualHardware" task "VirtualMachine.upgradeVirtualHardware" "Upgrade VM compatibility"
        { version: Option<String> } -> MoRef;
        change CreateSnapshotTask = "CreateSnapshot_Task" needs "VirtualMachine.State.CreateSnapshot" task "VirtualMachine.createSnapshot" "Create virtual machine snapshot"
        {
            name: String,
            description: Option<String>,
            memory: bool,
            quiesce: bool,
        } -> MoRef;
        change CreateSnapshotExTask = "CreateSnapshotEx_Task" needs "VirtualMachine.State.CreateSnapshot" task "VirtualMachine.createSnapshotEx" "Create virtual machine snapshot"
        {
            name: String,
            description: Option<String>,
            memory: bool,
            quiesce_spec "quiesceSpec": Option<Element>,
        } -> MoRef;
        change RevertToCurrentSnapshotTask = "RevertToCurrentSnapshot_Task" needs "VirtualMachine.State.RevertToSnapshot" task "VirtualMachine.revertToCurrentSnapshot" "Revert to current snapshot"
        {
            host: Option<MoRef>,
            suppress_power_on "suppressPowerOn": Option<bool>,
        } -> MoRef;
        change RemoveAllSnapshotsTask = "RemoveAllSnapshots_Task" needs "VirtualMachine.State.RemoveSnapshot" task "VirtualMachine.removeAllSnapshots" "Remove all snapshots"
        { consolidate: Option<bool> } -> MoRef;
        change AcquireTicket = "AcquireTicket" needs "VirtualMachine.Interact.ConsoleInteract"
        { ticket_type "ticketType": String } -> Element;
        change PromoteDisksTask = "PromoteDisks_Task" needs "VirtualMachine.Provisioning.PromoteDisks" task "VirtualMachine.promoteDisks" "Promote disks"
        { unlink: bool, disks: Vec<VirtualDevice> } -> MoRef;
        change InstantCloneTask = "InstantClone_Task" needs "VirtualMachine.Provisioning.Clone" task "VirtualMachine.instantClone" "Instant clone virtual machine"
        { spec: VirtualMachineInstantCloneSpec } -> MoRef;
    }

    on VirtualMachineSnapshot {
        change RevertToSnapshotTask = "RevertToSnapshot_Task" needs "VirtualMachine.State.RevertToSnapshot" task "vm.Snapshot.revert" "Revert snapshot"
        {
            host: Option<MoRef>,
            suppress_power_on "suppressPowerOn": Option<bool>,
        } -> MoRef;
        change RemoveSnapshotTask = "RemoveSnapshot_Task" needs "VirtualMachine.State.RemoveSnapshot" task "vm.Snapshot.remove" "Remove snapshot"
        {
            remove_children "removeChildren": bool,
            consolidate: Option<bool>,
        } -> MoRef;
    }
}
