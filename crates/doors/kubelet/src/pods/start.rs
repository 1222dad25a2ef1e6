//! What is there when the kubelet starts: pods of this node beside VMs of this host.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use roost_controller::Key;
use roost_microvm::{RuntimeError, VmRecord};
use roost_views::Verdict;
use tokio::time::Instant;

use super::checks::Checks;
use super::host::{Host, Stranger};
use super::probe::address_of;
use super::table::{Debt, PodTable, PostCloneState, Tracked};
use crate::contract::{Intent, LifecycleState, VmSpec, key, named_vm};

/// What becomes of VMs that no pod wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// They are named in the log and counted.
    Alert,
    /// They are removed.
    Destroy,
    /// Nothing, and nothing is said.
    Keep,
}

#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    #[error("listing the pods of node {node}")]
    Pods { node: String, source: kube::Error },
    #[error("listing the VMs of this host")]
    Vms { source: RuntimeError },
}

/// Reads both sides and joins them. Nothing is decided on half a view: if one side cannot be read, the node does not start.
pub(crate) async fn take_stock(
    host: &Arc<Host>,
    client: &Client,
    node: &str,
) -> Result<PodTable, StartupError> {
    let api: Api<Pod> = Api::all(client.clone());
    let mine = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let pods = async {
        api.list(&mine).await.map_err(|source| StartupError::Pods { node: node.to_owned(), source })
    };
    let vms = async { host.runtime.list().await.map_err(|source| StartupError::Vms { source }) };
    let (pods, mut vms) = tokio::try_join!(pods, vms)?;
    let table = PodTable::default();
    for pod in &pods.items {
        let now = host.clock.now();
        if let Some((tracked, how)) = adopt(host, pod, &vms, now) {
            if let Some(vm) = &tracked.vm {
                vms.retain(|other| other.id != vm.id);
            }
            if how == How::Name {
                host.metrics.adopted_by_name.inc();
            }
            let key = Key::of(pod);
            if let Some(vm) = &tracked.vm {
                let reason = format!("VM {} was there at the start", vm.name());
                host.journal.pod(Verdict::Adopted, &key.to_string(), Some(vm.name()), &reason);
            }
            table.put(key, tracked);
        }
    }
    // Also one whose annotations cannot be followed: it says whose VM that is.
    let named: BTreeSet<String> = pods.items.iter().flat_map(named_vm).collect();
    vms.retain(|vm| !named.contains(&vm.id) && !named.contains(vm.name()));
    for vm in vms {
        if orphan(host, &vm).await {
            let stranger = Stranger { since: Instant::now(), told: true };
            let mut strangers =
                host.strangers.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            strangers.insert(vm.id, stranger);
        }
    }
    Ok(table)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Id,
    Name,
    Without,
}

/// A pod with its VM, found by the id in its annotation, else by name. `None`: it is brought up as a new one.
fn adopt(host: &Host, pod: &Pod, vms: &[VmRecord], now: Timestamp) -> Option<(Tracked, How)> {
    let (mut spec, problem) = VmSpec::read(pod);
    let id = pod.annotations().get(key::VM_ID).filter(|id| !id.is_empty());
    let by_id = id.and_then(|id| vms.iter().find(|vm| vm.id == *id));
    let by_name = vms.iter().find(|vm| vm.name() == spec.name && spec.managed);
    let (vm, how) = match (by_id, by_name) {
        (Some(vm), _) => (Some(vm), How::Id),
        (None, Some(vm)) => (Some(vm), How::Name),
        (None, None) if spec.hibernate && problem.is_none() => (None, How::Without),
        (None, None) => return None,
    };
    if let (true, Some(vm)) = (spec.name.is_empty(), vm) {
        vm.name().clone_into(&mut spec.name);
    }
    let status = pod.status.as_ref();
    let containers =
        status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let running =
        containers.first().and_then(|container| container.state.as_ref()?.running.as_ref());
    let annotation = |key: &str| pod.annotations().get(key).map(String::as_str);
    let post_clone = annotation(key::POST_CLONE_STATE).and_then(PostCloneState::parse);
    // Either the guest's network was being set up, or nobody has come to say that the VM is there.
    let is_unsaid = how == How::Name && running.is_none() && post_clone.is_none();
    let owes = spec.managed && (is_unsaid || post_clone == Some(PostCloneState::Running));
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let was_ready = conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True");
    let mut tracked = Tracked {
        uid: pod.uid().unwrap_or_default(),
        vm: vm.cloned(),
        started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
        restarts: containers.first().map_or(0, |container| container.restart_count),
        intent: Intent::read(pod),
        ready: was_ready && vm.is_some_and(|vm| vm.state.is_running()),
        adopted: running.and_then(|running| running.started_at.as_ref()).map(|time| time.0),
        post_clone,
        debt: if owes { Debt::Open } else { Debt::None },
        hint: annotation(key::POST_CLONE_HINT).and_then(script),
        named: named_vm(pod),
        checks: Checks::of(pod),
        spec: Some(spec),
        ..Tracked::default()
    };
    // A hibernation that was given up while nobody listened may have left its tag.
    let was_leaving = tracked.intent.as_ref().is_some_and(|intent| {
        matches!(intent.state, LifecycleState::Hibernating | LifecycleState::Failed)
    });
    let is_awake = tracked.spec.as_ref().is_some_and(|spec| spec.managed && !spec.hibernate);
    tracked.has_stale_tag = was_leaving && is_awake && tracked.vm.is_some();
    tracked.address = address_of(host, &tracked, now);
    Some((tracked, how))
}

/// The script of a hint.
fn script(hint: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(hint).ok()?).ok()
}

/// Whether it is dealt with.
pub(super) async fn orphan(host: &Host, vm: &VmRecord) -> bool {
    match host.orphans {
        OrphanPolicy::Keep => {}
        OrphanPolicy::Alert => {
            host.metrics.orphans.inc();
            let reason = "no pod of this node wants it; VK_ORPHAN_POLICY=alert keeps it";
            host.journal.vm(Verdict::Kept, vm.name(), reason);
            tracing::warn!(
                vm = vm.name(),
                id = vm.id,
                "no pod of this node wants VM {}",
                vm.name()
            );
        }
        OrphanPolicy::Destroy => match host.remove(vm).await {
            Ok(()) => {
                tracing::info!(
                    vm = vm.name(),
                    "removed VM {}, which no pod of this node wants",
                    vm.name()
                );
                host.journal.vm(Verdict::Deleted, vm.name(), "no pod of this node wanted it");
            }
            Err(error) => {
                tracing::warn!(vm = vm.name(), "{}", roost_supervise::Chain(&error));
                return false;
            }
        },
    }
    true
}
