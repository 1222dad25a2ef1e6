//! Registers the node and keeps it alive: a lease every ten seconds, a status every minute.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use roost_clock::Clock;
use roost_microvm::{Runtime, VmRecord};
use serde_json::json;
use tokio::time::sleep;

use super::object::{self, Condition, TAINT};
use super::resources::{ResourceError, Resources};
use crate::settings::Settings;

const RENEW: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
/// A status write for every so many lease renewals.
const STATUS_EVERY: u32 = 6;
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error(transparent)]
    Resources(#[from] ResourceError),
    #[error("registering node {node}")]
    Register { node: String, source: kube::Error },
    #[error("writing the status of node {node}")]
    Status { node: String, source: kube::Error },
    #[error("renewing the lease of node {node}")]
    Lease { node: String, source: kube::Error },
}

/// Keeps one node.
pub(crate) struct NodeKeeper {
    pub(crate) client: Client,
    pub(crate) settings: Arc<Settings>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trouble: Trouble,
}

/// How the runtime answered when it was last asked. A handle; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Asked>>);

/// The last look at the runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) at: Option<Timestamp>,
    /// Why it cannot be used.
    pub(crate) trouble: Option<String>,
    /// All VMs that it has, also those of nobody.
    pub(crate) vms: usize,
}

impl Trouble {
    pub(crate) fn last(&self) -> Asked {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, now: Timestamp, answer: Result<usize, &str>) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(vms) => *last = Asked { at: Some(now), trouble: None, vms },
            Err(why) => last.trouble = Some(why.to_owned()),
        }
    }
}

impl NodeKeeper {
    /// Makes the node, or makes an existing one ours: labels, taint and provider id are asserted at every start.
    pub(crate) async fn register(&self) -> Result<(), NodeError> {
        let name = &self.settings.node_name;
        let failed = |source| NodeError::Register { node: name.clone(), source };
        let nodes: Api<Node> = Api::all(self.client.clone());
        let condition = self.look(|_| {}).await?;
        match nodes.get_opt(name).await.map_err(failed)? {
            None => {
                let node = object::node(&self.settings, &condition, self.clock.now());
                nodes.create(&PostParams::default(), &node).await.map_err(failed)?;
            }
            Some(node) => self.assert_ours(&nodes, &node).await.map_err(failed)?,
        }
        self.write_status(&condition).await
    }

    async fn assert_ours(&self, nodes: &Api<Node>, node: &Node) -> Result<(), kube::Error> {
        let mut taints =
            node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        if !taints.iter().any(|taint| taint.key == TAINT) {
            taints.push(object::taint());
        }
        let mut spec = json!({"taints": taints});
        if let Some(id) = &self.settings.provider_id {
            spec["providerID"] = json!(id);
        }
        let patch = json!({
            // Taints are a list: whoever changed them since is not overwritten.
            "metadata": {"labels": object::labels(&self.settings), "resourceVersion": node.resource_version()},
            "spec": spec,
        });
        nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    /// Until it is dropped. A node that cannot be told about is tried again at the next turn. `listed` gets the VMs that every turn reads.
    pub(crate) async fn keep(&self, listed: impl Fn(&[VmRecord])) {
        for turn in 0_u32.. {
            if let Err(error) = self.beat(turn, &listed).await {
                tracing::warn!("{}", roost_supervise::Chain(&error));
            }
            sleep(RENEW).await;
        }
    }

    async fn beat(&self, turn: u32, listed: impl Fn(&[VmRecord])) -> Result<(), NodeError> {
        let condition = self.look(listed).await?;
        // A runtime that is unusable is told at once, and the node stays alive to tell it.
        if turn.is_multiple_of(STATUS_EVERY) || condition.trouble.is_some() {
            self.write_status(&condition).await?;
        }
        self.renew().await
    }

    async fn look(&self, listed: impl Fn(&[VmRecord])) -> Result<Condition, NodeError> {
        let detected = Resources::detect(&self.settings.root_dir, self.settings.pods)?;
        let resources = self.settings.resources.over(detected);
        let vms = self.runtime.list().await;
        if let Ok(vms) = &vms {
            listed(vms);
        }
        let count = vms.as_ref().map(Vec::len).ok();
        let trouble = vms.err().map(|error| roost_supervise::Chain(&error).to_string());
        let answer = trouble.as_deref().map_or(Ok(count.unwrap_or_default()), Err);
        self.trouble.note(self.clock.now(), answer);
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let free = free.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let memory_free = free.map_or(detected.memory, |kilobytes| kilobytes * 1024);
        Ok(Condition { resources, detected, memory_free, trouble })
    }

    async fn write_status(&self, condition: &Condition) -> Result<(), NodeError> {
        let name = &self.settings.node_name;
        let failed = |source| NodeError::Status { node: name.clone(), source };
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = nodes.get(name).await.map_err(failed)?;
        let before =
            node.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let status = object::status(&self.settings, condition, &before, self.clock.now());
        let patch = json!({
            "metadata": {"resourceVersion": node.resource_version()},
            "status": status,
        });
        nodes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(drop)
            .map_err(failed)
    }

    async fn renew(&self) -> Result<(), NodeError> {
        let name = &self.settings.node_name;
        let failed = |source| NodeError::Lease { node: name.clone(), source };
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASE_NAMESPACE);
        let now = self.clock.now();
        match leases.get_opt(name).await.map_err(failed)? {
            Some(_) => {
                let patch = json!({"spec": {
                    "renewTime": MicroTime(now), "holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS,
                }});
                leases
                    .patch(name, &PatchParams::default(), &Patch::Merge(patch))
                    .await
                    .map(drop)
                    .map_err(failed)
            }
            None => self.make_lease(&leases, now).await.map_err(failed),
        }
    }

    /// Owned by the node, so that it goes with it.
    async fn make_lease(&self, leases: &Api<Lease>, now: Timestamp) -> Result<(), kube::Error> {
        let name = &self.settings.node_name;
        let nodes: Api<Node> = Api::all(self.client.clone());
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: name.clone(),
            uid: nodes.get(name).await?.uid().unwrap_or_default(),
            ..OwnerReference::default()
        };
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(LEASE_NAMESPACE.to_owned()),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(name.clone()),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        };
        leases.create(&PostParams::default(), &lease).await.map(drop)
    }
}
