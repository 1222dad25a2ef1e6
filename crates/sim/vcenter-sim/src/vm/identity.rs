//! What makes a new VM one of its own.

use roost_vim_wire::MoRef;

use crate::event::{self, Scene};
use crate::inventory::uuid_text;
use crate::world::World;

/// Posts which identities a new VM was given.
pub(super) fn post_identity(world: &mut World, scene: &Scene, this: &MoRef) {
    let Some(row) = world.inventory.vms.get(this) else { return };
    let (uuid, instance_uuid) = (uuid_text(row.uuid), uuid_text(row.instance_uuid));
    let assigned = [
        (
            "VmInstanceUuidAssignedEvent",
            "instanceUuid",
            instance_uuid,
            "Assign a new instance UUID",
        ),
        ("VmUuidAssignedEvent", "uuid", uuid, "Assigned new BIOS UUID"),
    ];
    for (class, field, value, words) in assigned {
        let message =
            event::fill(world, this, &format!("{words} ({value}) to {{vm}} on {{host}} in {{dc}}"));
        let draft = event::vm_draft(world, class, this, message);
        event::post(world, scene, draft.with(field, &value));
    }
}
