//! A cluster in a box: the embedded API server, the toy world, and replicas that are started and ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use roost_clock::{Clock, Random, SimClock};
use roost_controller::{
    ControllerSettings, Key, LeaseSettings, Manager, Metrics, Status, Store, Trigger,
};
use roost_kube_sim::{Action, KubeSim, Options, Rule, When};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::toy::{Bug, Mood, Toy, ToyApi, Toys, World};

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) struct Lab {
    pub(crate) sim: KubeSim,
    pub(crate) world: World,
    pub(crate) mood: Arc<Mutex<Mood>>,
    pub(crate) client: Client,
    pub(crate) step: Duration,
    pub(crate) bug: Option<Bug>,
    clock: Arc<SimClock>,
    seed: u64,
}

/// One process of the toy door.
pub(crate) struct Replica {
    pub(crate) trigger: Trigger,
    pub(crate) status: Status,
    pub(crate) runtime: Metrics,
    registry: Registry,
    shutdown: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
}

/// What a replica is made of.
pub(crate) struct ToyDoor {
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) mood: Arc<Mutex<Mood>>,
    pub(crate) step: Duration,
    pub(crate) bug: Option<Bug>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
}

impl ToyDoor {
    pub(crate) fn start(
        self,
        settings: ControllerSettings,
        lease: Option<LeaseSettings>,
    ) -> Replica {
        let Self { client, world, mood, step, bug, clock, random } = self;
        let mut registry = Registry::default();
        let mut manager = Manager::new(client, "toys", &mut registry).with_world(clock, random);
        let client = manager.client().clone();
        if let Some(lease) = lease {
            manager = manager.with_lease(lease);
        }
        let toys = manager.watch(Api::<Toy>::all(client.clone()));
        let by_secret = toys.index(|toy: &Toy| toy.spec.secret_name.clone());
        let secrets = manager.watch(Api::<Secret>::all(client.clone()));
        let (writer, events) = (manager.writer(), manager.events());
        let machines = world.clone();
        let api = ToyApi(Api::namespaced(client, "default"));
        let reconciler = Toys { world, writer, events, api, mood, step, bug };
        let (status, runtime) = (manager.status(), manager.metrics().clone());
        let controller = manager
            .controller("toy", &toys, settings)
            .related(&secrets, move |change| by_secret.keys(&change.object.name_any()));
        let trigger = controller.trigger();
        controller.reconcile(Arc::new(reconciler));
        let (shutdown, ended) = oneshot::channel::<()>();
        let orphans = call_for_orphans(machines, toys.store(), trigger.clone(), status.clone());
        let running = manager.run(async {
            let _ = ended.await;
        });
        let task = tokio::spawn(async {
            tokio::select! {
                biased;
                () = running => {}
                () = orphans => {}
            }
        });
        Replica { trigger, status, runtime, registry, shutdown: Some(shutdown), task }
    }
}

/// As a door does that sees its machines: one without a toy calls for a look. After a restart nothing else would.
async fn call_for_orphans(world: World, toys: Store<Toy>, trigger: Trigger, status: Status) {
    loop {
        status.leads().await;
        if status.is_synced() {
            let orphans = world.keys().into_iter().filter(|key| toys.get(key).is_none());
            orphans.for_each(|key| trigger.signal(key));
        }
        sleep(secs(30)).await;
    }
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with_seed(1).await
    }

    pub(crate) async fn with_seed(seed: u64) -> Self {
        let clock = Arc::new(SimClock::new());
        let sim = KubeSim::start(Options { seed, ..Options::default() }, clock.clone());
        let client = sim.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        crds.create(&PostParams::default(), &Toy::crd()).await.unwrap();
        let (world, mood) = (World::default(), Arc::default());
        Self { sim, world, mood, client, step: Duration::ZERO, bug: None, clock, seed }
    }

    pub(crate) fn replica(&self) -> Replica {
        self.replica_with(self.client.clone(), ControllerSettings::default(), None)
    }

    pub(crate) fn candidate(&self, name: &str) -> Replica {
        let lease = LeaseSettings::new("default", "toys", name);
        self.replica_with(self.client.clone(), ControllerSettings::default(), Some(lease))
    }

    pub(crate) fn replica_with(
        &self,
        client: Client,
        settings: ControllerSettings,
        lease: Option<LeaseSettings>,
    ) -> Replica {
        let name = lease.as_ref().map_or("alone", |lease| &lease.identity);
        let door = ToyDoor {
            client,
            world: self.world.clone(),
            mood: Arc::clone(&self.mood),
            step: self.step,
            bug: self.bug,
            clock: self.clock.clone(),
            random: Random::from_seed(self.seed).fork(name),
        };
        door.start(settings, lease)
    }

    pub(crate) fn toys(&self) -> Api<Toy> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn create(&self, toy: &Toy) -> Toy {
        self.toys().create(&PostParams::default(), toy).await.unwrap()
    }

    pub(crate) async fn get(&self, name: &str) -> Toy {
        self.toys().get(name).await.unwrap()
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.toys().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        let toy = self.get(name).await;
        self.world.inside().may_delete.insert(toy.uid().unwrap());
        self.toys().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Ends the watches; the next one of toys is told that its history is gone, and must list.
    pub(crate) fn make_a_gap(&self) {
        self.sim.add_rule(Rule {
            verb: "watch".to_owned(),
            resource: "toys.*".to_owned(),
            when: When { times: Some(1), ..When::default() },
            action: Action::WatchGone { after: 0 },
            ..Rule::default()
        });
        self.sim.cut_watches();
    }

    /// Lets everything that is under way come to its end.
    pub(crate) async fn settle(&self) {
        sleep(secs(5)).await;
        assert_eq!(self.world.inside().complaints, Vec::<String>::new());
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("default", name)
}

impl Replica {
    /// As SIGTERM does.
    pub(crate) async fn stop(mut self) {
        let _ = self.shutdown.take().unwrap().send(());
        self.task.await.unwrap();
    }

    /// As SIGKILL does.
    pub(crate) async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text
    }

    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}")).trim().parse().unwrap()
    }
}
