//! `UpgradeVM_Task`: newer virtual hardware.

use std::sync::Arc;

use roost_vim_wire::MoRef;

use crate::call::{CallContext, Failure};
use crate::event;
use crate::task::{Job, submit};
use crate::vm::Power;
use crate::vm::fault::{need_power, refuse_template, vm};
use crate::world::World;

/// The newest hardware that the simulated hosts know.
const NEWEST: u32 = 21;

pub(super) fn upgrade(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    version: Option<String>,
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    let takes = cx.handle.options.timings.upgrade.draw(&mut world.random);
    let version =
        version.filter(|version| !version.is_empty()).unwrap_or_else(|| format!("vmx-{NEWEST}"));
    let (done, checked, wanted) = (this.clone(), this.clone(), version.clone());
    let job = Job::on("UpgradeVM_Task", this)
        .first(move |world, _| {
            need_power(world, &checked, Power::Off)?;
            let own = &vm(world, &checked)?.config.settings.version;
            match (number(own), number(&wanted)) {
                (_, None) => Err(Failure::invalid_argument("version")),
                (_, Some(wanted)) if wanted > NEWEST => Err(Failure::invalid_argument("version")),
                (Some(own), Some(wanted)) if own >= wanted => Err(Failure::of(
                    "AlreadyUpgraded",
                    "The virtual machine has already been upgraded to this version.",
                )),
                _ => Ok(()),
            }
        })
        .then(takes, move |world, run| {
            need_power(world, &done, Power::Off)?;
            world.inventory.change_vm(&done, |row| {
                Arc::make_mut(&mut row.config.settings).version.clone_from(&version);
                row.touch(run.now);
            });
            let paths = [
                "config.version",
                "summary.config.hwVersion",
                "guest.hwVersion",
                "config.changeVersion",
                "config.modified",
            ];
            world.inventory.changes.modified(&done, paths);
            let message =
                event::fill(world, &done, "Virtual machine {vm} in {dc} upgraded to version ")
                    + &version;
            let draft = event::vm_draft(world, "VmUpgradeCompleteEvent", &done, message)
                .with("version", &version);
            event::post(world, &run.into(), draft);
            Ok(None)
        });
    Ok(submit(world, cx, job))
}

fn number(version: &str) -> Option<u32> {
    version.strip_prefix("vmx-")?.parse().ok()
}

/// The oldest hardware that the simulated hosts can still run.
const OLDEST: u32 = 4;

/// Whether a VM may be of this hardware version; without one it is of the usual.
pub(crate) fn is_supported(version: &str) -> bool {
    version.is_empty()
        || number(version).is_some_and(|version| (OLDEST..=NEWEST).contains(&version))
}
