//! A node on a real API server with etcd: real time, real watches, and a crash on the way.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use roost_agent_forge::api::{VsphereAgent, VsphereAgentPool, crds};
use roost_agent_forge::vcenter::{Connect, Connecting, ForgeVms, Login};
use roost_agent_forge::{Forge, ForgeParts, machine_version};
use roost_clock::{Random, SystemClock};
use roost_controller::crd::install_crds;
use roost_fleet::{Fleet, FleetRules, FleetSettings};
use roost_hypershift_sim::{Hypershift, Isos, SimSettings, neighbour_crds};
use roost_oracle::{Cluster, ClusterOptions};
use roost_vcenter_sim::{Options, Timings, Vcenter};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::lab::{InProcess, NS, POOL, Shelf, SimGuests, json_merge, pool_json};

/// A loaded machine is slow; a wait that takes this long has failed.
const PATIENCE: Duration = Duration::from_mins(3);

#[derive(Debug)]
struct Way(Vcenter);

impl Connect for Way {
    fn connect(&self, login: &Login) -> Connecting {
        let mut vcenter = login.settings().unwrap();
        // The guard wants two looks; a minute between them is long for a test.
        vcenter.stream.max_wait = Duration::from_secs(1);
        Box::pin(Fleet::open(FleetSettings {
            vcenter,
            transport: Arc::new(InProcess(self.0.clone())),
            clock: Arc::new(SystemClock),
            doors: vec![Arc::new(ForgeVms)],
            phases: None,
            rules: FleetRules::default(),
        }))
    }
}

async fn forge(client: &Client, vcenter: &Vcenter, isos: &Isos) -> JoinHandle<()> {
    let parts = ForgeParts {
        client: client.clone(),
        connect: Arc::new(Way(vcenter.clone())),
        isos: Arc::new(Shelf(isos.clone())),
        clock: Arc::new(SystemClock),
        random: Random::from_seed(1),
        lease: None,
        machine_version: machine_version(client).await.unwrap(),
    };
    let forge = Forge::new(parts, &mut Registry::default());
    tokio::spawn(forge.run(std::future::pending()))
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            sleep(Duration::from_millis(200)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "in vain: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_comes_and_goes_on_a_real_api_server_with_a_crash_on_the_way() {
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(cluster) = started.unwrap() else { return };
    let client = cluster.client().await;
    install_crds(&client, &crds().unwrap(), "lab").await.unwrap();
    install_crds(&client, &neighbour_crds(), "lab").await.unwrap();
    let options = Options {
        clusters: 1,
        standalone_hosts: 0,
        vms: 1,
        timings: Timings::instant(),
        ..Options::default()
    };
    let vcenter = Vcenter::start(options, Arc::new(SystemClock));
    let isos = Isos::default();
    let url = isos.publish("http://assisted.test", "blue-env", "iso-v1".into());
    let settings = SimSettings {
        registers_after: Duration::from_secs(2),
        installs_in: Duration::from_secs(2),
        deletes_in: Duration::from_secs(2),
        tick: Duration::from_millis(500),
        ..SimSettings::new(NS, POOL)
    };
    let guests = Arc::new(SimGuests::of(vec![vcenter.clone()]));
    let neighbours = Hypershift::new(client.clone(), settings, isos.clone(), guests);
    neighbours.set_up(&url).await.unwrap();
    let running = neighbours.clone();
    let neighbours_run = tokio::spawn(async move { running.run().await });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vc-login", "namespace": NS},
        "stringData": {"server": "vc.test", "username": "forge", "password": "secret"}});
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client.clone(), NS);
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let mut pool = pool_json();
    let vsphere = json!({"datastoreCluster": null, "datastore": "LocalDS_0", "folder": null});
    json_merge(&mut pool, &json!({"spec": {"vsphere": vsphere}}));
    vcenter_folder(&vcenter).await;
    let pools: Api<VsphereAgentPool> = Api::namespaced(client.clone(), NS);
    pools.create(&PostParams::default(), &serde_json::from_value(pool).unwrap()).await.unwrap();

    let first = forge(&client, &vcenter, &isos).await;
    neighbours.scale(1);
    until("a VM is asked for", async || vcenter.counters().calls_of("CreateVM_Task") > 0).await;
    first.abort();
    let _ = first.await;
    let second = forge(&client, &vcenter, &isos).await;
    let is_ready = async || {
        let machines = neighbours.agent_machines().await.unwrap_or_default();
        machines.iter().any(|machine| machine.data["status"]["ready"] == json!(true))
    };
    until("a node", is_ready).await;
    assert_eq!(vcenter.counters().calls_of("CreateVM_Task"), 1);

    neighbours.scale(0);
    let agents: Api<VsphereAgent> = Api::namespaced(client.clone(), NS);
    until("all is gone", async || {
        let left = agents.list(&ListParams::default()).await;
        vcenter.vm_names().len() == 1
            && left.is_ok_and(|left| left.items.is_empty())
            && neighbours.agents().await.is_ok_and(|agents| agents.is_empty())
    })
    .await;
    second.abort();
    neighbours_run.abort();
    drop(cluster);
}

/// The folder of the hosted cluster's name.
async fn vcenter_folder(vcenter: &Vcenter) {
    let settings =
        roost_vim::Settings::new("vc.test", roost_vim::Credentials::new("hand", "secret"));
    let door = Arc::new(InProcess(vcenter.clone()));
    let hand = roost_vim::Client::connect(settings.unwrap(), door, Arc::new(SystemClock)).await;
    let hand = hand.unwrap();
    let this = vcenter.find("/DC0/vm").unwrap();
    let call = roost_vim::wire::methods::CreateFolder { this, name: "blue".into() };
    hand.change(roost_vim::CallClass::Submit, &call).await.unwrap();
    hand.shutdown().await;
}
