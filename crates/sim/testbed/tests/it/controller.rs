//! The toy door as a controller: an object says how many VMs there are to be. On a real API server, through a cut of the watches, a
//! restart of the server and a change of the leader.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResource, CustomResourceExt, ResourceExt};
use prometheus_client::registry::Registry;
use roost_clock::{Random, SimClock};
use roost_controller::crd::install_crds;
use roost_controller::{
    ControllerSettings, LeaseSettings, Manager, Next, Pass, Reconciler, Status, WriteError, Writer,
};
use roost_oracle::{Cluster, ClusterOptions};
use roost_testbed::{Site, Toy, ToyVms};
use roost_vcenter_sim::{Options, TemplateOptions, Timings, Vcenter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::wire::Wire;

const FINALIZER: &str = "herds.example.com/vms";

/// A loaded machine is slow; a wait that takes this long has failed.
const PATIENCE: Duration = Duration::from_mins(3);

#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "herds.example.com", version = "v1", kind = "Herd", namespaced)]
#[kube(status = "HerdStatus", derive = "PartialEq")]
struct HerdSpec {
    wanted: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
struct HerdStatus {
    #[serde(default)]
    on: u64,
}

struct Herds {
    toy: Arc<Toy>,
    writer: Writer,
}

impl Reconciler for Herds {
    type Object = Herd;
    type Error = WriteError;

    async fn reconcile(&self, pass: &Pass<Herd>) -> Result<Next, WriteError> {
        let Some(mut herd) = pass.draft() else { return Ok(Next::AwaitChange) };
        let is_leaving = herd.is_being_deleted();
        if !is_leaving && herd.add_finalizer(FINALIZER) {
            self.writer.save_main(&mut herd).await?;
        }
        let wanted = if is_leaving { 0 } else { herd.spec.wanted };
        let on = self.toy.keep(wanted).await as u64;
        if is_leaving && on == 0 {
            herd.remove_finalizer(FINALIZER);
        }
        herd.status.get_or_insert_default().on = on;
        self.writer.save(&mut herd).await?;
        // The mirror may not have seen yet what was done.
        Ok(if on == wanted { Next::AwaitChange } else { Next::After(Duration::from_millis(200)) })
    }
}

/// One process of the door, with a login of its own.
struct Replica {
    status: Status,
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Replica {
    async fn start(client: Client, site: &Site, name: &str) -> Self {
        let fleet = site.open(vec![Arc::new(ToyVms)]).await.unwrap();
        let toy = Arc::new(Toy::new(fleet.clone(), crate::toy::settings(site, "herd", 0)));
        let mut manager = Manager::new(client, "herds", &mut Registry::default())
            .with_world(site.clock.clone(), Random::from_seed(1).fork(name))
            .with_lease(LeaseSettings::new("default", "herds", name));
        let herds = manager.watch(Api::<Herd>::all(manager.client().clone()));
        let (writer, status) = (manager.writer(), manager.status());
        let settings = ControllerSettings::default();
        manager.controller("herd", &herds, settings).reconcile(Arc::new(Herds { toy, writer }));
        let (shutdown, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let running = manager.run(async {
                let _ = ended.await;
            });
            tokio::select! {
                () = running => {}
                _ = fleet.follow() => {}
            }
        });
        Self { status, shutdown, task }
    }

    async fn stop(self) {
        let _ = self.shutdown.send(());
        self.task.await.unwrap();
    }
}

struct Lab {
    herds: Api<Herd>,
    site: Site,
}

impl Lab {
    async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        let wait = async {
            while !holds(self).await {
                sleep(Duration::from_millis(100)).await;
            }
        };
        let is_there = timeout(PATIENCE, wait).await.is_ok();
        assert!(is_there, "in vain: {what}; VMs {:?}", self.site.vcenter.vm_names());
    }

    /// Also while the server is away.
    async fn want(&self, wanted: u64) {
        let patch = Patch::Merge(json!({"spec": {"wanted": wanted}}));
        self.until("the server takes a change", async |lab| {
            lab.herds.patch("a", &PatchParams::default(), &patch).await.is_ok()
        })
        .await;
    }

    /// The object says so, and there are as many VMs beside the template.
    async fn has(&self, on: u64) {
        self.until(&format!("{on} VMs"), async |lab| {
            let status = lab.herds.get("a").await.ok().and_then(|herd| herd.status);
            let vms = lab.site.vcenter.vm_names().len() as u64 - 1;
            status.is_some_and(|status| status.on == on) && vms == on
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_toy_door_is_a_controller_on_a_real_api_server() {
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(mut cluster) = started.unwrap() else { return };
    let client = cluster.client().await;
    install_crds(&client, &[Herd::crd()], "herds").await.unwrap();
    let clock = Arc::new(SimClock::new());
    let options = Options {
        clusters: 1,
        standalone_hosts: 0,
        vms: 0,
        templates: vec![TemplateOptions::new(Site::TEMPLATE)],
        timings: Timings::quick(),
        ..Options::default()
    };
    let site = Site { vcenter: Vcenter::start(options, clock.clone()), clock };
    // The door's connections go through a wire that can be cut, those of the test do not.
    let wire = Wire::to(&cluster.url()).await;
    let door = wire.client(&cluster.kubeconfig()).await;
    let lab = Lab { herds: Api::namespaced(client, "default"), site };
    let first = Replica::start(door.clone(), &lab.site, "one").await;
    timeout(PATIENCE, first.status.leads()).await.unwrap();
    let second = Replica::start(door, &lab.site, "two").await;

    let herd = Herd::new("a", HerdSpec { wanted: 2 });
    lab.herds.create(&PostParams::default(), &herd).await.unwrap();
    lab.has(2).await;
    assert_eq!(lab.herds.get("a").await.unwrap().finalizers(), [FINALIZER]);

    // What changes while there are no watches is found when they are back.
    wire.cut();
    lab.want(3).await;
    lab.has(3).await;
    assert!(wire.cuts() > 0, "nothing was connected");

    let cluster = tokio::task::spawn_blocking(move || {
        cluster.restart_api_server();
        cluster
    });
    let cluster = cluster.await.unwrap();
    lab.want(1).await;
    lab.has(1).await;

    // A slow restart may have cost the first its lease.
    lab.until("one leads", async |_| first.status.is_leader() || second.status.is_leader()).await;
    let is_first = first.status.is_leader();
    let (leader, next) = if is_first { (first, second) } else { (second, first) };
    leader.stop().await;
    timeout(PATIENCE, next.status.leads()).await.unwrap();
    lab.want(2).await;
    lab.has(2).await;

    lab.herds.delete("a", &DeleteParams::default()).await.unwrap();
    lab.until("all is gone", async |lab| {
        let found = lab.herds.get_opt("a").await;
        found.is_ok_and(|found| found.is_none()) && lab.site.vcenter.vm_names().len() == 1
    })
    .await;
    next.stop().await;
    drop(cluster);
}
