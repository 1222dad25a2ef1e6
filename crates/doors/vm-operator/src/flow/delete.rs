//! Delete: the object goes after its VM, and not while somebody holds it back.

use kube::ResourceExt as _;
use roost_controller::{Draft, Next};

use super::Context;
use super::outcome::{Flow, Halt};
use crate::api::VirtualMachine;
use crate::api::names::finalizer;
use crate::front_door::trail::Chart::Delete;
use crate::front_door::trail::at;
use crate::planted::{self, Bug};

/// Which way a deletion goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Somebody holds it back.
    SkipDelete,
    /// Nothing of it is ours any more but what is counted in this process.
    CleanupOnly,
    /// The VM stays and loses our marks.
    SkipVmDelete,
    DeleteVsphereVm,
}

pub(crate) fn plan(vm: &VirtualMachine) -> Plan {
    if vm.is_paused_by_annotation() || !vm.delete_checks().is_empty() {
        Plan::SkipDelete
    } else if !vm.has_finalizer() && !vm.has_deprecated_finalizer() {
        Plan::CleanupOnly
    } else if vm.skips_platform_delete() || planted::is(Bug::LeavesVms) {
        Plan::SkipVmDelete
    } else {
        Plan::DeleteVsphereVm
    }
}

fn box_of(plan: Plan) -> &'static str {
    match plan {
        Plan::SkipDelete => "held back",
        Plan::CleanupOnly => "clean-up only",
        Plan::SkipVmDelete => "the VM stays",
        Plan::DeleteVsphereVm => "delete the VM",
    }
}

pub(crate) async fn reconcile_delete(cx: &Context, vm: &mut Draft<VirtualMachine>) -> Flow<Next> {
    let plan = plan(vm);
    at(Delete, box_of(plan));
    match plan {
        Plan::SkipDelete => return Ok(Next::AwaitChange),
        Plan::CleanupOnly => {}
        Plan::SkipVmDelete => {
            skip_vm_delete(cx, vm).await?;
            remove_finalizer(vm);
            emit_event(cx, vm, "the VM stays, without our marks");
        }
        Plan::DeleteVsphereVm => {
            delete_vsphere_vm(cx, vm).await?;
            remove_finalizer(vm);
            emit_event(cx, vm, "Delete success");
        }
    }
    cleanup_only(cx, vm);
    Ok(Next::AwaitChange)
}

async fn skip_vm_delete(cx: &Context, vm: &mut VirtualMachine) -> Flow {
    cx.provider.cleanup(cx, vm).await
}

async fn delete_vsphere_vm(cx: &Context, vm: &mut VirtualMachine) -> Flow {
    let ended = cx.provider.delete(cx, vm).await;
    if let Err(Halt::Failed(failure)) = &ended {
        let why = roost_supervise::Chain(failure).to_string();
        cx.events.warning(vm, "DeleteFailure", &why);
    }
    ended
}

fn remove_finalizer(vm: &mut Draft<VirtualMachine>) {
    vm.remove_finalizer(finalizer::VM);
    vm.remove_finalizer(finalizer::DEPRECATED_VM);
}

fn emit_event(cx: &Context, vm: &VirtualMachine, note: &str) {
    cx.events.normal(vm, "DeleteSuccess", note);
}

fn cleanup_only(cx: &Context, vm: &VirtualMachine) {
    let key = roost_controller::Key::of(vm);
    cx.metrics.forget(vm.namespace().as_deref().unwrap_or_default(), &vm.name_any());
    cx.probes.remove(&key);
    cx.provider.forget(&key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names::annotation;

    #[test]
    fn a_deletion_takes_the_way_that_its_marks_say() {
        let check = format!("{}net", annotation::DELETE_CHECK_PREFIX);
        let ours = Some(finalizer::VM);
        for (case, finalizer, mark, want) in [
            ("ours", ours, None, Plan::DeleteVsphereVm),
            ("of old", Some(finalizer::DEPRECATED_VM), None, Plan::DeleteVsphereVm),
            ("no finalizer", None, None, Plan::CleanupOnly),
            ("paused", ours, Some(annotation::PAUSED), Plan::SkipDelete),
            ("held back", ours, Some(check.as_str()), Plan::SkipDelete),
            ("kept", ours, Some(annotation::SKIP_DELETE_PLATFORM_RESOURCE), Plan::SkipVmDelete),
            (
                "kept, not ours",
                None,
                Some(annotation::SKIP_DELETE_PLATFORM_RESOURCE),
                Plan::CleanupOnly,
            ),
        ] {
            let mut vm = VirtualMachine::default();
            vm.metadata.finalizers = finalizer.map(|name| vec![name.to_owned()]);
            if let Some(mark) = mark {
                vm.annotations_mut().insert(mark.to_owned(), String::new());
            }
            assert_eq!(plan(&vm), want, "{case}");
        }
    }
}
