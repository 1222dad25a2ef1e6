//! What persons have told this node. The Node object keeps it, so that a restart does not forget it.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use roost_views::{Spawning, SteeringView};
use serde_json::{Value, json};

use crate::contract::{VmSpec, key};

/// Whether new VMs are held back. A handle; clones share it.
#[derive(Clone)]
pub(crate) struct Steering {
    client: Client,
    node: String,
    now: Arc<Mutex<SteeringView>>,
}

impl std::fmt::Debug for Steering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Steering").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Steering {
    /// As the Node object says it.
    pub(crate) async fn read(client: Client, node: &str) -> Result<Self, kube::Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        let object = nodes.get(node).await?;
        let text = |key: &str| object.annotations().get(key).cloned();
        let spawning = match text(key::SPAWNING).as_deref() {
            Some("paused") => Spawning::Paused,
            Some("draining") => Spawning::Draining,
            _ => Spawning::Open,
        };
        let held = text(key::SPAWNING_HELD).filter(|_| spawning != Spawning::Open);
        let now = SteeringView { spawning, held, frozen: None };
        Ok(Self { client, node: node.to_owned(), now: Arc::new(Mutex::new(now)) })
    }

    pub(crate) fn view(&self) -> SteeringView {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why no new VM is made, in words.
    pub(crate) fn held(&self) -> Option<String> {
        let now = self.view();
        let words = match now.spawning {
            Spawning::Open => return None,
            Spawning::Paused => "new VMs are held back",
            Spawning::Draining => "the node is drained",
        };
        Some(now.held.map_or_else(|| words.to_owned(), |held| format!("{words}: {held}")))
    }

    /// The scheduler is told first, so that no pod arrives in between. `held`: who and since when.
    pub(crate) async fn hold(&self, spawning: Spawning, held: &str) -> Result<(), kube::Error> {
        let annotations = json!({key::SPAWNING: spawning.as_str(), key::SPAWNING_HELD: held});
        self.tell_node(annotations, json!({"unschedulable": true})).await?;
        self.set(SteeringView { spawning, held: Some(held.to_owned()), frozen: None });
        Ok(())
    }

    /// A node that somebody else has cordoned stays so.
    pub(crate) async fn release(&self) -> Result<(), kube::Error> {
        if self.view().spawning == Spawning::Open {
            return Ok(());
        }
        let annotations = json!({key::SPAWNING: null, key::SPAWNING_HELD: null});
        self.tell_node(annotations, json!({"unschedulable": null})).await?;
        self.set(SteeringView::default());
        Ok(())
    }

    fn set(&self, view: SteeringView) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }

    async fn tell_node(&self, annotations: Value, spec: Value) -> Result<(), kube::Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let patch = json!({"metadata": {"annotations": annotations}, "spec": spec});
        nodes.patch(&self.node, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    /// Asks for the VM of a pod to hibernate, and marks that a drain did. Whether there was anything to ask.
    pub(crate) async fn hibernate(&self, pod: &Pod) -> Result<bool, kube::Error> {
        let is_asked = VmSpec::of(pod).is_ok_and(|spec| spec.managed && !spec.hibernate);
        if !is_asked || pod.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        self.annotate(pod, json!({key::HIBERNATE: "true", key::DRAINED: "true"})).await?;
        Ok(true)
    }

    /// Takes back what a drain asked for; VMs that others have put to sleep sleep on.
    pub(crate) async fn wake(&self, pod: &Pod) -> Result<bool, kube::Error> {
        if !pod.annotations().contains_key(key::DRAINED) {
            return Ok(false);
        }
        self.annotate(pod, json!({key::HIBERNATE: null, key::DRAINED: null})).await?;
        Ok(true)
    }

    async fn annotate(&self, pod: &Pod, annotations: Value) -> Result<(), kube::Error> {
        let pods: Api<Pod> =
            Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        // Another pod of the name is another pod.
        let patch = json!({"metadata": {"uid": pod.uid(), "annotations": annotations}});
        match pods.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }
}
