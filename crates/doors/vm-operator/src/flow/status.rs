//! Status: the chart is in the provider, because all of it is about what is seen; here is what must be asked for it.

use kube::ResourceExt as _;
use roost_controller::Key;

use super::Context;
use super::outcome::{Done, Flow};
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, find};
use crate::provider::{self, Around, GroupLink, Seen, mark_ready};

pub(super) async fn reconcile_status(cx: &Context, vm: &mut VirtualMachine, seen: &Seen) -> Flow {
    let around = around(cx, vm, seen).await;
    let was = readiness(vm);
    provider::reconcile_status(vm, seen, &around, cx.now());
    if let Some(probed) = cx.probes.result(&Key::of(vm)) {
        mark_ready(vm, &probed, cx.now());
    }
    emit_readiness(cx, vm, was.as_deref());
    Ok(())
}

fn readiness(vm: &VirtualMachine) -> Option<String> {
    find(vm.conditions(), ConditionType::Ready).map(|ready| ready.status.clone())
}

/// Only a turn is news.
fn emit_readiness(cx: &Context, vm: &VirtualMachine, was: Option<&str>) {
    let Some(ready) = find(vm.conditions(), ConditionType::Ready) else { return };
    if Some(ready.status.as_str()) == was {
        return;
    }
    match ready.status.as_str() {
        "True" => cx.events.normal(vm, "Ready", "the readiness probe succeeds"),
        "False" => cx.events.warning(vm, "NotReady", &ready.message),
        _ => cx.events.warning(vm, "Unknown", &ready.message),
    }
}

async fn around(cx: &Context, vm: &VirtualMachine, seen: &Seen) -> Around {
    let namespace = vm.namespace().unwrap_or_default();
    let host_name = match seen.host() {
        Some(host) => cx.provider.places.host_name(&host).await,
        None => None,
    };
    let pool = seen.row.pool.as_ref().map(|pool| pool.moref().id.to_string());
    let snapshots = cx.stores.snapshots_of.objects(&vm.namespaced_name());
    Around {
        host_name: host_name.map(|name| name.to_string()),
        zone: pool.and_then(|pool| cx.provider.places.zone_of(&namespace, &pool)),
        managed_snapshots: snapshots.iter().map(|snapshot| snapshot.name_any()).collect(),
        group: group(cx, vm, &namespace),
        resizes_classes: cx.provider.settings.features.resize,
        power_error: cx.provider.steps.last_error(&Key::of(vm), Done::PowerStateUpdated),
    }
}

fn group(cx: &Context, vm: &VirtualMachine, namespace: &str) -> Option<GroupLink> {
    let name = &vm.spec.group_name;
    if name.is_empty() || !cx.provider.settings.features.groups {
        return None;
    }
    let Some(group) = cx.stores.groups.get(&Key::new(namespace, name)) else {
        return Some(GroupLink::NotFound);
    };
    let own = vm.name_any();
    let mut members = group.spec.boot_order.iter().flat_map(|order| &order.members);
    let is_member =
        members.any(|member| member.name == own && member.kind.as_str() == VirtualMachine::KIND);
    Some(if is_member { GroupLink::Linked } else { GroupLink::NotMember })
}
