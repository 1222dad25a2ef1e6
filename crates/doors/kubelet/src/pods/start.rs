//! What is there when the kubelet starts: pods of this node beside VMs of this host.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use roost_controller::Key;
use roost_microvm::{RuntimeError, VmRecord};

use super::host::Host;
use super::probe::address_of;
use super::table::{PodTable, Tracked};
use crate::contract::{Intent, VmSpec, key};

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
    policy: OrphanPolicy,
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
            table.put(Key::of(pod), tracked);
        }
    }
    for vm in vms {
        orphan(host, &vm, policy).await;
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
    let spec = VmSpec::of(pod).ok()?;
    let id = pod.annotations().get(key::VM_ID).filter(|id| !id.is_empty());
    let by_id = id.and_then(|id| vms.iter().find(|vm| vm.id == *id));
    let by_name = vms.iter().find(|vm| vm.name() == spec.name && spec.managed);
    let (vm, how) = match (by_id, by_name) {
        (Some(vm), _) => (Some(vm), How::Id),
        (None, Some(vm)) => (Some(vm), How::Name),
        (None, None) if spec.hibernate => (None, How::Without),
        (None, None) => return None,
    };
    let status = pod.status.as_ref();
    let containers =
        status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let mut tracked = Tracked {
        uid: pod.uid().unwrap_or_default(),
        vm: vm.cloned(),
        started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
        restarts: containers.first().map_or(0, |container| container.restart_count),
        intent: Intent::read(pod),
        post_clone: None,
        spec: Some(spec),
        ..Tracked::default()
    };
    tracked.address = address_of(host, &tracked, now);
    Some((tracked, how))
}

async fn orphan(host: &Host, vm: &VmRecord, policy: OrphanPolicy) {
    match policy {
        OrphanPolicy::Keep => {}
        OrphanPolicy::Alert => {
            host.metrics.orphans.inc();
            tracing::warn!(
                vm = vm.name(),
                id = vm.id,
                "no pod of this node wants VM {}",
                vm.name()
            );
        }
        OrphanPolicy::Destroy => match host.remove(vm).await {
            Ok(()) => tracing::info!(
                vm = vm.name(),
                "removed VM {}, which no pod of this node wants",
                vm.name()
            ),
            Err(error) => tracing::warn!(vm = vm.name(), "{}", roost_supervise::Chain(&error)),
        },
    }
}
