use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{
    ApiResource, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::assisted::Guests;
use crate::isos::Isos;
use crate::kinds;

/// How the provider sums up what a machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Summary {
    /// `Ready` has the reason of the worst condition, and conditions have a severity.
    #[default]
    Classic,
    /// `Ready` says `IssuesReported`; conditions have a message and no severity.
    IssuesReported,
}

/// By what an Agent names its AgentMachine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefBy {
    #[default]
    Name,
    Uid,
}

#[derive(Debug, Clone)]
pub struct SimSettings {
    /// Of NodePool, InfraEnv and Agents.
    pub namespace: String,
    pub node_pool: String,
    pub cluster: String,
    pub infra_env: String,
    pub control_plane: String,
    pub agent_labels: Vec<(String, String)>,
    pub summary: Summary,
    pub ref_by: RefBy,
    /// From power on to the Agent.
    pub registers_after: Duration,
    /// From binding to a ready node.
    pub installs_in: Duration,
    /// From the deletion of a Machine to its end.
    pub deletes_in: Duration,
    pub tick: Duration,
}

impl SimSettings {
    /// A cluster of the namespace's name.
    pub fn new(namespace: &str, node_pool: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            node_pool: node_pool.to_owned(),
            cluster: namespace.to_owned(),
            infra_env: format!("{namespace}-env"),
            control_plane: format!("{namespace}-{namespace}"),
            agent_labels: vec![("tenant".to_owned(), namespace.to_owned())],
            summary: Summary::default(),
            ref_by: RefBy::default(),
            registers_after: Duration::from_secs(90),
            installs_in: Duration::from_mins(10),
            deletes_in: Duration::from_mins(2),
            tick: Duration::from_secs(5),
        }
    }
}

/// The neighbours of one NodePool. Cheap to clone.
#[derive(Clone)]
pub struct Hypershift {
    pub(crate) client: Client,
    pub(crate) settings: Arc<SimSettings>,
    pub(crate) isos: Isos,
    pub(crate) guests: Arc<dyn Guests>,
    wanted: Arc<AtomicUsize>,
    pub(crate) memory: Arc<Mutex<Memory>>,
}

/// What the parts remember between two looks.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) made: usize,
    /// When each machine was bound, or began to be deleted.
    pub(crate) since: HashMap<String, Instant>,
    /// When each host booted, by uuid.
    pub(crate) booted: HashMap<String, Instant>,
    pub(crate) boots_read: usize,
}

impl std::fmt::Debug for Hypershift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hypershift").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Hypershift {
    pub fn new(client: Client, settings: SimSettings, isos: Isos, guests: Arc<dyn Guests>) -> Self {
        Self {
            client,
            settings: Arc::new(settings),
            isos,
            guests,
            wanted: Arc::default(),
            memory: Arc::default(),
        }
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Namespaces, and the InfraEnv with its ISO.
    pub async fn set_up(&self, iso_url: &str) -> Result<(), kube::Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for name in [&self.settings.namespace, &self.settings.control_plane] {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            match namespaces.create(&PostParams::default(), &namespace).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(error) => return Err(error),
            }
        }
        let api = self.api(&kinds::infra_envs(), &self.settings.namespace);
        let env = DynamicObject::new(&self.settings.infra_env, &kinds::infra_envs())
            .within(&self.settings.namespace)
            .data(json!({"spec": {}}));
        match api.create(&PostParams::default(), &env).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error),
        }
        self.make_node_pool().await?;
        self.point_to_iso(iso_url).await
    }

    /// The NodePool, and the MachineDeployment that HyperShift makes of it.
    async fn make_node_pool(&self) -> Result<(), kube::Error> {
        let settings = &self.settings;
        let spec = json!({"spec": {"clusterName": settings.cluster, "replicas": 0}});
        let node_pool = DynamicObject::new(&settings.node_pool, &kinds::node_pools())
            .within(&settings.namespace)
            .data(spec.clone());
        let mut deployment = DynamicObject::new(&settings.node_pool, &kinds::machine_deployments())
            .within(&settings.control_plane)
            .data(spec);
        deployment.metadata.annotations = Some([(NODE_POOL.to_owned(), self.node_pool())].into());
        for (kind, namespace, object) in [
            (kinds::node_pools(), &settings.namespace, node_pool),
            (kinds::machine_deployments(), &settings.control_plane, deployment),
        ] {
            match self.api(&kind, namespace).create(&PostParams::default(), &object).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sets the NodePool's `pausedUntil`; nothing takes it away.
    pub async fn pause_until(&self, until: Option<&str>) -> Result<(), kube::Error> {
        let api = self.api(&kinds::node_pools(), &self.settings.namespace);
        let patch = json!({"spec": {"pausedUntil": until}});
        api.patch(&self.settings.node_pool, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(drop)
    }

    /// What the MachineDeployment of the NodePool is annotated with.
    pub async fn deployment_annotations(&self) -> Result<BTreeMap<String, String>, kube::Error> {
        let api = self.api(&kinds::machine_deployments(), &self.settings.control_plane);
        Ok(api.get(&self.settings.node_pool).await?.annotations().clone())
    }

    /// The InfraEnv gets another address of its ISO; an empty one takes it away.
    pub async fn point_to_iso(&self, url: &str) -> Result<(), kube::Error> {
        let api = self.api(&kinds::infra_envs(), &self.settings.namespace);
        let status = json!({"status": {"isoDownloadURL": url}});
        let params = PatchParams::default();
        api.patch_status(&self.settings.infra_env, &params, &Patch::Merge(status)).await.map(drop)
    }

    /// How many nodes are wanted.
    pub fn scale(&self, nodes: usize) {
        self.wanted.store(nodes, Ordering::Relaxed);
    }

    pub(crate) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Does not end. What fails is done at the next look.
    pub async fn run(&self) {
        loop {
            self.look().await;
            sleep(self.settings.tick).await;
        }
    }

    /// One look of every part.
    pub async fn look(&self) {
        for (part, done) in [
            ("Cluster API", self.keep_machines().await),
            ("assisted service", self.register_agents().await),
            ("agent provider", self.provide_agents().await),
        ] {
            if let Err(error) = done {
                tracing::debug!("{part}: {error}");
            }
        }
    }

    pub(crate) fn api(&self, kind: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, kind)
    }

    pub(crate) async fn list(
        &self,
        kind: &ApiResource,
        namespace: &str,
    ) -> Result<Vec<DynamicObject>, kube::Error> {
        let mut all = self.api(kind, namespace).list(&ListParams::default()).await?.items;
        all.sort_by_key(ResourceExt::name_any);
        Ok(all)
    }

    /// AgentMachines of this NodePool.
    pub async fn agent_machines(&self) -> Result<Vec<DynamicObject>, kube::Error> {
        let all = self.list(&kinds::agent_machines(), &self.settings.control_plane).await?;
        Ok(all.into_iter().filter(|object| self.is_ours(object)).collect())
    }

    pub async fn machines(&self) -> Result<Vec<DynamicObject>, kube::Error> {
        let all = self.list(&kinds::machines(), &self.settings.control_plane).await?;
        Ok(all.into_iter().filter(|object| self.is_ours(object)).collect())
    }

    pub async fn agents(&self) -> Result<Vec<DynamicObject>, kube::Error> {
        self.list(&kinds::agents(), &self.settings.namespace).await
    }

    fn is_ours(&self, object: &DynamicObject) -> bool {
        object.annotations().get(NODE_POOL).is_some_and(|value| *value == self.node_pool())
    }

    pub(crate) fn node_pool(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.settings.node_pool)
    }
}

pub(crate) const NODE_POOL: &str = "hypershift.openshift.io/nodePool";

/// A text in an object; empty if there is none.
pub(crate) fn text<'a>(object: &'a DynamicObject, path: &str) -> &'a str {
    object.data.pointer(path).and_then(Value::as_str).unwrap_or_default()
}
