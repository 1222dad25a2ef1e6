//! Status: what is seen of a VM, written into its object. Pure; nothing is asked.

mod guest;
mod hardware;
mod network;
mod probe;
mod storage;

pub(crate) use self::probe::{Probed, mark_ready};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use roost_fleet::{Connection, Power};
use roost_vim::wire::types::VirtualMachineSnapshotTree;

use super::seen::Seen;
use crate::api::condition::{
    ConditionType, Reason, Truth, annotated, mark, mark_false, mark_text, mark_true, mark_unknown,
    remove, sort,
};
use crate::api::names::{extra_config, label};
use crate::api::vm::{ClassReference, GuestStatus, PauseState, PowerState, ProviderStatus};
use crate::api::{SnapshotReference, VERSION, VirtualMachine};

/// What status shows beside what the VM says itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Around {
    /// The name of the VM's host.
    pub(crate) host_name: Option<String>,
    /// The zone that its resource pool is in.
    pub(crate) zone: Option<String>,
    /// Snapshots that have an object, by name.
    pub(crate) managed_snapshots: Vec<String>,
    /// Whether the group exists and names the VM; unset without a group.
    pub(crate) group: Option<GroupLink>,
    pub(crate) resizes_classes: bool,
    /// Why the last change of its power state failed.
    pub(crate) power_error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupLink {
    Linked,
    NotFound,
    NotMember,
}

/// Reconcile status, in the order of its chart.
pub(crate) fn reconcile_status(
    vm: &mut VirtualMachine,
    seen: &Seen,
    around: &Around,
    now: Timestamp,
) {
    set_created_condition(vm, now);
    backfill_class(vm, around);
    update_group_condition(vm, around, now);
    set_power_state(vm, seen, around, now);
    set_ids(vm, seen);
    set_hardware_version(vm, seen);
    hardware::update_hardware_status(vm, seen);
    network::update_network_status(vm, seen, now);
    storage::update_storage_status(vm, seen);
    update_snapshots(vm, seen, around);
    update_pause(vm, seen, now);
    guest::update_guest_conditions(vm, seen, now);
    update_connection(vm, seen, now);
    probe::update_probe_status(vm, seen, now);
    set_node_name(vm, around);
    set_zone(vm, around);
    copy_annotated_conditions(vm, now);
    sort(&mut vm.status_mut().conditions);
}

fn conditions(vm: &mut VirtualMachine) -> &mut Vec<Condition> {
    &mut vm.status_mut().conditions
}

fn set_created_condition(vm: &mut VirtualMachine, now: Timestamp) {
    mark_true(conditions(vm), ConditionType::Created, now);
}

fn backfill_class(vm: &mut VirtualMachine, around: &Around) {
    if vm.is_classless() {
        vm.status_mut().class = None;
    } else if !around.resizes_classes && vm.status_mut().class.is_none() {
        let class = class_reference(&vm.spec.class_name);
        vm.status_mut().class = Some(class);
    }
}

pub(crate) fn class_reference(name: &str) -> ClassReference {
    ClassReference {
        api_version: format!("{}/{VERSION}", crate::api::GROUP),
        kind: crate::api::VirtualMachineClass::KIND.to_owned(),
        name: name.to_owned(),
    }
}

fn update_group_condition(vm: &mut VirtualMachine, around: &Around, now: Timestamp) {
    let name = vm.spec.group_name.clone();
    let all = conditions(vm);
    let kind = ConditionType::GroupLinked;
    match around.group {
        None => {
            remove(all, kind);
        }
        Some(GroupLink::Linked) => {
            mark_true(all, kind, now);
        }
        Some(GroupLink::NotFound) => {
            mark_false(all, kind, Reason::NotFound, &format!("there is no group {name}"), now);
        }
        Some(GroupLink::NotMember) => {
            let why = format!("group {name} does not name it");
            mark_false(all, kind, Reason::NotMember, &why, now);
        }
    }
}

pub(crate) fn power_state(power: Power) -> PowerState {
    match power {
        Power::On => PowerState::PoweredOn,
        Power::Suspended => PowerState::Suspended,
        Power::Off | Power::Unknown => PowerState::PoweredOff,
    }
}

fn set_power_state(vm: &mut VirtualMachine, seen: &Seen, around: &Around, now: Timestamp) {
    let is = power_state(seen.power());
    let wanted = vm.spec.power_state;
    vm.status_mut().power_state = Some(is);
    let kind = ConditionType::PowerStateSynced;
    if wanted.is_none_or(|wanted| wanted == is) {
        mark(conditions(vm), kind, Truth::True, Reason::Synced, is.as_str(), now);
    } else {
        let wanted = wanted.map_or("", PowerState::as_str);
        let mut message = format!("{is}, wanted is {wanted}");
        if let Some(why) = &around.power_error {
            message = format!("{message}: {why}");
        }
        mark_false(conditions(vm), kind, Reason::NotSynced, &message, now);
    }
}

fn set_ids(vm: &mut VirtualMachine, seen: &Seen) {
    let row = &seen.row;
    let status = vm.status_mut();
    row.id.as_str().clone_into(&mut status.unique_id);
    if let Some(uuid) = &row.uuid {
        status.bios_uuid = uuid.to_string();
    }
    if let Some(uuid) = &row.instance_uuid {
        status.instance_uuid = uuid.to_string();
    }
    if let Some(created) = row.created
        && status.provider.is_none()
    {
        // The wire has whole seconds.
        let created = Timestamp::from_second(created.as_second()).unwrap_or(created);
        status.provider = Some(ProviderStatus { creation_timestamp: Some(Time(created)) });
    }
}

fn set_hardware_version(vm: &mut VirtualMachine, seen: &Seen) {
    let status = vm.status_mut();
    if let Some(version) = seen.hardware_version() {
        status.hardware_version = version;
    }
    status.change_block_tracking = seen.flag("config.changeTrackingEnabled");
    if let Some(guest_id) = seen.text("config.guestId") {
        let known = status.guest.take().unwrap_or_default();
        let full_name = seen.text("config.guestFullName").map(str::to_owned);
        status.guest = Some(GuestStatus {
            guest_id: guest_id.to_owned(),
            guest_full_name: full_name.unwrap_or(known.guest_full_name),
        });
    }
    let last = seen.extra_config(extra_config::LAST_RESTART_TIME);
    if let Some(last) = last.and_then(parse_nanoseconds) {
        let last = Timestamp::from_second(last.as_second()).unwrap_or(last);
        status.last_restart_time = Some(Time(last));
    }
}

/// Nanoseconds since the epoch, as text.
pub(crate) fn parse_nanoseconds(text: &str) -> Option<Timestamp> {
    Timestamp::from_nanosecond(text.trim().parse().ok()?).ok()
}

fn update_snapshots(vm: &mut VirtualMachine, seen: &Seen, around: &Around) {
    let reference = |tree: &VirtualMachineSnapshotTree| {
        if around.managed_snapshots.contains(&tree.name) {
            SnapshotReference::managed(&tree.name)
        } else {
            SnapshotReference::unmanaged()
        }
    };
    let info = seen.detail.snapshots();
    let roots = info.map_or(&[][..], |info| &info.root_snapshot_list);
    let current = info.and_then(|info| info.current_snapshot.as_ref());
    let current = current.and_then(|wanted| {
        walk(roots).into_iter().find(|tree| tree.snapshot == *wanted).map(reference)
    });
    let status = vm.status_mut();
    status.root_snapshots = roots.iter().map(reference).collect();
    status.current_snapshot = current;
}

/// The whole tree, parents before children.
pub(crate) fn walk(roots: &[VirtualMachineSnapshotTree]) -> Vec<&VirtualMachineSnapshotTree> {
    let mut all = Vec::new();
    for tree in roots {
        all.push(tree);
        all.extend(walk(&tree.child_snapshot_list));
    }
    all
}

fn update_pause(vm: &mut VirtualMachine, seen: &Seen, now: Timestamp) {
    let pause = PauseState::new(vm.is_paused_by_annotation(), seen.is_paused());
    mark_pause(vm, pause, now);
}

/// The label and the condition that say who has paused it.
pub(crate) fn mark_pause(vm: &mut VirtualMachine, pause: PauseState, now: Timestamp) {
    let kind = ConditionType::ReconcileReady;
    if let Some(by) = pause.label() {
        vm.labels_mut().insert(label::PAUSED.to_owned(), by.to_owned());
        let message = format!("paused by {by}");
        mark_false(conditions(vm), kind, Reason::ReconcilePaused, &message, now);
    } else {
        if vm.labels().contains_key(label::PAUSED) {
            vm.labels_mut().remove(label::PAUSED);
        }
        mark_true(conditions(vm), kind, now);
    }
}

fn update_connection(vm: &mut VirtualMachine, seen: &Seen, now: Timestamp) {
    let kind = ConditionType::Connected;
    let all = conditions(vm);
    let reason = match seen.row.connection {
        Connection::Connected => {
            mark_true(all, kind, now);
            return;
        }
        Connection::Unknown => {
            mark_unknown(all, kind, Reason::Unknown, "", now);
            return;
        }
        Connection::Disconnected => Reason::Disconnected,
        Connection::Orphaned => Reason::Orphaned,
        Connection::Inaccessible => Reason::Inaccessible,
        Connection::Invalid => Reason::Invalid,
    };
    mark_false(all, kind, reason, "vCenter does not reach the VM", now);
}

fn set_node_name(vm: &mut VirtualMachine, around: &Around) {
    if let Some(host) = &around.host_name {
        vm.status_mut().node_name.clone_from(host);
    }
}

fn set_zone(vm: &mut VirtualMachine, around: &Around) {
    let labelled = vm.labels().get(label::ZONE).cloned().filter(|zone| !zone.is_empty());
    let known = vm.status.as_ref().map(|status| status.zone.clone()).unwrap_or_default();
    let zone = match (labelled, &around.zone) {
        (Some(labelled), _) if labelled == known => return,
        (_, Some(seen)) => seen.clone(),
        (Some(labelled), None) => labelled,
        (None, None) => return,
    };
    if vm.labels().get(label::ZONE) != Some(&zone) {
        vm.labels_mut().insert(label::ZONE.to_owned(), zone.clone());
    }
    vm.status_mut().zone = zone;
}

fn copy_annotated_conditions(vm: &mut VirtualMachine, now: Timestamp) {
    for told in annotated(vm.annotations()) {
        mark_text(conditions(vm), &told.kind, told.truth, &told.reason, &told.message, now);
    }
}
