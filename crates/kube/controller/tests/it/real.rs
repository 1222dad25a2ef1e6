//! The toy door on a real API server with etcd: real time, real watches, a restart, a change of leader.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use roost_clock::{Random, SystemClock};
use roost_controller::crd::install_crds;
use roost_controller::rbac::Audit;
use roost_controller::{ControllerSettings, LeaseSettings};
use roost_oracle::{Cluster, ClusterOptions};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::access::needs;
use crate::lab::{Replica, ToyDoor, key};
use crate::toy::{Toy, World, toy};
use crate::wire::Wire;

/// A loaded machine is slow; a wait that takes this long has failed.
const PATIENCE: Duration = Duration::from_mins(3);

struct RealLab {
    client: Client,
    /// The door's: its service account with the role that is made from its needs.
    door: Client,
    world: World,
}

impl RealLab {
    fn candidate(&self, name: &str) -> Replica {
        let door = ToyDoor {
            client: self.door.clone(),
            world: self.world.clone(),
            mood: Arc::default(),
            step: Duration::ZERO,
            bug: None,
            clock: Arc::new(SystemClock),
            random: Random::from_seed(1).fork(name),
        };
        door.start(ControllerSettings::default(), Some(LeaseSettings::new("default", "toys", name)))
    }

    fn toys(&self) -> Api<Toy> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        let wait = async {
            while !holds(self).await {
                sleep(Duration::from_millis(100)).await;
            }
        };
        assert!(timeout(PATIENCE, wait).await.is_ok(), "in vain: {what}");
        assert_eq!(self.world.inside().complaints, Vec::<String>::new());
    }

    async fn shows(&self, name: &str, size: i64) {
        let what = format!("{name} shows {size}");
        self.until(&what, async |lab| {
            let found = lab.toys().get(name).await.ok();
            found.and_then(|toy| toy.status).is_some_and(|status| status.size == size)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_toy_door_works_on_a_real_api_server() {
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(mut cluster) = started.unwrap() else { return };
    let client = cluster.client().await;
    install_crds(&client, &[Toy::crd()], "toys").await.unwrap();
    crate::definitions::is_kept_by(client.clone()).await;
    // The door's connections go through a wire that can be cut, those of the test do not.
    let wire = Wire::to(&cluster.url()).await;
    let admin = wire.client(&cluster.kubeconfig()).await;
    let audit = Audit::grant(&admin, needs(), "toys", "default").await.unwrap();
    let lab = RealLab { client, door: audit.client(), world: World::default() };
    let first = lab.candidate("one");
    timeout(PATIENCE, first.status.leads()).await.unwrap();
    let second = lab.candidate("two");

    // An object becomes a machine in one pass: own writes cause no further one.
    lab.toys().create(&PostParams::default(), &toy("a", 1)).await.unwrap();
    lab.shows("a", 1).await;
    sleep(Duration::from_secs(1)).await;
    let passes = lab.world.passes();
    assert_eq!(passes, 1, "{:?}", lab.world.inside().order);
    let settled = lab.toys().get("a").await.unwrap().resource_version();
    for _ in 0..100 {
        first.trigger.signal(key("a"));
        sleep(Duration::from_millis(5)).await;
    }
    lab.until("the signals are served", async |lab| lab.world.passes() > passes).await;
    assert_eq!(lab.toys().get("a").await.unwrap().resource_version(), settled, "no write");

    // The watches are cut; what changes while there are none is found when they are back.
    wire.cut();
    let patch = Patch::Merge(json!({"spec": {"size": 5}}));
    lab.toys().patch("a", &PatchParams::default(), &patch).await.unwrap();
    lab.shows("a", 5).await;
    assert!(wire.cuts() > 0, "nothing was connected");
    assert_eq!(lab.world.inside().machines.len(), 1);

    // The server goes away; what changes while the door is blind is found afterwards.
    let cluster = tokio::task::spawn_blocking(move || {
        cluster.restart_api_server();
        cluster
    });
    let cluster = cluster.await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    lab.until("the server takes a change", async |lab| {
        lab.toys().patch("a", &PatchParams::default(), &patch).await.is_ok()
    })
    .await;
    lab.shows("a", 2).await;

    // A leader that ends in good order is followed. A slow restart may have cost the first its lease.
    lab.until("one leads", async |_| first.status.is_leader() || second.status.is_leader()).await;
    let is_first = first.status.is_leader();
    let (leader, second) = if is_first { (first, second) } else { (second, first) };
    leader.stop().await;
    timeout(PATIENCE, second.status.leads()).await.unwrap();
    lab.toys().create(&PostParams::default(), &toy("b", 7)).await.unwrap();
    lab.shows("b", 7).await;
    lab.toys().patch("b", &PatchParams::default(), &patch).await.unwrap();
    lab.shows("b", 2).await;

    let uid = lab.toys().get("b").await.unwrap().uid().unwrap();
    lab.world.inside().may_delete.insert(uid);
    lab.toys().delete("b", &DeleteParams::default()).await.unwrap();
    lab.until("b is gone", async |lab| {
        lab.toys().get_opt("b").await.is_ok_and(|toy| toy.is_none())
    })
    .await;
    assert_eq!(lab.world.inside().machines.len(), 1);
    lab.until("the events are counted", async |lab| {
        let events: Api<Event> = Api::namespaced(lab.client.clone(), "default");
        let listed = events.list(&ListParams::default()).await;
        listed.is_ok_and(|events| events.items.iter().any(|event| event.series.is_some()))
    })
    .await;
    second.stop().await;

    // Objects are asked for by name only after a gap, which this server does not make; the embedded one does.
    let verdict = audit.verdict();
    assert_eq!(verdict.refused, Vec::<String>::new());
    assert_eq!(verdict.unused, ["get toys.toys.example.com", "get secrets."]);
    drop(cluster);
}
