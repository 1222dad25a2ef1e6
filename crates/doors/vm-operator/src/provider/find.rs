//! Which VM belongs to an object: by the id that its status has, by its instance uuid, by its own uid.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_fleet::{Snapshot, Vm, VmId};

use super::DOOR;
use crate::api::VirtualMachine;

/// More than one VM has the identity of an object.
#[derive(Debug, thiserror::Error)]
#[error("{} VMs have the instance uuid {uuid}: {}", vms.len(), names(vms))]
pub(crate) struct Several {
    uuid: String,
    vms: Vec<VmId>,
}

fn names(vms: &[VmId]) -> String {
    vms.iter().map(VmId::as_str).collect::<Vec<_>>().join(", ")
}

/// What the mirror knows.
pub(crate) fn find(vm: &VirtualMachine, now: &Snapshot) -> Result<Option<Arc<Vm>>, Several> {
    if let Some(row) = by_unique_id(vm, now) {
        return Ok(Some(row));
    }
    let uid = vm.uid().unwrap_or_default();
    for uuid in [vm.spec.instance_uuid.as_str(), uid.as_str()] {
        if let Some(row) = by_uuid(vm, uuid, now)? {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Ids are given again after a vCenter was restored from a backup, so the VM must not be somebody else's.
fn by_unique_id(vm: &VirtualMachine, now: &Snapshot) -> Option<Arc<Vm>> {
    let unique_id = &vm.status.as_ref()?.unique_id;
    if unique_id.is_empty() {
        return None;
    }
    let row = now.vm(&VmId::new(unique_id.as_str()))?;
    let is_other = row.instance_uuid.as_deref().is_some_and(|uuid| {
        !vm.spec.instance_uuid.is_empty()
            && !same_uuid(uuid, &vm.spec.instance_uuid)
            && !vm.uid().is_some_and(|own| same_uuid(uuid, &own))
    });
    let serves = row.request().is_some_and(|serves| **serves == *vm.namespaced_name());
    (!is_other || serves).then(|| Arc::clone(row))
}

fn by_uuid(vm: &VirtualMachine, uuid: &str, now: &Snapshot) -> Result<Option<Arc<Vm>>, Several> {
    if uuid.is_empty() {
        return Ok(None);
    }
    let request = DOOR.request(vm.namespaced_name());
    let has_it = |row: &&Arc<Vm>| {
        !row.template && row.instance_uuid.as_deref().is_some_and(|own| same_uuid(own, uuid))
    };
    let found: Vec<_> = now.serving(&request).filter(has_it).collect();
    match found[..] {
        [] => Ok(None),
        [row] => Ok(Some(Arc::clone(row))),
        _ => Err(Several {
            uuid: uuid.to_owned(),
            vms: found.iter().map(|row| row.id.clone()).collect(),
        }),
    }
}

pub(crate) fn same_uuid(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.replace('-', "").to_ascii_lowercase();
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roost_clock::SimClock;
    use roost_fleet::{Mirror, Wrote};

    use super::*;
    use crate::api::names::extra_config::NAMESPACED_NAME;
    use crate::provider::OwnVms;

    const UUID: &str = "50000000-0000-4000-8000-000000000001";

    fn vm(unique_id: &str, instance_uuid: &str) -> VirtualMachine {
        let mut vm = VirtualMachine::default();
        vm.metadata.name = Some("web-0".into());
        vm.metadata.namespace = Some("team-a".into());
        vm.metadata.uid = Some("50000000-0000-4000-8000-0000000000aa".into());
        vm.spec.instance_uuid = instance_uuid.into();
        vm.status_mut().unique_id = unique_id.into();
        vm
    }

    #[tokio::test(start_paused = true)]
    async fn a_vm_is_found_by_its_id_then_by_its_uuids_and_never_for_another_object() {
        let mirror = Mirror::new(vec![Arc::new(OwnVms)], Arc::new(SimClock::new()));
        let own = |uuid: &str| {
            Wrote::new()
                .name("web-0")
                .instance_uuid(uuid)
                .extra_config(NAMESPACED_NAME, "team-a/web-0")
        };
        let uid = "50000000-0000-4000-8000-0000000000aa";
        mirror.created(&VmId::new("vm-1"), own(UUID));
        mirror.created(&VmId::new("vm-2"), own(uid));
        let other = Wrote::new().name("x").instance_uuid("5").extra_config(NAMESPACED_NAME, "b/x");
        mirror.created(&VmId::new("vm-3"), other);
        let now = mirror.snapshot();
        let at =
            |vm: VirtualMachine| find(&vm, &now).unwrap().map(|row| row.id.as_str().to_owned());
        let cases = vec![
            ("by id", vm("vm-1", UUID), Some("vm-1")),
            ("id of the uid's", vm("vm-2", UUID), Some("vm-2")),
            ("id is gone", vm("vm-9", UUID), Some("vm-1")),
            ("no id", vm("", UUID), Some("vm-1")),
            ("the id is somebody else's", vm("vm-3", UUID), Some("vm-1")),
            ("by uid", vm("", "50000000-0000-4000-8000-00000000ffff"), Some("vm-2")),
        ];
        for (case, vm, want) in cases {
            assert_eq!(at(vm).as_deref(), want, "{case}");
        }
        mirror.created(&VmId::new("vm-4"), own(UUID));
        let error = find(&vm("", UUID), &mirror.snapshot()).unwrap_err();
        assert_eq!(error.to_string(), format!("2 VMs have the instance uuid {UUID}: vm-1, vm-4"));
    }
}
