//! Overview: get the object, go the way of its deletion or the normal one, write what changed, say when to look again.

use roost_controller::{Draft, Next, Pass};

use super::Context;
use super::delete::reconcile_delete;
use super::normal::reconcile_normal;
use super::outcome::{Delays, Flow, PassError, result_of};
use crate::api::VirtualMachine;
use crate::api::condition::sort;
use crate::front_door::trail;

pub(crate) async fn reconcile(
    cx: &Context,
    pass: &Pass<VirtualMachine>,
) -> Result<Next, PassError> {
    let Some(mut vm) = get_virtual_machine(pass) else {
        cx.provider.forget(pass.key());
        cx.probes.remove(pass.key());
        let namespace = pass.key().namespace().unwrap_or_default();
        cx.metrics.forget(namespace, pass.key().name());
        return Ok(Next::AwaitChange);
    };
    let ended = match check_deletion(&vm) {
        Way::Delete => reconcile_delete(cx, &mut vm).await,
        Way::Normal => reconcile_normal(cx, &mut vm).await,
    };
    trail::ended(&ended);
    let patched = patch_vm(cx, &mut vm).await;
    return_result(cx, ended, patched)
}

fn get_virtual_machine(pass: &Pass<VirtualMachine>) -> Option<Draft<VirtualMachine>> {
    pass.draft()
}

enum Way {
    Delete,
    Normal,
}

fn check_deletion(vm: &VirtualMachine) -> Way {
    if vm.is_being_deleted() { Way::Delete } else { Way::Normal }
}

/// Also after errors: what was learned on the way is shown.
async fn patch_vm(cx: &Context, vm: &mut Draft<VirtualMachine>) -> Result<(), PassError> {
    if let Some(status) = &mut vm.status {
        sort(&mut status.conditions);
    }
    cx.writer.save(vm).await?;
    Ok(())
}

/// An error of the flow goes before one of the write.
fn return_result(
    cx: &Context,
    ended: Flow<Next>,
    patched: Result<(), PassError>,
) -> Result<Next, PassError> {
    let delays =
        Delays { create_requeue: cx.settings.create_requeue, has_signals: cx.has_signals() };
    let result = result_of(ended, &delays);
    match (result, patched) {
        (Err(error), Err(unwritten)) => {
            tracing::warn!("{}", roost_supervise::Chain(&unwritten));
            Err(error)
        }
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        (Ok(next), Ok(())) => Ok(next),
    }
}
