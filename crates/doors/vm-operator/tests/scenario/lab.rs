//! A cluster and a vCenter in a box, and the words that scenarios are told in.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Namespace};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use roost_clock::{Clock as _, Random, SimClock};
use roost_controller::crd::install_crds;
use roost_fleet::Fleet;
use roost_kube_sim::{KubeSim, Options};
use roost_testbed::Site;
use roost_vcenter_sim::VmView;
use roost_vim::Settings;
use roost_vm_operator::api::condition::{ConditionType, find, mark_true};
use roost_vm_operator::api::vm::{ImageReference, PowerState};
use roost_vm_operator::api::{
    Quantity, VirtualMachine, VirtualMachineClass, VirtualMachineClassSpec, VirtualMachineImage,
    VirtualMachineImageSpec, VirtualMachineImageStatus, VirtualMachineSnapshot,
    VirtualMachineSnapshotSpec, VirtualMachineSpec, definitions,
};
use roost_vm_operator::{
    ImageSources, OwnVms, ProviderSettings, READ_INSTEAD, VmDoor, VmOperator, VmOperatorSettings,
    Zone,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub(crate) const NAMESPACE: &str = "team-a";
const IMAGE: &str = "vmi-0123456789abcdef0";

/// As the embedded API server keeps them; that it takes them is another test's.
static DEFINITIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let all = definitions().unwrap();
    all.iter().map(|definition| serde_json::to_value(definition).unwrap()).collect()
});

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

pub(crate) struct Lab {
    /// `None` on a real API server.
    sim: Option<KubeSim>,
    pub(crate) site: Site,
    /// A person's.
    pub(crate) client: Client,
    /// The door's own.
    pub(crate) door: Client,
    pub(crate) fleet: Fleet,
    pub(crate) settings: VmOperatorSettings,
    operator: Option<Operator>,
    /// Of the door at work.
    registry: Registry,
    /// What the house shows of the door at work.
    pub(crate) shown: Option<VmDoor>,
}

/// One process of the door.
struct Operator {
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        let mut lab = Self::idle().await;
        lab.start();
        lab
    }

    /// Without the door at work.
    pub(crate) async fn idle() -> Self {
        let site = Site::new(3);
        let clock: Arc<SimClock> = site.clock.clone();
        let sim = KubeSim::start(Options::default(), clock);
        let client = sim.client();
        Self::build(Some(sim), client, site).await
    }

    /// Without the door at work, on a vCenter of one's own.
    pub(crate) async fn at(site: Site) -> Self {
        let clock: Arc<SimClock> = site.clock.clone();
        let sim = KubeSim::start(Options::default(), clock);
        let client = sim.client();
        Self::build(Some(sim), client, site).await
    }

    /// Without the door at work; chance of both servers comes from the seed.
    pub(crate) async fn seeded(seed: u64) -> Self {
        let site = Site::seeded(3, seed);
        let clock: Arc<SimClock> = site.clock.clone();
        let sim = KubeSim::start(Options { seed, ..Options::default() }, clock);
        let client = sim.client();
        Self::build(Some(sim), client, site).await
    }

    /// On another API server, with real time.
    pub(crate) async fn on(client: Client, site: Site) -> Self {
        Self::build(None, client, site).await
    }

    async fn build(sim: Option<KubeSim>, client: Client, site: Site) -> Self {
        match &sim {
            Some(sim) => sim.define(DEFINITIONS.iter().cloned()),
            None => install_crds(&client, &definitions().unwrap(), "lab").await.unwrap(),
        }
        let fleet = open(&site).await;
        fleet.cover(&site.find("/DC0"));
        let settings = settings();
        let door = client.clone();
        let (operator, registry, shown) = (None, Registry::default(), None);
        let lab = Self { sim, site, client, door, fleet, settings, operator, registry, shown };
        lab.furnish().await;
        lab
    }

    /// A namespace with a class, an image and a storage class.
    async fn furnish(&self) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(NAMESPACE.into());
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        let mut gold =
            StorageClass { provisioner: "csi.vsphere.vmware.com".into(), ..Default::default() };
        gold.metadata.name = Some("gold".into());
        gold.parameters = Some(BTreeMap::from([("datastore".to_owned(), "LocalDS_0".to_owned())]));
        let classes: Api<StorageClass> = Api::all(self.client.clone());
        classes.create(&PostParams::default(), &gold).await.unwrap();
        self.class("small", 2, "4Gi").await;
        self.class("large", 4, "8Gi").await;
        self.image(IMAGE, "VM", self.site.template().as_str()).await;
    }

    pub(crate) async fn image(&self, name: &str, type_: &str, item: &str) {
        let mut image = VirtualMachineImage::new(name, VirtualMachineImageSpec::default());
        image.metadata.namespace = Some(NAMESPACE.into());
        let images: Api<VirtualMachineImage> = self.api();
        images.create(&PostParams::default(), &image).await.unwrap();
        let mut status = VirtualMachineImageStatus {
            name: name.into(),
            type_: type_.into(),
            provider_item_id: item.to_owned(),
            ..Default::default()
        };
        mark_true(&mut status.conditions, ConditionType::Ready, self.site.clock.now());
        let patch = json!({ "status": status });
        images.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn class(&self, name: &str, cpus: i64, memory: &str) {
        let mut class = VirtualMachineClass::new(name, VirtualMachineClassSpec::default());
        class.metadata.namespace = Some(NAMESPACE.into());
        class.spec.hardware.cpus = cpus;
        class.spec.hardware.memory = Some(Quantity::new(memory));
        let classes: Api<VirtualMachineClass> = self.api();
        classes.create(&PostParams::default(), &class).await.unwrap();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn start(&mut self) {
        let mut registry = Registry::default();
        let random = Random::from_seed(1);
        let settings = self.settings.clone();
        let operator =
            VmOperator::new(&self.door, self.fleet.clone(), settings, random, &mut registry);
        self.registry = registry;
        self.shown = Some(operator.door());
        let (shutdown, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(operator.run(async {
            let _ = ended.await;
        }));
        self.operator = Some(Operator { shutdown: Some(shutdown), task });
    }

    /// As SIGTERM does.
    pub(crate) async fn stop(&mut self) {
        let mut operator = self.operator.take().unwrap();
        let _ = operator.shutdown.take().unwrap().send(());
        operator.task.await.unwrap();
    }

    /// As SIGKILL does.
    pub(crate) async fn crash(&mut self) {
        let operator = self.operator.take().unwrap();
        operator.task.abort();
        let _ = operator.task.await;
        // Its session and what it had begun end with it.
        let _ = tokio::time::timeout(secs(5), self.fleet.shut_down()).await;
        self.renew().await;
    }

    /// A new process has a memory and a session of its own.
    pub(crate) async fn renew(&mut self) {
        self.fleet = open(&self.site).await;
        self.fleet.cover(&self.site.find("/DC0"));
    }

    pub(crate) async fn apply(&self, vm: &VirtualMachine) -> VirtualMachine {
        self.api().create(&PostParams::default(), vm).await.unwrap()
    }

    pub(crate) async fn get(&self, name: &str) -> VirtualMachine {
        self.api().get(name).await.unwrap()
    }

    pub(crate) async fn is_gone(&self, name: &str) -> bool {
        self.api::<VirtualMachine>().get_opt(name).await.unwrap().is_none()
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let vms: Api<VirtualMachine> = self.api();
        vms.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        self.patch(name, json!({ "metadata": { "annotations": { key: value } } })).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        let vms: Api<VirtualMachine> = self.api();
        vms.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn snapshot(&self, name: &str, vm: &str) {
        let spec = VirtualMachineSnapshotSpec { vm_name: vm.into(), ..Default::default() };
        let mut snapshot = VirtualMachineSnapshot::new(name, spec);
        snapshot.metadata.namespace = Some(NAMESPACE.into());
        self.api().create(&PostParams::default(), &snapshot).await.unwrap();
    }

    pub(crate) async fn until_snapshot(&self, name: &str) -> VirtualMachineSnapshot {
        for _ in 0..9_000 {
            let snapshot: VirtualMachineSnapshot = self.api().get(name).await.unwrap();
            if snapshot.is_ready() {
                return snapshot;
            }
            sleep(Duration::from_millis(200)).await;
        }
        panic!("{name} is not ready: {:#?}", self.api::<VirtualMachineSnapshot>().get(name).await);
    }

    /// The VM of this name in vCenter.
    pub(crate) fn machine(&self, name: &str) -> Option<VmView> {
        self.site.vcenter.vm(name)
    }

    /// Waits for a state, for at most half an hour.
    pub(crate) async fn until(
        &self,
        what: &str,
        name: &str,
        holds: impl Fn(&VirtualMachine) -> bool,
    ) -> VirtualMachine {
        let mut last = None;
        for _ in 0..9_000 {
            if let Some(vm) = self.api::<VirtualMachine>().get_opt(name).await.unwrap() {
                if holds(&vm) {
                    return vm;
                }
                last = Some(vm);
            }
            sleep(Duration::from_millis(200)).await;
        }
        panic!("{name} is not {what}: {:#?}", last.map(|vm| (vm.metadata.annotations, vm.status)));
    }

    pub(crate) async fn until_on(&self, name: &str) -> VirtualMachine {
        self.until("powered on with an address", name, |vm| {
            vm.current_power_state() == Some(PowerState::PoweredOn) && vm.has_primary_ip()
        })
        .await
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        for _ in 0..9_000 {
            if self.is_gone(name).await {
                return;
            }
            sleep(Duration::from_millis(200)).await;
        }
        panic!("{name} is still there: {:#?}", self.get(name).await.status);
    }

    pub(crate) async fn events(&self) -> Vec<(String, String)> {
        let events: Api<Event> = self.api();
        let all = events.list(&ListParams::default()).await.unwrap();
        let one =
            |event: Event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
        all.items.into_iter().map(one).collect()
    }

    /// Calls to vCenter so far, but for those that only wait for news.
    pub(crate) fn calls(&self) -> u64 {
        let counters = self.site.vcenter.counters();
        counters.total_calls() - counters.calls_of("WaitForUpdatesEx")
    }

    /// Passes over VirtualMachine objects of the process at work so far.
    pub(crate) fn passes(&self) -> u64 {
        passes_in(&self.registry)
    }

    /// Writes to the API server so far, of anybody.
    pub(crate) fn writes(&self) -> u64 {
        self.sim().revision()
    }

    pub(crate) fn sim(&self) -> &KubeSim {
        self.sim.as_ref().unwrap()
    }
}

/// The places of the lab's vCenter.
pub(crate) fn settings() -> VmOperatorSettings {
    let provider = ProviderSettings {
        datacenter: "DC0".into(),
        folder: "/DC0/vm".into(),
        zones: vec![Zone {
            name: "zone-1".into(),
            resource_pool: "/DC0/host/DC0_C0/Resources".into(),
            datastore: Some("LocalDS_0".into()),
        }],
        network: "DC0_DVPG0".into(),
        images: ImageSources { libraries: Vec::new(), ..ImageSources::default() },
        ..ProviderSettings::default()
    };
    VmOperatorSettings { provider, ..VmOperatorSettings::default() }
}

/// Passes over VirtualMachine objects, however they ended.
pub(crate) fn passes_in(registry: &Registry) -> u64 {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    let counts = text.lines().filter_map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        let is_ours = name.starts_with("controller_runtime_reconcile_total{")
            && name.contains("controller=\"virtualmachine\"");
        is_ours.then(|| count.parse::<u64>().unwrap())
    });
    counts.sum()
}

/// A session of its own, as the binary opens it.
async fn open(site: &Site) -> Fleet {
    let reads = |vcenter: &mut Settings| vcenter.stream.read_instead = Some(READ_INSTEAD);
    site.open_with(vec![Arc::new(OwnVms)], reads).await.unwrap()
}

pub(crate) fn vm(name: &str) -> VirtualMachine {
    let mut vm = VirtualMachine::new(name, VirtualMachineSpec::default());
    vm.metadata.namespace = Some(NAMESPACE.into());
    vm.spec.class_name = "small".into();
    vm.spec.image =
        Some(ImageReference { kind: VirtualMachineImage::KIND.into(), name: IMAGE.into() });
    vm.spec.storage_class = "gold".into();
    vm
}

pub(crate) fn condition(vm: &VirtualMachine, kind: ConditionType) -> Option<(&str, &str)> {
    let condition = find(vm.conditions(), kind)?;
    Some((condition.status.as_str(), condition.reason.as_str()))
}
