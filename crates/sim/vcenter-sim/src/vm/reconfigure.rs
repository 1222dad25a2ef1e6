//! `ReconfigVM_Task`.

use std::sync::Arc;

use roost_vim_wire::types::VirtualMachineConfigSpec;
use roost_vim_wire::{Element, MoRef};

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::guest;
use crate::inventory::checked_name;
use crate::task::{Job, submit};
use crate::vm::fault::{need_connected, not_supported, vm};
use crate::vm::{Draft, Power, config_change, power, rename};
use crate::world::World;

/// Carries a change out as a task of this method.
pub(crate) fn reconfigure_as(
    world: &mut World,
    cx: &CallContext<'_>,
    method: &'static str,
    this: &MoRef,
    spec: VirtualMachineConfigSpec,
) -> MoRef {
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let (spec, checked) = (Arc::new(spec), this.clone());
    let (asked, done) = (Arc::clone(&spec), this.clone());
    let job = Job::on(method, this)
        .first(move |world, _| {
            need_connected(world, &checked)?;
            check(world, &checked, &asked)
        })
        .then(takes, move |world, run| {
            check(world, &done, &spec)?;
            carry_out(world, &run.into(), &done, &spec).map(|()| None)
        });
    submit(world, cx, job)
}

/// What can be refused before anything is worked out.
fn check(world: &World, this: &MoRef, spec: &VirtualMachineConfigSpec) -> Result<(), Failure> {
    let row = vm(world, this)?;
    if spec
        .change_version
        .as_ref()
        .is_some_and(|version| !version.is_empty() && *version != row.change_version())
    {
        return Err(Failure::of(
            "ConcurrentAccess",
            "The virtual machine has been changed since it was read.",
        ));
    }
    if row.template && !is_only_name_and_annotation(spec) {
        return Err(not_supported(
            "Only the name and the annotation of a template can be changed.",
        ));
    }
    if let Some(name) = &spec.name {
        rename::check_vm(world, this, name)?;
    }
    Ok(())
}

fn is_only_name_and_annotation(spec: &VirtualMachineConfigSpec) -> bool {
    let allowed = VirtualMachineConfigSpec {
        change_version: spec.change_version.clone(),
        name: spec.name.clone(),
        annotation: spec.annotation.clone(),
        ..VirtualMachineConfigSpec::default()
    };
    *spec == allowed
}

/// Works the request out on a draft and, if all of it is accepted, makes that the configuration.
fn carry_out(
    world: &mut World,
    scene: &Scene,
    this: &MoRef,
    spec: &VirtualMachineConfigSpec,
) -> Result<(), Failure> {
    let row = vm(world, this)?;
    let (mut draft, host, pool, before) =
        (Draft::of(row), row.host.clone(), row.pool.clone(), row.demand());
    config_change::apply(world, &mut draft, spec)?;
    config_change::check_cpu_limit(world, &draft, &host)?;
    draft.check_space(world)?;
    if draft.power == Power::On
        && let Some(pool) = &pool
    {
        let after = crate::pool::Demand::of(
            draft.config.cpus,
            draft.config.memory_mb,
            &draft.config.settings,
        );
        let grows = crate::pool::Demand {
            memory: after.memory - before.memory,
            mhz: after.mhz - before.mhz,
        };
        if grows.memory > 0 || grows.mhz > 0 {
            world.inventory.admit(pool, grows)?;
        }
    }
    let (config, mut effects) = (draft.config, draft.effects);
    let cards = guest::cards(&vm(world, this)?.config);
    world.inventory.change_vm(this, |row| {
        row.config = config;
        row.identify(spec.uuid.as_deref(), spec.instance_uuid.as_deref());
        row.created = spec.create_date.unwrap_or(row.created);
        row.touch(scene.now);
    });
    effects.apply_files(world, scene.now);
    guest::cards_changed(world, this, &cards);
    let mut paths = std::mem::take(&mut effects.paths);
    let row = vm(world, this)?;
    if row.power == Power::On && row.demand() != before {
        paths.extend(power::USAGE_PATHS.map(Into::into));
    }
    paths.extend(["config.changeVersion", "config.modified"].map(Into::into));
    for (given, of_config, of_summary) in [
        (&spec.uuid, "config.uuid", "summary.config.uuid"),
        (&spec.instance_uuid, "config.instanceUuid", "summary.config.instanceUuid"),
    ] {
        if given.is_some() {
            paths.extend([of_config.into(), of_summary.into()]);
        }
    }
    world.inventory.changes.modified(this, paths);
    post(world, scene, this, spec, (&effects.modified, &effects.added, &effects.deleted));
    if let Some(name) = spec.name.as_deref().map(checked_name).transpose()? {
        rename::carry_out(world, scene, this, &name);
    }
    Ok(())
}

fn post(
    world: &mut World,
    scene: &Scene,
    this: &MoRef,
    spec: &VirtualMachineConfigSpec,
    (modified, added, deleted): (&str, &str, &str),
) {
    let head = event::fill(world, this, "Reconfigured {vm} on {host} in {dc}.");
    let message = format!(
        "{head}  \n \nModified:  \n \n{modified} \n\nAdded:  \n \n{added} \n\nDeleted:  \n \n{deleted}"
    );
    let changes = Element::new("configChanges")
        .with_field("modified", &modified.to_owned())
        .with_field("added", &added.to_owned())
        .with_field("deleted", &deleted.to_owned());
    let draft = event::vm_draft(world, "VmReconfiguredEvent", this, message);
    event::post(world, scene, draft.with("configSpec", spec).with("configChanges", &changes));
}
