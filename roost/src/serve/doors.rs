//! The Kubernetes doors of a file, started beside the hatchery and stopped after it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use prometheus_client::registry::Registry;
use roost_clock::Random;
use roost_door::{Core, FleetCore, FrontDoor};
use roost_fleet::Fleet;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::sections::{Cluster, Sections};
use crate::fleets::Fleets;
use crate::{agent_forge, kubelet, manager, vm_operator};

/// Passes that are under way when the service is told to stop get this long; their lease is given up after them.
const DRAIN: Duration = Duration::from_secs(35);

/// What runs beside the hatchery.
#[derive(Debug)]
pub(super) struct Doors {
    pub(super) shown: Vec<Arc<dyn FrontDoor>>,
    pub(super) cores: Vec<Arc<dyn Core>>,
    pub(super) registries: Vec<Arc<Registry>>,
    /// Opened by one of them.
    own: Option<Fleet>,
    running: JoinSet<()>,
    ending: watch::Sender<bool>,
}

impl Doors {
    /// `waits_for` is told what takes time.
    pub(super) async fn start(
        sections: &Sections,
        fleets: &Fleets,
        observe_only: bool,
        waits_for: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<Self> {
        let mut doors = Self {
            shown: Vec::new(),
            cores: Vec::new(),
            registries: Vec::new(),
            own: None,
            running: JoinSet::new(),
            ending: watch::Sender::new(false),
        };
        if let Some(section) = &sections.vm_operator {
            waits_for("vm-operator to start");
            doors.vm_operator(section, fleets, observe_only).await.context("vm-operator")?;
        }
        if let Some(cluster) = &sections.agent_forge {
            waits_for("agent-forge to start");
            doors.agent_forge(cluster, fleets, observe_only).await.context("agent-forge")?;
        }
        if let Some(section) = &sections.kubelet {
            if observe_only {
                tracing::warn!(
                    "the kubelet is left out: a node that only looks on would still take pods"
                );
            } else {
                waits_for("the kubelet to start");
                let cluster = config(&section.cluster).await.context("kubelet")?;
                let (settings, registry) = (section.settings.clone(), Registry::default());
                let started = Box::pin(kubelet::start(settings, cluster, registry)).await;
                let started = started.context("kubelet")?;
                doors.registries.push(Arc::clone(&started.metrics));
                doors.shown.push(Arc::new(started.door()));
                doors.cores.push(Arc::new(started.core()));
                doors.running.spawn(started.run(doors.ended()));
            }
        }
        Ok(doors)
    }

    async fn vm_operator(
        &mut self,
        section: &super::sections::VmOperatorSection,
        fleets: &Fleets,
        observe_only: bool,
    ) -> anyhow::Result<()> {
        let client = client(&section.cluster).await?;
        let home = section.cluster.namespace.clone();
        let home = home.unwrap_or_else(|| client.default_namespace().to_owned());
        let open = vm_operator::open(&client, &home, section.secret.clone(), fleets).await?;
        let lease = lease(&section.cluster, &home, roost_vm_operator::access::LEASE);
        let settings = vm_operator::over(section.settings.clone(), &open.config, lease);
        let mut registry = Registry::default();
        let (fleet, random) = (open.fleet.clone(), Random::from_system());
        let door =
            roost_vm_operator::VmOperator::new(&client, fleet, settings, random, &mut registry);
        let (shown, ended) = (door.door(), self.ended());
        if open.is_new {
            let fleet = open.fleet.clone();
            let core = FleetCore::new(roost_vm_operator::WORDS, move || vec![fleet.lent()]);
            self.cores.push(Arc::new(core));
            self.own = Some(open.fleet);
        }
        self.registries.push(Arc::new(registry));
        if observe_only {
            self.shown.push(Arc::new(shown.only_shown()));
            self.running.spawn(door.observe(ended));
        } else {
            self.shown.push(Arc::new(shown));
            self.running.spawn(door.run(ended));
        }
        Ok(())
    }

    async fn agent_forge(
        &mut self,
        cluster: &Cluster,
        fleets: &Fleets,
        observe_only: bool,
    ) -> anyhow::Result<()> {
        let client = client(cluster).await?;
        let home = cluster.namespace.clone();
        let home = home.unwrap_or_else(|| client.default_namespace().to_owned());
        let lease = lease(cluster, &home, roost_agent_forge::api::names::LEASE);
        let mut registry = Registry::default();
        let forge = agent_forge::make(client, lease, fleets.clone(), &mut registry).await?;
        let (shown, ended) = (forge.door(), self.ended());
        // Those that are shared are shown already.
        let (sites, shared) = (forge.sites(), fleets.clone());
        let own = move || {
            let open = sites.open_ones().into_iter().map(|site| site.fleet);
            open.filter(|fleet| !shared.all().iter().any(|other| other.is_same(fleet))).collect()
        };
        self.cores.push(Arc::new(FleetCore::new(roost_agent_forge::WORDS, own)));
        self.registries.push(Arc::new(registry));
        if observe_only {
            self.shown.push(Arc::new(shown.only_shown()));
            self.running.spawn(forge.observe(ended));
        } else {
            self.shown.push(Arc::new(shown));
            self.running.spawn(forge.run(ended));
        }
        Ok(())
    }

    fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ending = self.ending.subscribe();
        async move {
            let _ = ending.wait_for(|is_ending| *is_ending).await;
        }
    }

    /// A door that has ended by itself has panicked.
    pub(super) async fn one_ended(&mut self) -> String {
        match self.running.join_next().await {
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) => "a door ended by itself".to_owned(),
            None => std::future::pending().await,
        }
    }

    /// No new passes; those that run may finish.
    pub(super) async fn stop(mut self) {
        self.ending.send_replace(true);
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, all).await.is_err() {
            tracing::warn!("doors did not end within {DRAIN:?}; the next start takes up the rest");
        }
        if let Some(fleet) = self.own {
            fleet.shut_down().await;
        }
    }
}

fn lease(cluster: &Cluster, home: &str, name: &str) -> Option<roost_controller::LeaseSettings> {
    cluster.leader_elect.then(|| manager::lease(home, name))
}

async fn config(cluster: &Cluster) -> anyhow::Result<kube::Config> {
    let options = KubeConfigOptions { context: cluster.context.clone(), ..Default::default() };
    if let Some(path) = &cluster.kubeconfig {
        let file = Kubeconfig::read_from(path).context("kubeconfig")?;
        return kube::Config::from_custom_kubeconfig(file, &options).await.context("kubeconfig");
    }
    if cluster.context.is_some() {
        return kube::Config::from_kubeconfig(&options).await.context("context");
    }
    kube::Config::infer().await.context("finding the Kubernetes API server")
}

pub(crate) async fn client(cluster: &Cluster) -> anyhow::Result<Client> {
    Client::try_from(config(cluster).await?).context("reaching the Kubernetes API server")
}
