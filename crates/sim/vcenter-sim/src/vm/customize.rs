//! `CustomizeVM_Task`, and what customization of a clone needs.

use std::sync::Arc;

use roost_vim_wire::types::CustomizationSpec;
use roost_vim_wire::{Fault, MoRef};

use crate::call::{CallContext, Failure};
use crate::task::{Job, submit};
use crate::vm::fault::{need_connected, need_power, refuse_template, vm};
use crate::vm::{Config, Power, guest_full_name};
use crate::world::World;

/// Whether a VM of this configuration can be customized so.
pub(super) fn check(config: &Config, spec: &CustomizationSpec) -> Result<(), Failure> {
    let (in_spec, in_vm) = (spec.nic_setting_map.len(), config.nics().count());
    if in_spec != in_vm {
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let fault = Fault::of("NicSettingMismatch")
            .with("numberOfNicsInSpec", &count(in_spec))
            .with("numberOfNicsInVM", &count(in_vm));
        let message = format!(
            "The customization has {in_spec} NIC settings, the virtual machine has {in_vm} NICs."
        );
        return Err(Failure::new(fault, message));
    }
    if !config.has_tools {
        let guest = guest_full_name(&config.settings.guest_id).to_owned();
        let message = format!(
            "Customization of the guest operating system '{guest}' is not supported: no tools."
        );
        return Err(
            Failure::of("UncustomizableGuest", message).with("uncustomizableGuestOS", &guest)
        );
    }
    Ok(())
}

pub(super) fn customize(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: CustomizationSpec,
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    let takes = cx.handle.options.timings.customize.draw(&mut world.random);
    let (checked, done, asked) = (this.clone(), this.clone(), spec.clone());
    let job = Job::on("CustomizeVM_Task", this)
        .first(move |world, _| {
            need_connected(world, &checked)?;
            need_power(world, &checked, Power::Off)?;
            let row = vm(world, &checked)?;
            if row.customization.is_some() {
                return Err(Failure::of(
                    "CustomizationPending",
                    "A customization is already pending.",
                ));
            }
            check(&row.config, &asked)
        })
        .then(takes, move |world, _| {
            need_power(world, &done, Power::Off)?;
            world.inventory.change_vm(&done, |row| row.customization = Some(Arc::new(spec)));
            world.inventory.changes.modified(&done, ["config.tools.pendingCustomization"]);
            Ok(None)
        });
    Ok(submit(world, cx, job))
}
