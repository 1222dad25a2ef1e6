use roost_vim_wire::{MoRef, Request};

use crate::call::{CallContext, CallResult};
use crate::model::calls;
use crate::vm::{
    check, clone, console, customize, destroy, instant_clone, power, promote, reconfigure,
    relocate, rename, snapshot_ops, template, upgrade,
};
use crate::world::World;
use crate::{disk_object, nfc};

/// The methods of VMs and their snapshots, and those that all entities have.
pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        CloneVmTask => |call| clone::clone_vm(world, cx, this, (call.folder, call.name, call.spec)),
        ReconfigVmTask => |call| Ok(reconfigure::reconfigure_as(world, cx, "ReconfigVM_Task", this, call.spec)),
        AttachDiskTask => |call| {
            let place = (call.controller_key, call.unit_number);
            disk_object::attach(world, cx, (&call.disk_id, Some(&call.datastore)), this, place)
        },
        DetachDiskTask => |call| disk_object::detach(world, cx, this, &call.disk_id),
        CustomizeVmTask => |call| customize::customize(world, cx, this, call.spec),
        PowerOnVmTask => |call| power::power_on(world, cx, this, call.host),
        PowerOffVmTask => |_| power::power_off(world, cx, this),
        ResetVmTask => |_| power::reset(world, cx, this),
        SuspendVmTask => |_| power::suspend(world, cx, this),
        ShutdownGuest => |_| power::ask_guest(world, cx, this, power::Request::ShutDown),
        RebootGuest => |_| power::ask_guest(world, cx, this, power::Request::Reboot),
        StandbyGuest => |_| power::ask_guest(world, cx, this, power::Request::StandBy),
        MarkAsTemplate => |_| template::mark_as_template(world, cx, this),
        MarkAsVirtualMachine => |call| template::mark_as_vm(world, cx, this, (&call.pool, call.host.as_ref())),
        UnregisterVm => |_| destroy::unregister(world, cx, this),
        RelocateVmTask => |call| relocate::relocate(world, cx, this, call.spec),
        UpgradeVmTask => |call| upgrade::upgrade(world, cx, this, call.version),
        PromoteDisksTask => |call| promote::promote(world, cx, this, (call.unlink, call.disks)),
        InstantCloneTask => |call| instant_clone::instant_clone(world, cx, this, call.spec),
        CheckRelocateTask => |call| check::relocate(world, cx, (this, call.vm, call.spec)),
        CheckCompatibilityTask => |call| check::compatibility(world, cx, (this, call.vm, call.host, call.pool)),
        CheckVmConfigTask => |call| check::config(world, cx, this, (call.spec, call.vm, call.host, call.pool)),
        AcquireTicket => |call| console::ticket(world, this, &call.ticket_type),
        CreateSnapshotTask => |call| snapshot_ops::create(world, cx, this, ("CreateSnapshot_Task", call)),
        CreateSnapshotExTask => |call| snapshot_ops::create_ex(world, cx, this, call),
        RevertToCurrentSnapshotTask => |call| {
            snapshot_ops::revert(world, cx, this, call.suppress_power_on.unwrap_or(false))
        },
        RevertToSnapshotTask => |call| snapshot_ops::revert(world, cx, this, call.suppress_power_on.unwrap_or(false)),
        RemoveSnapshotTask => |call| snapshot_ops::remove(world, cx, this, call.remove_children),
        RemoveAllSnapshotsTask => |_| Ok(snapshot_ops::remove_all(world, cx, this)),
        RenameTask => |call| Ok(rename::rename(world, cx, this, call.new_name)),
        DestroyTask => |_| Ok(destroy::destroy(world, cx, this)),
        ExportVm => |_| nfc::export(world, cx, this),
    }
}
