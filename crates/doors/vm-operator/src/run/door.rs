use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{Api, Client, ResourceExt as _};
use prometheus_client::registry::Registry;
use roost_clock::Random;
use roost_controller::webhook::Webhooks;
use roost_controller::{
    ControllerSettings, Index, Key, LeaseSettings, Manager, Object, Status, Trigger, Watch,
};
use roost_fleet::Fleet;
use roost_supervise::{Backoff, Chain};
use tokio::task::JoinSet;

use super::caches::Caches;
use super::console::ConsoleRequests;
use super::discovery::Discovery;
use super::groups::Groups;
use super::owner;
use super::policies::Policies;
use super::reconciler::VirtualMachines;
use super::replica_sets::ReplicaSets;
use super::services::Services;
use super::signals::Signals;
use super::snapshots::Snapshots;
use super::{Probes, RateLimit, VmMetrics};
use crate::api::{
    ClusterVirtualMachineImage, VirtualMachine, VirtualMachineClass, VirtualMachineGroup,
    VirtualMachineImage, VirtualMachineImageCache, VirtualMachineImageStatus,
    VirtualMachineReplicaSet, VirtualMachineService, VirtualMachineSetResourcePolicy,
    VirtualMachineSnapshot, VirtualMachineWebConsoleRequest,
};
use crate::flow::{Context, FlowSettings};
use crate::front_door::VmDoor;
use crate::front_door::trail::Passes;
use crate::priority::{self, PrioritySettings};
use crate::provider::{Provider, ProviderSettings, Stores, secrets_of};
use crate::webhook::{AdmissionSettings, webhooks};

const FOLLOW_AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));

/// What the door is run with.
#[derive(Debug, Clone)]
pub struct VmOperatorSettings {
    pub provider: ProviderSettings,
    pub flow: FlowSettings,
    /// `MAX_CONCURRENT_RECONCILES`.
    pub workers: usize,
    /// `--use-priority-queue`.
    pub uses_priorities: bool,
    /// `SYNC_PERIOD`.
    pub resync: Duration,
    /// `WATCH_NAMESPACE`; `None` is all.
    pub namespace: Option<String>,
    pub lease: Option<LeaseSettings>,
    /// Who may do what others may not. Its network and its features are those of the provider.
    pub admission: AdmissionSettings,
    /// For whoever makes the client.
    pub rate_limit: RateLimit,
}

impl Default for VmOperatorSettings {
    fn default() -> Self {
        Self {
            provider: ProviderSettings::default(),
            flow: FlowSettings::default(),
            workers: 20,
            uses_priorities: true,
            resync: Duration::from_mins(30),
            namespace: None,
            lease: None,
            admission: AdmissionSettings::default(),
            rate_limit: RateLimit::default(),
        }
    }
}

/// The door: a manager with its controllers, ready to run.
pub struct VmOperator {
    manager: Manager,
    cx: Arc<Context>,
    random: Random,
    signals: Signals,
    fleet: Fleet,
    trigger: Trigger,
    priority: PrioritySettings,
}

impl fmt::Debug for VmOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VmOperator").finish_non_exhaustive()
    }
}

impl VmOperator {
    /// On a fleet whose mirror covers the datacenter.
    pub fn new(
        client: &Client,
        fleet: Fleet,
        settings: VmOperatorSettings,
        random: Random,
        registry: &mut Registry,
    ) -> Self {
        let VmOperatorSettings {
            provider,
            flow,
            workers,
            uses_priorities,
            resync,
            namespace,
            lease,
            admission,
            ..
        } = settings;
        let admission = AdmissionSettings {
            default_network: provider.network.clone(),
            resize: provider.features.resize,
            ..admission
        };
        let mut manager = Manager::new(client.clone(), "vm-operator", registry)
            .with_world(Arc::clone(fleet.clock()), random.fork("manager"));
        let client = &manager.client().clone();
        if let Some(lease) = lease {
            manager = manager.with_lease(lease);
        }
        let metrics = VmMetrics::register(registry);
        let space = namespace.as_deref();
        let vms = manager.watch(within::<VirtualMachine>(client, space));
        let classes = manager.watch(within::<VirtualMachineClass>(client, space));
        let images = manager.watch(within::<VirtualMachineImage>(client, space));
        let cluster_images = manager.watch(Api::<ClusterVirtualMachineImage>::all(client.clone()));
        let secrets = manager.watch(within::<Secret>(client, space));
        let storage_classes = manager.watch(Api::<StorageClass>::all(client.clone()));
        let claims = manager.watch(within::<PersistentVolumeClaim>(client, space));
        let policies = manager.watch(within::<VirtualMachineSetResourcePolicy>(client, space));
        let caches = manager.watch(Api::<VirtualMachineImageCache>::all(client.clone()));
        let own_space = &flow.pod_namespace;
        let config_maps = manager.watch(Api::<ConfigMap>::namespaced(client.clone(), own_space));
        let groups = manager.watch(within::<VirtualMachineGroup>(client, space));
        let snapshots = manager.watch(within::<VirtualMachineSnapshot>(client, space));
        let snapshots_of = snapshots.index(|snapshot: &VirtualMachineSnapshot| {
            Some(format!("{}/{}", snapshot.namespace().unwrap_or_default(), snapshot.spec.vm_name))
        });
        let stores = Stores {
            vms: vms.store(),
            classes: classes.store(),
            images: images.store(),
            cluster_images: cluster_images.store(),
            secrets: secrets.store(),
            storage_classes: storage_classes.store(),
            claims: claims.store(),
            policies: policies.store(),
            caches: caches.store(),
            config_maps: config_maps.store(),
            groups: groups.store(),
            snapshots: snapshots.store(),
            snapshots_of,
        };
        let provider = Arc::new(Provider::new(fleet.clone(), provider));
        let cx = Arc::new(Context {
            provider: Arc::clone(&provider),
            stores,
            writer: manager.writer(),
            events: manager.events(),
            settings: flow,
            admission: Arc::new(admission),
            metrics,
            probes: Probes::default(),
            passes: Passes::default(),
        });
        // Everything that a VM depends on leads to it by an index.
        let by_class = vms.index(|vm: &VirtualMachine| Some(below(vm, &vm.spec.class_name)));
        // By the name of the object, and by the one that is shown.
        let by_image = vms.index(|vm: &VirtualMachine| {
            let image = vm.spec.image.as_ref().map(|image| image.name.clone());
            let shown = Some(vm.spec.image_name.clone()).filter(|name| !name.is_empty());
            image.into_iter().chain(shown).collect::<Vec<_>>()
        });
        let by_secret = vms.index(|vm: &VirtualMachine| {
            secrets_of(vm).into_iter().map(|secret| below(vm, &secret.name)).collect::<Vec<_>>()
        });
        let by_storage = vms.index(|vm: &VirtualMachine| Some(vm.spec.storage_class.clone()));
        let by_claim = vms.index(|vm: &VirtualMachine| {
            let claims = vm.spec.volumes.iter().filter_map(|volume| volume.claim_name());
            claims.map(|claim| below(vm, claim)).collect::<Vec<_>>()
        });
        let by_policy = vms.index(|vm: &VirtualMachine| {
            vm.spec.reserved.as_ref().map(|of| below(vm, &of.resource_policy_name))
        });
        let by_group = vms.index(|vm: &VirtualMachine| Some(below(vm, &vm.spec.group_name)));
        let by_cache = vms.index(|vm: &VirtualMachine| {
            vm.labels().get(crate::api::names::label::IMAGE_CACHE_NAME).cloned()
        });
        let by_unique_id = vms
            .index(|vm: &VirtualMachine| vm.status.as_ref().map(|status| status.unique_id.clone()));
        let by_cluster_image = by_image.clone();
        let controller_settings = ControllerSettings {
            workers: workers.max(1),
            resync: Some(resync),
            ageing: uses_priorities.then(priority::ageing),
            labels: priority::labels(),
            ..ControllerSettings::default()
        };
        let controller = manager
            .controller("virtualmachine", &vms, controller_settings)
            .needs(&config_maps)
            .related(&classes, move |change| by_class.keys(&path(&*change.object)))
            .related(&images, move |change| {
                let image = &change.object;
                named_by(&by_image, &image.name_any(), image.status.as_ref())
            })
            .related(&cluster_images, move |change| {
                let image = &change.object;
                named_by(&by_cluster_image, &image.name_any(), image.status.as_ref())
            })
            .related(&secrets, move |change| by_secret.keys(&path(&*change.object)))
            .related(&storage_classes, move |change| by_storage.keys(&change.object.name_any()))
            .related(&claims, move |change| by_claim.keys(&path(&*change.object)))
            .related(&policies, move |change| by_policy.keys(&path(&*change.object)))
            .related(&groups, move |change| by_group.keys(&path(&*change.object)))
            .related(&caches, move |change| by_cache.keys(&change.object.name_any()))
            .related(&snapshots, move |change| {
                let snapshot = &change.object;
                let namespace = snapshot.namespace().unwrap_or_default();
                vec![roost_controller::Key::new(&namespace, &snapshot.spec.vm_name)]
            });
        let trigger = controller.trigger();
        let snapshots_of = cx.stores.snapshots_of.clone();
        let promotes_disks = provider.settings.features.fast_deploy.is_some();
        let is_used = uses_priorities;
        let priority = PrioritySettings { is_used, promotes_disks, ..PrioritySettings::default() };
        controller.reconcile(Arc::new(VirtualMachines {
            cx: Arc::clone(&cx),
            priority: priority.clone(),
        }));
        if promotes_disks {
            let controller = manager
                .controller("virtualmachineimagecache", &caches, ControllerSettings::default())
                .needs(&vms)
                .needs(&images)
                .needs(&cluster_images);
            provider.copies.call(controller.trigger());
            controller.reconcile(Arc::new(Caches { cx: Arc::clone(&cx) }));
        }
        let own = Snapshots { cx: Arc::clone(&cx), vms: vms.store() };
        let controller = manager
            .controller("virtualmachinesnapshot", &snapshots, ControllerSettings::default())
            .needs(&vms);
        let of_snapshots = controller.trigger();
        controller.reconcile(Arc::new(own));
        if provider.settings.features.groups {
            let own = Groups { cx: Arc::clone(&cx), vms: vms.store() };
            manager
                .controller("virtualmachinegroup", &groups, ControllerSettings::default())
                .related(&vms, |change| group_of(&*change.object, &change.object.spec.group_name))
                .related(&groups, |change| {
                    group_of(&*change.object, &change.object.spec.group_name)
                })
                .reconcile(Arc::new(own));
        }
        Self::others(client, space, &mut manager, &cx, &vms, &policies);
        provider.steps.call(trigger.clone());
        cx.probes.call(trigger.clone());
        let signals = Signals {
            fleet: fleet.clone(),
            trigger: trigger.clone(),
            by_unique_id,
            snapshots: of_snapshots,
            snapshots_of,
        };
        Self { manager, cx, random, signals, fleet, trigger, priority }
    }

    /// What the API server asks before it takes an object. Every replica answers, whether it leads or not.
    pub fn webhooks(&self) -> Webhooks {
        let (cx, clock) = (&self.cx, Arc::clone(self.fleet.clock()));
        let settings = AdmissionSettings::clone(&cx.admission);
        let random = self.random.fork("identities");
        let hooks = webhooks(settings, Arc::new(cx.stores.clone()), clock, random);
        hooks.measured(self.manager.metrics())
    }

    /// The kinds around VMs.
    fn others(
        client: &Client,
        space: Option<&str>,
        manager: &mut Manager,
        cx: &Arc<Context>,
        vms: &Watch<VirtualMachine>,
        policies: &Watch<VirtualMachineSetResourcePolicy>,
    ) {
        let settings = ControllerSettings::default;
        manager
            .controller("virtualmachinesetresourcepolicy", policies, settings())
            .reconcile(Arc::new(Policies { cx: Arc::clone(cx) }));

        let sets = manager.watch(within::<VirtualMachineReplicaSet>(client, space));
        let by_uid = sets.index(|set: &VirtualMachineReplicaSet| set.uid());
        let by_owner = vms.index(|vm: &VirtualMachine| owner::controller_of(vm));
        manager
            .controller("virtualmachinereplicaset", &sets, settings())
            .related(vms, move |change| {
                let owner = owner::controller_of(&*change.object);
                owner.map(|owner| by_uid.keys(&owner)).unwrap_or_default()
            })
            .reconcile(Arc::new(ReplicaSets { cx: Arc::clone(cx), by_owner }));

        let requests = manager.watch(within::<VirtualMachineWebConsoleRequest>(client, space));
        let by_vm = requests.index(|request: &VirtualMachineWebConsoleRequest| {
            let namespace = request.namespace().unwrap_or_default();
            Some(format!("{namespace}/{}", request.spec.name))
        });
        manager
            .controller("virtualmachinewebconsolerequest", &requests, settings())
            .related(vms, move |change| by_vm.keys(&path(&*change.object)))
            .reconcile(Arc::new(ConsoleRequests { cx: Arc::clone(cx) }));

        let own = manager.watch(within::<VirtualMachineService>(client, space));
        let services = manager.watch(within::<Service>(client, space));
        let endpoints = manager.watch(within::<Endpoints>(client, space));
        let by_namespace = own.index(|service: &VirtualMachineService| service.namespace());
        let reconciler =
            Services { cx: Arc::clone(cx), core: services.store(), endpoints: endpoints.store() };
        manager
            .controller("virtualmachineservice", &own, settings())
            .related(vms, move |change| {
                by_namespace.keys(&change.object.namespace().unwrap_or_default())
            })
            .related(&services, |change| vec![Key::of(&*change.object)])
            .related(&endpoints, |change| vec![Key::of(&*change.object)])
            .reconcile(Arc::new(reconciler));
    }

    /// What the house shows of it, and by which persons steer it. Looks on for as long as it is held.
    pub fn door(&self) -> VmDoor {
        let (cx, status) = (Arc::clone(&self.cx), self.manager.status());
        let client = self.manager.client().clone();
        VmDoor::new(cx, client, status, self.trigger.clone(), self.priority.clone())
    }

    pub fn status(&self) -> Status {
        self.manager.status()
    }

    /// Has an object looked at, from outside.
    pub fn trigger(&self) -> Trigger {
        self.trigger.clone()
    }

    /// Looks on until `shutdown`: objects and VMs are shown, and nothing is changed.
    pub async fn observe(self, shutdown: impl Future<Output = ()> + Send) {
        let Self { manager, fleet, .. } = self;
        let mut beside = JoinSet::new();
        beside.spawn(follow(fleet));
        manager.observe(shutdown).await;
    }

    /// Until `shutdown`; then running passes may finish.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        let Self { manager, cx, signals, fleet, .. } = self;
        let shown = Arc::clone(&cx);
        // They end with this future, also when it is dropped.
        let mut beside = JoinSet::new();
        beside.spawn(follow(fleet));
        beside.spawn(super::extension::run(Arc::clone(&cx), manager.status()));
        beside.spawn(super::linked_trial::run(Arc::clone(&cx), manager.status()));
        beside.spawn(Discovery::new(cx, manager.status()).run());
        beside.spawn(signals.run());
        beside.spawn(show_signals(shown));
        manager.run(shutdown).await;
    }
}

/// Until the client is shut down. A stream that cannot be had is asked for again; passes go by time meanwhile.
async fn follow(fleet: Fleet) {
    let mut failures = 0;
    while let Err(error) = fleet.follow().await {
        let pause = FOLLOW_AGAIN.pause(failures);
        failures += 1;
        tracing::warn!("the vCenter cannot be followed, again in {pause:?}: {}", Chain(&error));
        tokio::time::sleep(pause).await;
    }
}

/// Whether changes are told, in a metric and once in the log for each turn.
async fn show_signals(cx: Arc<Context>) {
    let mut stream = cx.provider.fleet.mirror().stream();
    let mut were_told = None;
    loop {
        let are_told = cx.has_signals();
        cx.metrics.has_signals(are_told);
        if were_told.is_some_and(|were_told| were_told && !are_told) {
            tracing::warn!("vCenter does not tell changes of VMs: they are looked at by time");
        }
        were_told = Some(are_told);
        if stream.changed().await.is_err() {
            return;
        }
    }
}

fn within<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Object<DynamicType = ()> + kube::Resource<Scope = kube::core::NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// An object that a VM names, in its own namespace.
fn below(vm: &VirtualMachine, name: &str) -> String {
    format!("{}/{name}", vm.namespace().unwrap_or_default())
}

/// The group that an object says it is in.
fn group_of(member: &impl kube::Resource, name: &str) -> Vec<Key> {
    let namespace = member.meta().namespace.as_deref().unwrap_or_default();
    let group = (!name.is_empty()).then(|| Key::new(namespace, name));
    group.into_iter().collect()
}

fn named_by(
    index: &Index<VirtualMachine>,
    name: &str,
    status: Option<&VirtualMachineImageStatus>,
) -> Vec<Key> {
    let mut keys = index.keys(name);
    if let Some(shown) = status.map(|status| &status.name).filter(|shown| *shown != name) {
        keys.extend(index.keys(shown));
    }
    keys
}

fn path(object: &impl kube::Resource) -> String {
    roost_controller::Key::of(object).to_string()
}
