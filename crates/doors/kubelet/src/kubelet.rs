//! From settings to a node that runs pods.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Api, Client};
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::{Clock, Random};
use roost_controller::{ControllerSettings, Manager, Status};
use roost_microvm::{Leases, Registry, Runtime};

use crate::metrics::Metrics;
use crate::node::{NodeError, NodeKeeper};
use crate::pods::{
    Host, Limits, Pinger, PodReconciler, Shop, StartupError, follow_vms, take_stock,
};
use crate::settings::Settings;

/// Pods that are looked at side by side. A pass never waits for a VM, so a few are enough.
const WORKERS: usize = 4;
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
    shop: Shop,
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
        let own = Metrics::register(metrics);
        own.pings_unavailable.set(pings_are_faked.into());
        let host = Arc::new(Host {
            runtime: Arc::clone(&runtime),
            registry,
            leases: Leases::new(&settings.leases),
            net_control: settings.net_control.clone(),
            clock: Arc::clone(&clock),
            metrics: own,
            limits: Limits::default(),
            deletes_hibernate_tag: settings.deletes_hibernate_tag,
        });
        let table = take_stock(&host, &client, &settings.node_name, settings.orphans).await?;
        let node = NodeKeeper {
            client: client.clone(),
            settings: Arc::clone(&settings),
            runtime,
            clock: Arc::clone(&clock),
        };
        node.register().await?;

        let mut manager =
            Manager::new(client.clone(), "roost-kubelet", metrics).with_world(clock, random);
        let mine =
            watcher::Config::default().fields(&format!("spec.nodeName={}", settings.node_name));
        let pods = manager.watch_with(Api::<Pod>::all(client), (), mine);
        let controls =
            ControllerSettings { workers: WORKERS, timeout: PASS, ..ControllerSettings::default() };
        let (events, writer) = (manager.events(), manager.writer());
        let controller = manager.controller("pods", &pods, controls);
        let shop = Shop {
            host,
            table,
            trigger: controller.trigger(),
            events,
            pinger,
            tasks: Arc::default(),
        };
        let reconciler =
            PodReconciler { shop: shop.clone(), writer, host_ip: settings.node_ip.to_string() };
        controller.reconcile(Arc::new(reconciler));
        Ok(Self { manager, node, shop })
    }

    /// Whether pods are seen and passes run.
    pub fn status(&self) -> Status {
        self.manager.status()
    }

    /// Until `shutdown`. VMs go on running; the next start takes them up again.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        for (key, pod) in self.shop.table.all() {
            if let Some(vm) = &pod.vm {
                self.shop.watch_guest(key, vm);
            }
        }
        let passes = self.manager.run(shutdown);
        tokio::select! {
            () = passes => {}
            () = self.node.keep() => {}
            () = follow_vms(self.shop.clone()) => {}
        }
        self.shop.stop().await;
    }
}
