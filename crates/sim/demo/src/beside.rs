//! The Kubernetes doors beside the hatchery, on the simulation's time: an API server with HyperShift's parts in it, and a host of microVMs. VMs go to the hatchery's vCenter, by its login and its ledger.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use prometheus_client::registry::Registry;
use roost_agent_forge::api::crds;
use roost_agent_forge::vcenter::{Connect, Connecting, ForgeVms, Login};
use roost_agent_forge::{Forge, ForgeParts, machine_version};
use roost_clock::{Clock, Random};
use roost_cocoon_sim::{SimRuntime, Timings};
use roost_controller::crd::install_crds;
use roost_door::{Core, FrontDoor};
use roost_fleet::{Fleet, Recognise};
use roost_hypershift_sim::{Hypershift, Isos, SimSettings, neighbour_crds};
use roost_kube_sim::{KubeSim, Options};
use roost_vm_operator::api::VirtualMachine;
use roost_vm_operator::{OwnVms, VmOperator};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::nodes::{self, InProcess, Shelf};
use super::objects::Narrator;
use super::pods::{self, Leases};
use super::report::Check;
use super::vms;
use super::world::World;

/// Simulated. Faults may hold up a story for a while; what takes longer has come to a stop.
const PATIENCE: Duration = Duration::from_hours(2);
/// The hatchery's queue is seen first, then one door after the other.
const FIRST_AFTER: Duration = Duration::from_secs(40);

/// What stays when Roost dies: the API server, HyperShift's parts, and the host.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    pub(super) kube: KubeSim,
    neighbours: Hypershift,
    isos: Isos,
    host: SimRuntime,
    leases: Arc<Leases>,
    clock: Arc<dyn Clock>,
    random: Random,
}

impl Cluster {
    pub(super) async fn start(
        world: &World,
        random: &Random,
        clock: &Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let seed = random.fork("cluster").seed();
        let kube = KubeSim::start(Options { seed, ..Options::default() }, Arc::clone(clock));
        let (client, isos) = (kube.client(), Isos::default());
        install_crds(&client, &crds()?, "demo").await.context("agent-forge's definitions")?;
        install_crds(&client, &neighbour_crds(), "demo").await.context("HyperShift's")?;
        let url = isos.publish("http://assisted.demo", "blue-env", "a discovery ISO".into());
        let vcenter = InProcess(world.vcenter.clone());
        let settings = SimSettings::new(nodes::NAMESPACE, nodes::POOL);
        let guests = Arc::new(vcenter.clone());
        let neighbours = Hypershift::new(client.clone(), settings, isos.clone(), guests);
        neighbours.set_up(&url).await.context("HyperShift's parts")?;
        nodes::make_folder(&vcenter, Arc::clone(clock)).await?;
        nodes::furnish(&client).await?;
        vms::furnish(&client).await?;
        Ok(Self {
            kube,
            neighbours,
            isos,
            host: SimRuntime::new(Arc::clone(clock), Timings::default()),
            leases: Arc::new(Leases::new()?),
            clock: Arc::clone(clock),
            random: random.fork("doors"),
        })
    }

    /// How the doors know their VMs in the vCenter.
    pub(super) fn recognise() -> Vec<Arc<dyn Recognise>> {
        vec![Arc::new(OwnVms), Arc::new(ForgeVms)]
    }

    /// Does not end.
    pub(super) async fn go_on(self) {
        self.neighbours.run().await;
    }

    /// One life of the three doors. They die with what is returned.
    pub(super) async fn open(&self, fleet: &Fleet) -> anyhow::Result<KubeDoors> {
        let client = self.kube.client();
        let (mut running, mut registries) = (JoinSet::new(), Vec::new());

        let mut registry = Registry::default();
        let (settings, random) = (vms::settings(), self.random.fork("vm-operator"));
        let operator = VmOperator::new(&client, fleet.lent(), settings, random, &mut registry);
        registries.push(Arc::new(registry));

        let mut registry = Registry::default();
        let parts = ForgeParts {
            client: client.clone(),
            connect: Arc::new(Shared(fleet.lent())),
            isos: Arc::new(Shelf(self.isos.clone())),
            clock: Arc::clone(&self.clock),
            random: self.random.fork("agent-forge"),
            lease: None,
            machine_version: machine_version(&client).await?,
        };
        let forge = Forge::new(parts, &mut registry);
        registries.push(Arc::new(registry));

        let (clock, random) = (Arc::clone(&self.clock), self.random.fork("kubelet"));
        let kubelet = pods::start(client, &self.host, &self.leases, clock, random).await?;
        let doors: [Arc<dyn FrontDoor>; 3] =
            [Arc::new(operator.door()), Arc::new(forge.door()), Arc::new(kubelet.door())];
        let core: Arc<dyn Core> = Arc::new(kubelet.core());
        running.spawn(operator.run(std::future::pending()));
        running.spawn(forge.run(std::future::pending()));
        running.spawn(kubelet.run(std::future::pending()));
        Ok(KubeDoors { doors, core, registries, _running: running })
    }
}

/// The doors while they run.
#[derive(Debug)]
pub(super) struct KubeDoors {
    /// In the order of [`tell`]: objects, nodes, pods.
    pub(super) doors: [Arc<dyn FrontDoor>; 3],
    /// Of the host, which is no vCenter.
    pub(super) core: Arc<dyn Core>,
    pub(super) registries: Vec<Arc<Registry>>,
    _running: JoinSet<()>,
}

/// Every login of a pool leads to the vCenter that is open already.
#[derive(Debug)]
struct Shared(Fleet);

impl Connect for Shared {
    fn connect(&self, _: &Login) -> Connecting {
        let fleet = self.0.lent();
        Box::pin(async move { Ok(fleet) })
    }
}

/// Whether a VM of the vCenter was made for one of these doors.
pub(super) fn is_theirs(vm: &str) -> bool {
    vms::NAMES.contains(&vm) || vm.starts_with(nodes::POOL)
}

/// What became of the stories. A handle; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Stories(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    open: usize,
    checks: Vec<Check>,
}

impl Stories {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn are_over(&self) -> bool {
        self.told().open == 0
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        self.told().checks.clone()
    }

    fn end(&self, door: &str, told: anyhow::Result<Vec<Check>>) {
        let mut all = self.told();
        all.open -= 1;
        match told {
            Ok(checks) => all.checks.extend(checks),
            Err(why) => all.checks.push(Check::new(format!("{door}: {why:#}"), false)),
        }
    }
}

/// Tells the story of each door while the jobs come and go. `shown` outlives the doors' restarts.
pub(super) fn tell(
    cluster: &Cluster,
    world: &World,
    shown: [Arc<dyn FrontDoor>; 3],
    tasks: &mut JoinSet<()>,
) -> Stories {
    let stories = Stories::default();
    stories.told().open = shown.len();
    let client = cluster.kube.client();
    let [objects, nodes_door, pods_door] = shown;
    let narrator = |door: &Arc<dyn FrontDoor>| Narrator::silent(Arc::clone(door), PATIENCE);

    let (mut narrated, vcenter, end) = (narrator(&objects), world.vcenter.clone(), stories.clone());
    let machines = Api::<VirtualMachine>::namespaced(client.clone(), vms::NAMESPACE);
    tasks.spawn(async move {
        sleep(FIRST_AFTER).await;
        end.end("vm-operator", vms::tell(&mut narrated, &*objects, &machines, &vcenter).await);
    });
    let (mut narrated, vcenter, end) =
        (narrator(&nodes_door), world.vcenter.clone(), stories.clone());
    let neighbours = cluster.neighbours.clone();
    tasks.spawn(async move {
        sleep(FIRST_AFTER * 2).await;
        let told = nodes::tell(&mut narrated, &*nodes_door, &neighbours, &vcenter).await;
        end.end("agent-forge", told);
    });
    let (mut narrated, host, end) = (narrator(&pods_door), cluster.host.clone(), stories.clone());
    let pods = Api::<Pod>::namespaced(client, "default");
    tasks.spawn(async move {
        sleep(FIRST_AFTER * 3).await;
        end.end("kubelet", pods::tell(&mut narrated, &*pods_door, &pods, &host).await);
    });
    stories
}
