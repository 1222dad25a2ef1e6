//! Location: a VM that was moved out of its namespace's pool or folder is left alone.

use kube::ResourceExt as _;

use super::Context;
use super::outcome::{Flow, Halt};
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, Reason, mark_false, mark_true};
use crate::provider::Seen;

/// By the places that are known in this process: a VM whose place nobody has asked for is believed.
pub(super) fn reconcile_location(cx: &Context, vm: &mut VirtualMachine, seen: &Seen) -> Flow {
    let zone = vm.status.as_ref().map(|status| status.zone.clone()).unwrap_or_default();
    let namespace = vm.namespace().unwrap_or_default();
    let Some(place) = cx.provider.places.known_place(&namespace, &zone) else { return Ok(()) };
    if vm.spec.reserved.is_some() {
        return Ok(());
    }
    let pool = seen.row.pool.as_ref().is_none_or(|pool| pool.moref() == place.pool);
    let folder = seen.row.parent.as_ref().is_none_or(|parent| **parent == *place.folder.id);
    let reason = match (pool, folder) {
        (true, true) => {
            let conditions = &mut vm.status_mut().conditions;
            mark_true(conditions, ConditionType::LocationValid, cx.now());
            return Ok(());
        }
        (false, true) => Reason::ResourcePoolMismatch,
        (true, false) => Reason::FolderMismatch,
        (false, false) => Reason::ResourcePoolAndFolderMismatch,
    };
    let why = "the VM is not where its namespace's VMs are";
    let conditions = &mut vm.status_mut().conditions;
    mark_false(conditions, ConditionType::LocationValid, reason, why, cx.now());
    Err(Halt::NoRequeue(why.to_owned()))
}
