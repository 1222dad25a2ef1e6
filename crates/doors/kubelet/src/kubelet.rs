//! From settings to a node that runs pods.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Api, Client};
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::{Clock, Random};
use roost_controller::{ControllerSettings, Manager, Status, Store};
use roost_microvm::{Cgroups, Leases, Registry, Runtime};

use crate::api::{Gate, KubeReviews, KubeletApi};
use crate::front_door::{KubeletCore, KubeletDoor};
use crate::metrics::{Metrics, PREFIX};
use crate::node::{NodeError, NodeKeeper, Resources, Trouble};
use crate::pods::{
    Host, Journal, Limits, Pinger, PodReconciler, PodWork, SnapshotCache, StartupError, Steering,
    Strangers, compare_with, follow_vms, take_stock,
};
use crate::serving::CertificateKeeper;
use crate::settings::Settings;
use crate::usage::{Sampler, UsageCollector};

/// Pods that are looked at side by side. A pass never waits for a VM, so a few are enough.
const WORKERS: usize = 4;
/// Pulled snapshots may take this part of the disk: most of it is for VMs.
const CACHE_PART: u64 = 4;
/// A pass makes a few calls to the API server.
const PASS: Duration = Duration::from_mins(1);

/// What a kubelet is joined from.
#[expect(missing_debug_implementations, reason = "the client has none")]
pub struct KubeletParts {
    pub settings: Settings,
    pub client: Client,
    pub runtime: Arc<dyn Runtime>,
    pub registry: Option<Registry>,
    pub pinger: Arc<dyn Pinger>,
    /// No ping may be sent, so that an address counts as an answer.
    pub pings_are_faked: bool,
    pub clock: Arc<dyn Clock>,
    pub random: Random,
}

/// Why the node did not start. It is not registered then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Stock(#[from] StartupError),
    #[error(transparent)]
    Node(Box<dyn std::error::Error + Send + Sync>),
}

impl From<NodeError> for StartError {
    fn from(error: NodeError) -> Self {
        Self::Node(Box::new(error))
    }
}

/// A node that runs pods. [`run`](Kubelet::run) is its life.
#[expect(missing_debug_implementations, reason = "the client has none")]
pub struct Kubelet {
    manager: Manager,
    node: NodeKeeper,
    certificate: CertificateKeeper,
    work: PodWork,
    pods: Store<Pod>,
    sampler: Arc<Sampler>,
}

impl Kubelet {
    /// Reads what is there, joins pods and VMs, then makes the node known. Nothing runs yet.
    pub async fn start(
        parts: KubeletParts,
        metrics: &mut MetricRegistry,
    ) -> Result<Self, StartError> {
        let KubeletParts {
            settings,
            client,
            runtime,
            registry,
            pinger,
            pings_are_faked,
            clock,
            random,
        } = parts;
        let settings = Arc::new(settings);
        let cgroups = settings.cgroup_parent.as_deref().and_then(Cgroups::find);
        if let (Some(parent), None) = (&settings.cgroup_parent, &cgroups) {
            tracing::info!(
                "there are no control groups below which {parent} could be: requests and limits of clones do not hold"
            );
        }
        let own = Metrics::register(metrics);
        own.pings_unavailable.set(pings_are_faked.into());
        let host = Arc::new(Host {
            runtime: Arc::clone(&runtime),
            registry,
            leases: Leases::new(&settings.leases),
            net_control: settings.net_control.clone(),
            clock: Arc::clone(&clock),
            metrics: own,
            limits: Limits::new(settings.pulls, settings.clones, settings.saves),
            journal: Journal::new(Arc::clone(&clock)),
            cache: SnapshotCache::new(cache_limit(&settings)?),
            cgroups,
            orphans: settings.orphans,
            strangers: Strangers::default(),
            deletes_hibernate_tag: settings.deletes_hibernate_tag,
        });
        let table = take_stock(&host, &client, &settings.node_name).await?;
        let node = NodeKeeper {
            client: client.clone(),
            settings: Arc::clone(&settings),
            runtime,
            clock: Arc::clone(&clock),
            trouble: Trouble::default(),
        };
        node.register().await?;
        let certificate = CertificateKeeper {
            client: client.clone(),
            settings: Arc::clone(&settings),
            clock: Arc::clone(&clock),
            random: random.fork("certificate"),
        };
        let steering = Steering::read(client.clone(), &settings.node_name).await;
        let steering = steering.map_err(|error| StartError::Node(Box::new(error)))?;

        let mut manager =
            Manager::new(client.clone(), "roost-kubelet", metrics).with_world(clock, random);
        let client = manager.client().clone();
        let mine =
            watcher::Config::default().fields(&format!("spec.nodeName={}", settings.node_name));
        let pods = manager.watch_with(Api::<Pod>::all(client.clone()), (), mine);
        let controls =
            ControllerSettings { workers: WORKERS, timeout: PASS, ..ControllerSettings::default() };
        let (events, writer) = (manager.events(), manager.writer());
        let controller = manager.controller("pods", &pods, controls);
        let work = PodWork {
            client: client.clone(),
            host,
            table,
            trigger: controller.trigger(),
            events,
            pinger,
            tasks: Arc::default(),
            suspects: Arc::default(),
            steering,
        };
        let reconciler = PodReconciler {
            work: work.clone(),
            writer,
            host_ip: settings.node_ip.to_string(),
            cpu_class: settings.cpu_class.clone(),
        };
        controller.reconcile(Arc::new(reconciler));
        let sampler = Arc::new(Sampler {
            table: work.table.clone(),
            pods: pods.store(),
            host: Arc::clone(&work.host),
            root_dir: node.settings.root_dir.clone(),
            last: std::sync::Mutex::default(),
        });
        let usage = UsageCollector(Arc::clone(&sampler));
        metrics.sub_registry_with_prefix(PREFIX).register_collector(Box::new(usage));
        Ok(Self { manager, node, certificate, work, pods: pods.store(), sampler })
    }

    /// What answers the API server. `metrics`: the registry that the kubelet was started with.
    pub fn api(&self, metrics: Arc<MetricRegistry>) -> KubeletApi {
        let node = self.node.settings.node_name.clone();
        let reviews = KubeReviews { client: self.node.client.clone(), node: node.clone() };
        let gate = Gate::new(Arc::new(reviews));
        KubeletApi::new(node, Arc::clone(&self.sampler), gate, metrics)
    }

    /// The kubelet as the house shows and steers it: give it to a `House` or to `roost explain`.
    pub fn door(&self) -> KubeletDoor {
        KubeletDoor {
            settings: Arc::clone(&self.node.settings),
            work: self.work.clone(),
            pods: self.pods.clone(),
            status: self.manager.status(),
            trouble: self.node.trouble.clone(),
        }
    }

    /// Its decisions and its runtime, for the same house.
    pub fn core(&self) -> KubeletCore {
        KubeletCore {
            journal: self.work.host.journal.clone(),
            table: self.work.table.clone(),
            trouble: self.node.trouble.clone(),
        }
    }

    /// Whether pods are seen and passes run.
    pub fn status(&self) -> Status {
        self.manager.status()
    }

    /// Until `shutdown`. VMs go on running; the next start takes them up again.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        let _steps = EndSteps(self.work.clone());
        for (key, pod) in self.work.table.all() {
            if let Some(vm) = &pod.vm {
                self.work.place(&key, pod.spec.as_ref(), vm);
                self.work.watch_guest(key, vm);
            }
        }
        let passes = self.manager.run(shutdown);
        tokio::select! {
            () = passes => {}
            () = self.node.keep(|vms| compare_with(&self.work, vms)) => {}
            () = follow_vms(self.work.clone()) => {}
            () = self.work.host.keep_cache() => {}
            () = self.certificate.keep() => {}
        }
        self.work.stop().await;
    }
}

/// What pulled snapshots may take: what was asked for, else a part of the disk.
fn cache_limit(settings: &Settings) -> Result<u64, NodeError> {
    if let Some(limit) = settings.snapshot_cache {
        return Ok(limit);
    }
    let detected = Resources::detect(&settings.root_dir, settings.pods)?;
    let resources = settings.resources.over(detected);
    Ok(resources.storage / CACHE_PART)
}

/// Steps know each other through what they share, so none of them would end by itself when the kubelet is dropped.
struct EndSteps(PodWork);

impl Drop for EndSteps {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
