//! From settings to a door that works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use prometheus_client::registry::Registry;
use roost_clock::{Clock, Random};
use roost_controller::{
    Change, Controller, ControllerSettings, Key, LeaseSettings, Manager, Object, Status,
};
use roost_fleet::VmChange;

use crate::api::names::NODE_POOL_ANNOTATION;
use crate::api::{VsphereAgent, VsphereAgentPool};
use crate::control::{DemandReconciler, PoolReconciler, VmReconciler, World};
use crate::front_door::ForgeDoor;
use crate::iso::{IsoCache, IsoSource};
use crate::metrics::Metrics;
use crate::outside::{self, V1BETA1};
use crate::vcenter::{Connect, FORGE, Site, Sites, observe};

/// What the door is joined from.
#[expect(missing_debug_implementations, reason = "the client has none")]
pub struct ForgeParts {
    pub client: Client,
    pub connect: Arc<dyn Connect>,
    pub isos: Arc<dyn IsoSource>,
    pub clock: Arc<dyn Clock>,
    pub random: Random,
    /// Work only while it is held.
    pub lease: Option<LeaseSettings>,
    /// The version in which the API server has Machines; see [`machine_version`].
    pub machine_version: String,
}

/// The door. [`run`](Forge::run) is its life.
#[expect(missing_debug_implementations, reason = "the client has none")]
pub struct Forge {
    manager: Manager,
    world: Arc<World>,
}

/// The version of Machines to read: the usual one where it is served, else the one that the server prefers.
pub async fn machine_version(client: &Client) -> Result<String, kube::Error> {
    let groups = client.list_api_groups().await?;
    let group = groups.groups.into_iter().find(|group| group.name == outside::MACHINE_GROUP);
    let Some(group) = group else { return Ok(V1BETA1.to_owned()) };
    if group.versions.iter().any(|version| version.version == V1BETA1) {
        return Ok(V1BETA1.to_owned());
    }
    let preferred = group.preferred_version.or_else(|| group.versions.into_iter().next());
    Ok(preferred.map_or_else(|| V1BETA1.to_owned(), |version| version.version))
}

impl Forge {
    pub fn new(parts: ForgeParts, registry: &mut Registry) -> Self {
        let ForgeParts { client, connect, isos, clock, random, lease, machine_version } = parts;
        let mut manager = Manager::new(client.clone(), "agent-forge", registry)
            .with_world(Arc::clone(&clock), random);
        let client = manager.client().clone();
        if let Some(lease) = lease {
            manager = manager.with_lease(lease);
        }
        let pools = manager.watch(Api::<VsphereAgentPool>::all(client.clone()));
        let vsphere_agents = manager.watch(Api::<VsphereAgent>::all(client.clone()));
        let mut watch = |kind: ApiResource| {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
            manager.watch_with(api, kind, watcher::Config::default())
        };
        let agent_machines = watch(outside::agent_machines());
        let machines = watch(outside::machines(&machine_version));
        let agents = watch(outside::agents());
        let infra_envs = watch(outside::infra_envs());
        agent_machines.trim(outside::trim::agent_machine);
        machines.trim(outside::trim::machine);
        agents.trim(outside::trim::agent);

        let by_namespace = |object: &DynamicObject| object.namespace();
        let pools_by_control_plane =
            pools.index(|pool: &VsphereAgentPool| Some(pool.spec.control_plane_namespace.clone()));
        let pools_by_namespace = pools.index(|pool: &VsphereAgentPool| pool.namespace());
        let agents_of_pool = vsphere_agents.index(pool_keys);
        let agents_of_namespace = vsphere_agents.index(|agent: &VsphereAgent| agent.namespace());
        let by_uid = vsphere_agents.index(|agent: &VsphereAgent| agent.uid());

        let cell: Arc<OnceLock<Weak<World>>> = Arc::default();
        let (told, failed) = (Arc::clone(&cell), Arc::clone(&cell));
        let uid_index = by_uid.clone();
        let sites = Sites::new(
            connect,
            move |site| {
                if let Some(world) = told.get().and_then(Weak::upgrade) {
                    world.wake_all();
                    follow_vms(&world, site, uid_index.clone());
                }
            },
            move || {
                if let Some(world) = failed.get().and_then(Weak::upgrade) {
                    world.wake_all();
                }
            },
        );
        let world = Arc::new(World {
            client: client.clone(),
            writer: manager.writer(),
            events: manager.events(),
            clock,
            pools: pools.store(),
            pools_by_control_plane: pools_by_control_plane.clone(),
            vsphere_agents: vsphere_agents.store(),
            agents_of_pool: agents_of_pool.clone(),
            agents_of_namespace,
            agent_machines: agent_machines.index(by_namespace),
            agent_machine_kind: outside::agent_machines(),
            machines: machines.index(by_namespace),
            machine_kind: outside::machines(&machine_version),
            agents: agents.index(by_namespace),
            agent_kind: outside::agents(),
            infra_envs: infra_envs.store(),
            sites,
            iso: IsoCache::new(isos),
            metrics: Metrics::register(registry),
            vm_jobs: crate::control::jobs_of_vms(),
            pool_jobs: crate::control::jobs_of_pools(),
            places: Mutex::default(),
            arrivals: Mutex::default(),
            lost_isos: Mutex::default(),
            chosen: Mutex::default(),
            pauses: Mutex::default(),
            needs_consent: AtomicBool::new(false),
            guards: Mutex::default(),
            logins: Mutex::default(),
            created: tokio::sync::Mutex::default(),
            vm_trigger: Mutex::default(),
            pool_trigger: Mutex::default(),
        });
        let _ = cell.set(Arc::downgrade(&world));

        // A pool of this control plane and NodePool.
        let of_node_pool = move |change: &Change<DynamicObject>| {
            let namespace = change.object.namespace().unwrap_or_default();
            let node_pool = change.object.annotations().get(NODE_POOL_ANNOTATION).cloned();
            let pools = pools_by_control_plane.objects(&namespace);
            let serves = |pool: &&Arc<VsphereAgentPool>| {
                let own = format!(
                    "{}/{}",
                    pool.namespace().unwrap_or_default(),
                    pool.spec.node_pool_ref.name
                );
                node_pool.as_deref() == Some(&own)
            };
            pools.iter().filter(serves).map(|pool| Key::of(pool.as_ref())).collect::<Vec<_>>()
        };
        let in_namespace = move |change: &Change<DynamicObject>| {
            pools_by_namespace.keys(&change.object.namespace().unwrap_or_default())
        };

        let machine_keys = agent_machines.index(|object: &DynamicObject| object.namespace());
        let demand = needs_all(
            manager.controller("agentmachine", &agent_machines, settings(4)),
            &infra_envs,
        )
        .needs(&machines)
        .needs(&agents)
        // Its end, and a pool that came, let a machine be looked at again.
        .related(&vsphere_agents, {
            let pools = pools.store();
            move |change: &Change<VsphereAgent>| {
                let namespace = change.object.namespace().unwrap_or_default();
                let pool = pools.get(&Key::new(&namespace, &change.object.spec.pool_ref.name));
                let machine = change.object.agent_machine();
                let key = |(pool, machine): (Arc<VsphereAgentPool>, String)| {
                    Key::new(&pool.spec.control_plane_namespace, &machine)
                };
                pool.zip(machine).map(key).into_iter().collect()
            }
        })
        .related(&pools, move |change: &Change<VsphereAgentPool>| {
            machine_keys.keys(&change.object.spec.control_plane_namespace)
        });
        demand.reconcile(Arc::new(DemandReconciler { world: Arc::clone(&world) }));

        let vm = needs_all(
            manager.controller("vsphereagent", &vsphere_agents, settings(4)),
            &infra_envs,
        )
        .needs(&agents)
        .needs(&machines)
        .related(&pools, {
            let agents_of_pool = agents_of_pool.clone();
            move |change: &Change<VsphereAgentPool>| {
                agents_of_pool.keys(&Key::of(change.object.as_ref()).to_string())
            }
        })
        .related(&agent_machines, {
            let (pools, agents) = (of_node_pool.clone(), agents_of_pool.clone());
            move |change: &Change<DynamicObject>| {
                let name = change.object.name_any();
                let of_pools = pools(change).into_iter();
                let all = of_pools.flat_map(|pool| agents.objects(&pool.to_string()));
                all.filter(|agent| agent.is_for(&name)).map(|it| Key::of(it.as_ref())).collect()
            }
        });
        *crate::control::lock(&world.vm_trigger) = Some(vm.trigger());
        vm.reconcile(Arc::new(VmReconciler { world: Arc::clone(&world) }));

        let pool = manager
            .controller("vsphereagentpool", &pools, settings(4))
            .related(&vsphere_agents, |change: &Change<VsphereAgent>| {
                pool_keys(&change.object)
                    .into_iter()
                    .filter_map(|key| {
                        let (namespace, name) = key.split_once('/')?;
                        Some(Key::new(namespace, name))
                    })
                    .collect()
            })
            .related(&agent_machines, of_node_pool.clone())
            .related(&machines, of_node_pool)
            .related(&agents, in_namespace.clone())
            .related(&infra_envs, in_namespace);
        *crate::control::lock(&world.pool_trigger) = Some(pool.trigger());
        pool.reconcile(Arc::new(PoolReconciler { world: Arc::clone(&world) }));
        Self { manager, world }
    }

    /// Whether everything is seen and passes run.
    pub fn status(&self) -> Status {
        self.manager.status()
    }

    /// What the house shows of it. Looks on for as long as it is held.
    pub fn door(&self) -> ForgeDoor {
        ForgeDoor::new(Arc::clone(&self.world), self.manager.status())
    }

    /// The vCenters that are open.
    pub fn sites(&self) -> Sites {
        self.world.sites.clone()
    }

    /// Looks on until `shutdown`: pools and AgentMachines are shown, no vCenter is opened, and nothing is changed.
    pub async fn observe(self, shutdown: impl Future<Output = ()> + Send) {
        self.manager.observe(shutdown).await;
    }

    /// From here on a pool may log in with a Secret of another namespace only if that Secret's annotation names the pool's.
    pub fn require_consent_for_secrets(&self) {
        self.world.needs_consent.store(true, Ordering::Relaxed);
    }

    /// Until `shutdown`. VMs go on running; the next start takes them up again.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        let Self { manager, world } = self;
        let abandon = Abandon(Arc::clone(&world));
        manager.run(shutdown).await;
        world.vm_jobs.abandon();
        world.pool_jobs.abandon();
        world.sites.shut_down().await;
        drop(abandon);
    }
}

/// Whoever drops a door that runs wants nothing of it to go on.
struct Abandon(Arc<World>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn settings(workers: usize) -> ControllerSettings {
    ControllerSettings { workers, ..ControllerSettings::default() }
}

fn needs_all<'a, K: Object>(
    controller: Controller<'a, K>,
    infra_envs: &roost_controller::Watch<DynamicObject>,
) -> Controller<'a, K> {
    controller.needs(infra_envs)
}

/// `namespace/pool` of each pool that a VsphereAgent is of, by its spec or its label.
fn pool_keys(agent: &VsphereAgent) -> Vec<String> {
    let namespace = agent.namespace().unwrap_or_default();
    let by_spec = Some(&agent.spec.pool_ref.name);
    let by_label = agent.labels().get(crate::api::names::POOL_LABEL);
    let mut names: Vec<&String> =
        by_spec.into_iter().chain(by_label).filter(|name| !name.is_empty()).collect();
    names.dedup();
    names.into_iter().map(|name| format!("{namespace}/{name}")).collect()
}

/// Ends with the mirror and with the world. What changes in a vCenter calls the VsphereAgents and pools that it concerns, at once.
fn follow_vms(world: &Arc<World>, site: &Site, by_uid: roost_controller::Index<VsphereAgent>) {
    let (world, fleet) = (Arc::downgrade(world), site.fleet.clone());
    let mirror = fleet.mirror().clone();
    tokio::spawn(async move {
        let mut changes = mirror.changes();
        let mut before = mirror.snapshot();
        let mut was_complete = mirror.freshness().complete;
        let mut stream = mirror.stream();
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                changed = stream.changed() => if changed.is_err() { return },
            }
            let Some(world) = world.upgrade() else { return };
            observe(&fleet);
            let now = mirror.snapshot();
            let is_complete = mirror.freshness().complete;
            if is_complete && !was_complete {
                world.wake_all();
            }
            was_complete = is_complete;
            for change in now.since(&before) {
                let row = match change {
                    VmChange::Shown(vm) => Some(vm),
                    VmChange::Gone(id) => before.vm(id),
                };
                let claim =
                    row.and_then(|vm| vm.claim.as_ref()).filter(|claim| claim.door == FORGE);
                let Some(uid) = claim.and_then(|claim| claim.request.as_deref()) else { continue };
                by_uid.keys(uid).into_iter().for_each(|key| world.wake_vm(key));
            }
            before = now;
        }
    });
}
