//! A cluster, a vCenter, the neighbours and the door, on paused time.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use roost_agent_forge::api::{Phase, VsphereAgent, VsphereAgentPool, crds};
use roost_agent_forge::iso::{Fetch, Fetched, IsoSource, SourceError};
use roost_agent_forge::vcenter::{Connect, Connecting, ForgeVms, Login};
use roost_agent_forge::{Forge, ForgeDoor, ForgeParts, WORDS, outside};
use roost_clock::{Clock, Random, SimClock};
use roost_controller::LeaseSettings;
use roost_controller::crd::install_crds;
use roost_door::FleetCore;
use roost_fleet::{Fleet, FleetRules, FleetSettings};
use roost_hypershift_sim::{Boot, Guests, Hypershift, Isos, SimSettings, neighbour_crds};
use roost_kube_sim::{KubeSim, Options as KubeOptions, User};
use roost_vcenter_sim::{Options as VcenterOptions, Power, Vcenter};
use roost_vim::wire::methods::{CreateFolder, MoveIntoFolderTask};
use roost_vim::{Body, Credentials, SendFuture, Settings, Transport};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Whom the API server takes the door for.
pub(crate) const DOOR: &str = "forge";
pub(crate) const NS: &str = "blue";
pub(crate) const POOL: &str = "blue-gp";
/// Where the second vCenter is.
const SECOND: &str = "vc-b.test";

pub(crate) fn mins(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

/// Kills the door at a step of its own: between any two requests that it makes, to either server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tripwire(Arc<Trip>);

#[derive(Debug, Default)]
struct Trip {
    left: AtomicU64,
    is_sprung: AtomicBool,
    sprung: Notify,
}

impl Tripwire {
    /// After so many more steps; 0 is never. A request and its answer are a step each.
    pub(crate) fn set(&self, steps: u64) {
        self.0.left.store(steps, Ordering::Relaxed);
        self.0.is_sprung.store(false, Ordering::Relaxed);
    }

    async fn step(&self) {
        let take = |left: u64| left.checked_sub(1);
        if self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) == Ok(1) {
            self.0.is_sprung.store(true, Ordering::Relaxed);
            self.0.sprung.notify_one();
        }
        if self.is_sprung() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn is_sprung(&self) -> bool {
        self.0.is_sprung.load(Ordering::Relaxed)
    }

    /// Comes when the door must die.
    pub(crate) async fn sprung(&self) {
        while !self.is_sprung() {
            self.0.sprung.notified().await;
        }
    }

    /// A client whose requests are steps.
    fn around(&self, client: Client) -> Client {
        let wire = self.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (wire, client) = (wire.clone(), client.clone());
            async move {
                wire.step().await;
                let answer = client.send(request).await;
                wire.step().await;
                answer
            }
        });
        Client::new(service, "default")
    }
}

/// A vCenter whose requests are steps.
#[derive(Debug, Clone)]
struct Wired(Vcenter, Tripwire);

impl Transport for Wired {
    fn send(&self, request: http::Request<Body>) -> SendFuture {
        let Self(vcenter, wire) = self.clone();
        Box::pin(async move {
            wire.step().await;
            let answer = vcenter.handle(request).await;
            wire.step().await;
            answer
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct InProcess(pub(crate) Vcenter);

impl Transport for InProcess {
    fn send(&self, request: http::Request<Body>) -> SendFuture {
        let vcenter = self.0.clone();
        Box::pin(async move { vcenter.handle(request).await })
    }
}

/// One vCenter, and another for logins to `vc-b.test`.
#[derive(Debug)]
struct Way {
    vcenter: Vcenter,
    second: Option<Vcenter>,
    clock: Arc<SimClock>,
    wire: Tripwire,
}

impl Connect for Way {
    fn connect(&self, login: &Login) -> Connecting {
        let second = self.second.as_ref().filter(|_| login.server == SECOND);
        let settings = FleetSettings {
            vcenter: login.settings().unwrap(),
            transport: Arc::new(Wired(second.unwrap_or(&self.vcenter).clone(), self.wire.clone())),
            clock: self.clock.clone(),
            doors: vec![Arc::new(ForgeVms)],
            phases: None,
            rules: FleetRules::default(),
        };
        Box::pin(Fleet::open(settings))
    }
}

/// The ISOs of the assisted service, without a socket.
#[derive(Debug)]
pub(crate) struct Shelf(pub(crate) Isos);

impl IsoSource for Shelf {
    fn fetch<'a>(&'a self, url: &'a str, known: Option<&'a str>) -> Fetch<'a> {
        Box::pin(async move {
            let Some((content, mark)) = self.0.read(url) else {
                return Err(SourceError::Status { status: 503 });
            };
            if known == Some(mark.as_str()) {
                return Ok(Fetched::Unchanged);
            }
            let length = Some(content.len() as u64);
            let body = Full::new(content).map_err(|never| match never {}).boxed();
            Ok(Fetched::Content { length, mark: Some(mark), body })
        })
    }
}

/// What runs in the vCenters.
#[derive(Debug)]
pub(crate) struct SimGuests {
    vcenters: Vec<Vcenter>,
    /// All boots in one order, and how many of each vCenter are in it.
    seen: Mutex<(Vec<Boot>, Vec<usize>)>,
}

impl SimGuests {
    pub(crate) fn of(vcenters: Vec<Vcenter>) -> Self {
        let read = vec![0; vcenters.len()];
        Self { vcenters, seen: Mutex::new((Vec::new(), read)) }
    }
}

impl Guests for SimGuests {
    fn boots(&self) -> Vec<Boot> {
        let mut seen = self.seen.lock().unwrap();
        let (all, read) = &mut *seen;
        for (vcenter, read) in self.vcenters.iter().zip(read) {
            let boots = vcenter.guest_boots().into_iter().skip(*read);
            let boots: Vec<Boot> = boots
                .map(|it| Boot { vm: it.vm, uuid: it.uuid, macs: it.macs, iso: it.iso })
                .collect();
            *read += boots.len();
            all.extend(boots);
        }
        all.clone()
    }

    fn is_running(&self, uuid: &str) -> bool {
        self.vcenters.iter().any(|vcenter| {
            vcenter.glance().iter().any(|vm| {
                vcenter.vm(&vm.name).is_some_and(|vm| vm.uuid == uuid && vm.power == Power::On)
            })
        })
    }
}

pub(crate) struct Lab {
    pub(crate) kube: KubeSim,
    pub(crate) vcenter: Vcenter,
    /// Another one, where a scenario has two.
    pub(crate) second: Option<Vcenter>,
    pub(crate) client: Client,
    pub(crate) neighbours: Hypershift,
    pub(crate) isos: Isos,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) seed: u64,
    /// Of the door that runs.
    pub(crate) wire: Tripwire,
    neighbours_run: JoinHandle<()>,
}

/// One process of the door.
pub(crate) struct Replica {
    pub(crate) registry: Registry,
    pub(crate) door: ForgeDoor,
    pub(crate) core: FleetCore,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Replica {
    /// As SIGKILL does.
    pub(crate) async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(crate) async fn stop(mut self) {
        let _ = self.shutdown.take().unwrap().send(());
        self.task.await.unwrap();
    }

    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text
    }
}

pub(crate) fn pool_json() -> Value {
    json!({
        "apiVersion": "agent-forge.containeroo.ch/v1alpha1", "kind": "VsphereAgentPool",
        "metadata": {"name": POOL, "namespace": NS},
        "spec": {
            "hostedClusterRef": {"name": "blue"}, "nodePoolRef": {"name": POOL}, "infraEnvRef": {"name": "blue-env"},
            "controlPlaneNamespace": "blue-blue",
            "vsphere": {"credentialsSecretRef": {"name": "vc-login"}, "datacenter": "DC0", "datastoreCluster": "DC0_POD0",
                "isoDatastore": "LocalDS_0", "resourcePool": "DC0_C0/Resources", "folder": "nodes/blue", "network": "VM Network"},
            "template": {"numCPUs": 2, "memoryMiB": 2048, "diskGiB": 20},
            "agent": {"labels": {"tenant": "blue"}},
        },
    })
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(1, |_| {}).await
    }

    pub(crate) async fn with(seed: u64, change: impl FnOnce(&mut SimSettings)) -> Self {
        Self::made(seed, false, change).await
    }

    /// With a second vCenter that the Secret vc-b logs in to.
    pub(crate) async fn with_two_vcenters() -> Self {
        Self::made(1, true, |_| {}).await
    }

    async fn made(seed: u64, is_double: bool, change: impl FnOnce(&mut SimSettings)) -> Self {
        let clock = Arc::new(SimClock::new());
        let kube = KubeSim::start(KubeOptions { seed, ..KubeOptions::default() }, clock.clone());
        let options = |seed| VcenterOptions {
            clusters: 1,
            standalone_hosts: 0,
            vms: 3,
            datastores: 3,
            pods: 1,
            seed,
            ..VcenterOptions::default()
        };
        let vcenter = Vcenter::start(options(seed), clock.clone());
        // Another seed, or its VMs would have the same uuids.
        let second = is_double.then(|| Vcenter::start(options(seed + 1_000_000), clock.clone()));
        let client = kube.client();
        install_crds(&client, &crds().unwrap(), "lab").await.unwrap();
        install_crds(&client, &neighbour_crds(), "lab").await.unwrap();
        let isos = Isos::default();
        let url = isos.publish("http://assisted.test", "blue-env", Bytes::from_static(b"iso-v1"));
        let mut settings = SimSettings::new(NS, POOL);
        change(&mut settings);
        let neighbours = Hypershift::new(
            client.clone(),
            settings,
            isos.clone(),
            Arc::new(SimGuests::of(
                [Some(vcenter.clone()), second.clone()].into_iter().flatten().collect(),
            )),
        );
        neighbours.set_up(&url).await.unwrap();
        let running = neighbours.clone();
        let neighbours_run = tokio::spawn(async move { running.run().await });
        let lab = Self {
            kube,
            vcenter,
            second,
            client,
            neighbours,
            isos,
            clock,
            seed,
            wire: Tripwire::default(),
            neighbours_run,
        };
        lab.furnish(&lab.vcenter).await;
        lab.add_login("vc-login", "vc.test").await;
        if let Some(second) = &lab.second {
            lab.furnish(second).await;
            lab.add_login("vc-b", SECOND).await;
        }
        lab
    }

    /// Another NodePool of the cluster with the same InfraEnv.
    pub(crate) async fn second_node_pool(&self, name: &str) -> Hypershift {
        let guests = Arc::new(SimGuests::of(vec![self.vcenter.clone()]));
        let settings = SimSettings::new(NS, name);
        let others = Hypershift::new(self.client.clone(), settings, self.isos.clone(), guests);
        others.set_up("http://assisted.test/iso/blue-env").await.unwrap();
        let running = others.clone();
        tokio::spawn(async move { running.run().await });
        others
    }

    /// A folder in a folder, a datastore cluster with two datastores.
    async fn furnish(&self, vcenter: &Vcenter) {
        let hand = self.hand_in(vcenter).await;
        let mut folder = vcenter.find("/DC0/vm").unwrap();
        for name in ["nodes", "blue"] {
            folder = hand
                .change(
                    roost_vim::CallClass::Submit,
                    &CreateFolder { this: folder, name: name.into() },
                )
                .await
                .unwrap();
        }
        let finder = hand.finder("DC0").await.unwrap();
        let pod = finder.datastore_cluster("DC0_POD0").await.unwrap();
        let mut list = Vec::new();
        for name in ["LocalDS_1", "LocalDS_2"] {
            list.push(finder.datastore(name).await.unwrap().moref);
        }
        let into = MoveIntoFolderTask { this: pod.moref, list };
        hand.submit(&into).await.unwrap().wait().await.unwrap();
        hand.shutdown().await;
        vcenter.reset_counters();
    }

    async fn add_login(&self, name: &str, server: &str) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NS},
            "stringData": {"server": server, "username": "forge", "password": "secret"}});
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(self.client.clone(), NS);
        secrets
            .create(&PostParams::default(), &serde_json::from_value(secret).unwrap())
            .await
            .unwrap();
    }

    pub(crate) async fn hand(&self) -> roost_vim::Client {
        self.hand_in(&self.vcenter).await
    }

    async fn hand_in(&self, vcenter: &Vcenter) -> roost_vim::Client {
        let settings = Settings::new("vc.test", Credentials::new("hand", "secret")).unwrap();
        let clock: Arc<dyn Clock> = self.clock.clone();
        let door = Arc::new(InProcess(vcenter.clone()));
        roost_vim::Client::connect(settings, door, clock).await.unwrap()
    }

    /// Somebody else makes a VM in a folder.
    pub(crate) async fn add_vm(&self, folder: &str, name: &str) {
        let hand = self.hand().await;
        let folder = self.vcenter.find(&format!("/DC0/vm/{folder}")).unwrap();
        let pool = self.vcenter.find("/DC0/host/DC0_C0/Resources").unwrap();
        hand.create_vm(&roost_vim::CreateVm::new(folder, name, pool, "LocalDS_0")).await.unwrap();
        hand.shutdown().await;
    }

    pub(crate) async fn make_tag(&self, category: &str, name: &str) {
        let hand = self.hand().await;
        let category = hand.ensure_tag_category(category, &["VirtualMachine"]).await.unwrap();
        hand.ensure_tag(&category, name).await.unwrap();
        hand.shutdown().await;
    }

    pub(crate) fn forge(&self) -> Replica {
        // By a name of its own, so that faults hit it and not the neighbours.
        let client = self.kube.client_as(User::named(DOOR).in_group("system:masters"));
        self.forge_as(client, None)
    }

    pub(crate) fn forge_as(&self, client: Client, lease: Option<LeaseSettings>) -> Replica {
        let mut registry = Registry::default();
        self.wire.set(0);
        let parts = ForgeParts {
            client: self.wire.around(client),
            connect: Arc::new(Way {
                vcenter: self.vcenter.clone(),
                second: self.second.clone(),
                clock: self.clock.clone(),
                wire: self.wire.clone(),
            }),
            isos: Arc::new(Shelf(self.isos.clone())),
            clock: self.clock.clone(),
            random: Random::from_seed(self.seed),
            lease,
            machine_version: outside::V1BETA1.to_owned(),
        };
        let forge = Forge::new(parts, &mut registry);
        let door = forge.door();
        let sites = forge.sites();
        let open = move || sites.open_ones().into_iter().map(|site| site.fleet).collect();
        let core = FleetCore::new(WORDS, open);
        let (shutdown, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(forge.run(async {
            let _ = ended.await;
        }));
        Replica { registry, door, core, shutdown: Some(shutdown), task }
    }

    pub(crate) async fn apply_pool(&self, change: Value) {
        let mut pool = pool_json();
        json_merge(&mut pool, &change);
        let api: Api<VsphereAgentPool> = Api::namespaced(self.client.clone(), NS);
        api.create(&PostParams::default(), &serde_json::from_value(pool).unwrap()).await.unwrap();
    }

    pub(crate) fn pools(&self) -> Api<VsphereAgentPool> {
        Api::namespaced(self.client.clone(), NS)
    }

    pub(crate) async fn pool(&self) -> VsphereAgentPool {
        self.pools().get(POOL).await.unwrap()
    }

    pub(crate) async fn patch_pool(&self, patch: Value) {
        self.pools().patch(POOL, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) fn agents_api(&self) -> Api<VsphereAgent> {
        Api::namespaced(self.client.clone(), NS)
    }

    pub(crate) async fn vsphere_agents(&self) -> Vec<VsphereAgent> {
        let mut all = self.agents_api().list(&ListParams::default()).await.unwrap().items;
        all.sort_by_key(ResourceExt::name_any);
        all
    }

    pub(crate) async fn delete_vsphere_agent(&self, name: &str) {
        self.agents_api().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn phases(&self) -> Vec<(String, Phase)> {
        let pool = self.pool().await;
        pool.status.owned_vms.iter().map(|vm| (vm.name.clone(), vm.phase.unwrap())).collect()
    }

    /// VMs that carry our marker.
    pub(crate) fn node_vms(&self) -> Vec<String> {
        Self::node_vms_in(&self.vcenter)
    }

    pub(crate) fn node_vms_in(vcenter: &Vcenter) -> Vec<String> {
        let mut names: Vec<String> = vcenter.vm_names();
        names.retain(|name| {
            vcenter.vm(name).is_some_and(|vm| {
                vm.extra_config.iter().any(|(key, _)| key == "guestinfo.agentforge.owner")
            })
        });
        names.sort();
        names
    }

    pub(crate) async fn agents(&self) -> Vec<DynamicObject> {
        self.neighbours.agents().await.unwrap()
    }

    /// Waits for a state; a scenario that does not come to it fails with what there is.
    pub(crate) async fn until(
        &self,
        what: &str,
        within: Duration,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let wait = async {
            while !holds(self).await {
                sleep(Duration::from_secs(1)).await;
            }
        };
        let is_there = timeout(within, wait).await.is_ok();
        assert!(is_there, "in vain: {what}\n{}", self.story().await);
    }

    /// Everything that is there, for a test that failed.
    pub(crate) async fn story(&self) -> String {
        let mut text = String::new();
        let pool = self.pools().get_opt(POOL).await.unwrap();
        let _ = writeln!(
            text,
            "pool {}",
            serde_json::to_string_pretty(&pool.map(|pool| pool.status)).unwrap()
        );
        for agent in self.vsphere_agents().await {
            let _ = writeln!(
                text,
                "VsphereAgent {} {:?} {}",
                agent.name_any(),
                agent.metadata.deletion_timestamp,
                serde_json::to_string_pretty(&agent.status).unwrap()
            );
        }
        for machine in self.neighbours.agent_machines().await.unwrap() {
            let _ = writeln!(text, "AgentMachine {} {}", machine.name_any(), machine.data);
        }
        for agent in self.agents().await {
            let _ = writeln!(
                text,
                "Agent {} {:?} {}",
                agent.name_any(),
                agent.labels(),
                agent.data["spec"]
            );
        }
        let _ = writeln!(text, "VMs {:?}", self.vcenter.vm_names());
        let api: Api<k8s_openapi::api::events::v1::Event> = Api::all(self.client.clone());
        let mut events = api.list(&ListParams::default()).await.unwrap().items;
        events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        for event in events {
            let at = event.event_time.as_ref().map(|time| time.0.to_string());
            let of = event.regarding.and_then(|of| of.name);
            let _ = writeln!(text, "{at:?} {of:?} {:?}: {:?}", event.reason, event.note);
        }
        text
    }

    /// ISOs that the cache of the pool has on a datastore of a vCenter.
    pub(crate) async fn iso_files(&self, vcenter: &Vcenter) -> Vec<String> {
        let hand = self.hand_in(vcenter).await;
        let finder = hand.finder("DC0").await.unwrap();
        let found = finder.datastore("LocalDS_0").await.unwrap();
        let files = hand.datastore(finder.datacenter(), &found).await.unwrap();
        let list = files.list(&files.path("agent-forge/blue/blue-gp"), None).await.unwrap();
        let names = list.unwrap_or_default();
        let mut names: Vec<String> =
            names.iter().map(|file| file.path.file_name().to_owned()).collect();
        names.sort();
        hand.shutdown().await;
        names
    }

    /// Somebody deletes one.
    pub(crate) async fn delete_iso(&self, path: &str) {
        let hand = self.hand().await;
        let finder = hand.finder("DC0").await.unwrap();
        let found = finder.datastore("LocalDS_0").await.unwrap();
        let files = hand.datastore(finder.datacenter(), &found).await.unwrap();
        files.delete(&files.path(path)).await.unwrap();
        hand.shutdown().await;
    }

    /// Reasons of all events that were written, one for each event object.
    pub(crate) async fn event_reasons(&self) -> Vec<String> {
        let api: Api<k8s_openapi::api::events::v1::Event> = Api::all(self.client.clone());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter_map(|event| event.reason).collect()
    }

    /// How often something was told: the same again counts in its event.
    pub(crate) async fn times_told(&self, reason: &str) -> i32 {
        let api: Api<k8s_openapi::api::events::v1::Event> = Api::all(self.client.clone());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        let told = all.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        told.map(|event| event.series.map_or(1, |series| series.count)).sum()
    }

    /// An AgentMachine of the NodePool without a Machine. The provider says of it that no Agent suits it.
    pub(crate) async fn add_agent_machine(&self, name: &str) {
        let mut machine = DynamicObject::new(name, &outside::agent_machines())
            .within("blue-blue")
            .data(json!({"spec": {"agentLabelSelector": {"matchLabels": {"tenant": "blue"}}}}));
        machine.metadata.annotations = Some(
            [("hypershift.openshift.io/nodePool".to_owned(), "blue/blue-gp".to_owned())].into(),
        );
        self.agent_machines_api().create(&PostParams::default(), &machine).await.unwrap();
    }

    pub(crate) fn agent_machines_api(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "blue-blue", &outside::agent_machines())
    }

    /// A VsphereAgent as somebody else writes it.
    pub(crate) async fn add_vsphere_agent(&self, name: &str, change: Value) {
        let mut object = json!({"apiVersion": "agent-forge.containeroo.ch/v1alpha1", "kind": "VsphereAgent",
            "metadata": {"name": name, "namespace": NS}, "spec": {"poolRef": {"name": POOL}}});
        json_merge(&mut object, &change);
        let status = json!({"status": object["status"]});
        let object: VsphereAgent = serde_json::from_value(object).unwrap();
        self.agents_api().create(&PostParams::default(), &object).await.unwrap();
        if !status["status"].is_null() {
            let params = PatchParams::default();
            self.agents_api().patch_status(name, &params, &Patch::Merge(status)).await.unwrap();
        }
    }

    pub(crate) async fn ready_nodes(&self) -> usize {
        let machines = self.neighbours.agent_machines().await.unwrap();
        machines.iter().filter(|machine| machine.data["status"]["ready"] == json!(true)).count()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.neighbours_run.abort();
    }
}

pub(crate) fn json_merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(key);
                } else {
                    json_merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
