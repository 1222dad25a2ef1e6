//! Datastore clusters: made, configured, and the recommendations that were given for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use roost_vim_wire::types::{StoragePlacementSpec, VirtualMachineFileInfo};
use roost_vim_wire::{MoRef, MoType};

use crate::call::{CallContext, Failure};
use crate::inventory::{Folder, FolderKind, checked_name};
use crate::task::{Job, submit};
use crate::vm::{NewVm, create_as};
use crate::world::World;

/// What was recommended and can still be applied, by key. Old ones are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Recommendations {
    next: u64,
    kept: BTreeMap<u64, (StoragePlacementSpec, MoRef)>,
}

/// A vCenter forgets recommendations after minutes; a number does the same here.
const KEPT: usize = 1000;

impl Recommendations {
    pub(super) fn keep(&mut self, spec: &StoragePlacementSpec, datastore: &MoRef) -> String {
        self.next += 1;
        self.kept.insert(self.next, (spec.clone(), datastore.clone()));
        if self.kept.len() > KEPT {
            self.kept.pop_first();
        }
        self.next.to_string()
    }
}

pub(super) fn create(world: &mut World, this: &MoRef, name: &str) -> Result<MoRef, Failure> {
    let name: Arc<str> = checked_name(name)?.into();
    if world.inventory.folders.get(this).is_none_or(|row| row.kind != FolderKind::Datastore) {
        return Err(Failure::of("NotSupported", "The folder cannot hold datastore clusters."));
    }
    world.inventory.refuse_duplicate(this, &name)?;
    let pod = world.inventory.ids.next(MoType::StoragePod, "group-p");
    let row = Folder::new(&name, Some(this), FolderKind::Pod);
    world.inventory.folders.insert(&pod, row);
    world.inventory.hang(this, &name, &pod);
    world.inventory.changes.entered(&pod);
    world.inventory.changes.modified(this, ["childEntity"]);
    Ok(pod)
}

/// Storage DRS is always on here; that somebody says so is a task all the same.
pub(super) fn configure(
    world: &mut World,
    cx: &CallContext<'_>,
    pod: &MoRef,
) -> Result<MoRef, Failure> {
    if !world.inventory.folders.contains(pod) {
        return Err(Failure::not_found(pod));
    }
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let job = Job::on("ConfigureStorageDrsForPod_Task", pod);
    Ok(submit(world, cx, job.then(takes, |_, _| Ok(None))))
}

/// Carries a recommendation out: the VM is made on the datastore that was recommended.
pub(super) fn apply(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    keys: &[String],
) -> Result<MoRef, Failure> {
    let key = keys.first().and_then(|key| key.parse().ok());
    let found = key.and_then(|key: u64| world.recommendations.kept.remove(&key));
    let Some((spec, datastore)) = found else { return Err(Failure::invalid_argument("key")) };
    let name = world.inventory.name(&datastore).unwrap_or_default().to_owned();
    let missing = |field: &str| Failure::invalid_argument(field);
    match spec.kind.as_str() {
        "create" => {
            let mut config = spec.config_spec.ok_or_else(|| missing("configSpec"))?;
            let path = Some(format!("[{name}]"));
            config.files =
                Some(VirtualMachineFileInfo { vm_path_name: path, ..Default::default() });
            for change in &mut config.device_change {
                if let Some(backing) =
                    change.device.backing.as_mut().filter(|_| change.device.class == "VirtualDisk")
                {
                    backing.datastore = Some(datastore.clone());
                }
            }
            let new = NewVm {
                method: "ApplyStorageDrsRecommendation_Task",
                entity: datastore,
                takes: cx.handle.options.timings.create.draw(&mut world.random),
                folder: spec.folder.ok_or_else(|| missing("folder"))?,
                pool: spec.resource_pool.ok_or_else(|| missing("resourcePool"))?,
                host: spec.host,
                spec: config,
                has_tools: false,
            };
            Ok(create_as(world, cx, new).0)
        }
        "clone" => {
            let vm = spec.vm.ok_or_else(|| missing("vm"))?;
            let mut clone = spec.clone_spec.unwrap_or_default();
            clone.location.datastore = Some(datastore);
            let folder = spec.folder.ok_or_else(|| missing("folder"))?;
            crate::vm::clone_vm(
                world,
                cx,
                &vm,
                (folder, spec.clone_name.unwrap_or_default(), clone),
            )
        }
        "relocate" => {
            let vm = spec.vm.ok_or_else(|| missing("vm"))?;
            let mut relocate = spec.relocate_spec.unwrap_or_default();
            relocate.datastore = Some(datastore);
            crate::vm::relocate_vm(world, cx, &vm, relocate)
        }
        _ => Err(Failure::not_found(this)),
    }
}
