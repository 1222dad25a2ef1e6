use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client, ResourceExt};
use roost_clock::Clock;
use roost_controller::{Events, Index, Key, Store, Trigger, Writer};
use roost_fleet::Guard;
use roost_supervise::Chain;
use roost_vim::TransferProgress;
use tokio::sync::watch;
use tokio::time::Instant;

use super::hold::ReadPause;
use super::jobs::Jobs;
use super::pool::PoolWork;
use super::region::{Region, RegionKey};
use super::vm::VmEnded;
use crate::api::names::ALLOWED_NAMESPACES;
use crate::api::{VsphereAgent, VsphereAgentPool};
use crate::iso::IsoCache;
use crate::metrics::Metrics;
use crate::outside::{AgentMachineView, AgentView, InfraEnvView, MachineView};
use crate::vcenter::{Login, Place, Site, SiteState, Sites};

/// For so long a login that was read is not read again: the passes of many VMs come together.
const LOGIN_LASTS: Duration = Duration::from_secs(30);

/// What all three controllers look at and work with.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) events: Events,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pools: Store<VsphereAgentPool>,
    pub(crate) pools_by_control_plane: Index<VsphereAgentPool>,
    pub(crate) vsphere_agents: Store<VsphereAgent>,
    /// By `namespace/pool`.
    pub(crate) agents_of_pool: Index<VsphereAgent>,
    pub(crate) agents_of_namespace: Index<VsphereAgent>,
    pub(crate) agent_machines: Index<DynamicObject>,
    pub(crate) agent_machine_kind: ApiResource,
    pub(crate) machines: Index<DynamicObject>,
    pub(crate) machine_kind: ApiResource,
    pub(crate) agents: Index<DynamicObject>,
    pub(crate) agent_kind: ApiResource,
    pub(crate) infra_envs: Store<DynamicObject>,
    pub(crate) sites: Sites,
    pub(crate) iso: IsoCache,
    pub(crate) metrics: Metrics,
    pub(crate) vm_jobs: Jobs<Key, VmEnded>,
    pub(crate) pool_jobs: Jobs<RegionKey, PoolWork>,
    pub(crate) places: Mutex<HashMap<RegionKey, Known>>,
    /// How far ISOs are on their way to a datastore.
    pub(crate) arrivals: Mutex<HashMap<RegionKey, watch::Receiver<TransferProgress>>>,
    /// Places whose ISO was not where its status says.
    pub(crate) lost_isos: Mutex<HashSet<RegionKey>>,
    /// Failure domains of VMs that are not recorded yet, so that VMs spread between two events.
    pub(crate) chosen: Mutex<HashMap<Key, String>>,
    pub(crate) pauses: Mutex<HashMap<Key, ReadPause>>,
    /// A login in another namespace needs the word of whoever keeps the Secret.
    pub(crate) needs_consent: AtomicBool,
    /// By owner and failure domain.
    pub(crate) guards: Mutex<HashMap<(String, String), Guard>>,
    /// By Secret and by the namespace of the pool.
    pub(crate) logins: Mutex<HashMap<(Key, String), ReadLogin>>,
    /// Names that were created and are not in the store yet, so that limits hold between two events.
    pub(crate) created: tokio::sync::Mutex<HashMap<Key, Vec<String>>>,
    pub(crate) vm_trigger: Mutex<Option<Trigger>>,
    pub(crate) pool_trigger: Mutex<Option<Trigger>>,
}

/// What a Secret said, and when.
type ReadLogin = (Result<Login, String>, Instant);

/// Whether pools of a namespace may log in with a Secret of another. Where it says nothing they may, as upstream, unless consent is needed.
pub fn may_use(secret: &Secret, namespace: &str, needs_consent: bool) -> bool {
    match secret.annotations().get(ALLOWED_NAMESPACES) {
        Some(allowed) => allowed.split(',').map(str::trim).any(|it| it == "*" || it == namespace),
        None => !needs_consent,
    }
}

/// Where a pool's VMs go, as far as it is known.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) place: Arc<Place>,
    /// The part of the spec that it was made from.
    pub(crate) made_from: crate::api::VsphereSpec,
    pub(crate) folder: String,
    /// Views that are older do not show this place.
    pub(crate) since: Timestamp,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn wake_vm(&self, key: Key) {
        if let Some(trigger) = &*lock(&self.vm_trigger) {
            trigger.signal(key);
        }
    }

    pub(crate) fn wake_pool(&self, key: Key) {
        if let Some(trigger) = &*lock(&self.pool_trigger) {
            trigger.signal(key);
        }
    }

    /// Everything is looked at: a vCenter came or went.
    pub(crate) fn wake_all(&self) {
        self.pools.keys().into_iter().for_each(|key| self.wake_pool(key));
        self.vsphere_agents.keys().into_iter().for_each(|key| self.wake_vm(key));
    }

    pub(crate) fn pool_of(&self, agent: &VsphereAgent) -> Option<Arc<VsphereAgentPool>> {
        let namespace = agent.namespace().unwrap_or_default();
        self.pools.get(&Key::new(&namespace, &agent.spec.pool_ref.name))
    }

    /// All of a pool, those that are being deleted too.
    pub(crate) fn vsphere_agents_of(&self, pool: &VsphereAgentPool) -> Vec<Arc<VsphereAgent>> {
        self.agents_of_pool.objects(&Key::of(pool).to_string())
    }

    pub(crate) fn agent_machines_of(&self, pool: &VsphereAgentPool) -> Vec<AgentMachineView> {
        let all = self.agent_machines.objects(&pool.spec.control_plane_namespace);
        let all = all.iter().map(|object| AgentMachineView::of(object));
        all.filter(|machine| machine.belongs_to(pool)).collect()
    }

    /// All of the control plane: a Machine that lost its annotation is still there.
    pub(crate) fn machines_of(&self, pool: &VsphereAgentPool) -> Vec<MachineView> {
        let all = self.machines.objects(&pool.spec.control_plane_namespace);
        all.iter().map(|object| MachineView::of(object)).collect()
    }

    pub(crate) fn agents_in(&self, namespace: &str) -> Vec<AgentView> {
        self.agents.objects(namespace).iter().map(|object| AgentView::of(object)).collect()
    }

    /// Where the ISO is, or why there is none.
    pub(crate) fn iso_url(&self, pool: &VsphereAgentPool) -> Result<String, String> {
        let namespace = pool.namespace().unwrap_or_default();
        let name = &pool.spec.infra_env_ref.name;
        let Some(found) = self.infra_envs.get(&Key::new(&namespace, name)) else {
            return Err(format!("InfraEnv {namespace}/{name} does not exist"));
        };
        let view = InfraEnvView::of(&found);
        if view.iso_url.is_empty() {
            return Err(format!("InfraEnv {namespace}/{name} has no isoDownloadURL yet"));
        }
        Ok(view.iso_url)
    }

    /// The vCenter of a place. Reads the Secret, so that a new password counts soon.
    pub(crate) async fn site_of(&self, region: &Region) -> SiteState {
        match self.login_of(&region.pool).await {
            Ok(login) => self.sites.of(&login),
            Err(why) => SiteState::Failed { why },
        }
    }

    async fn login_of(&self, pool: &VsphereAgentPool) -> Result<Login, String> {
        let spec = &pool.spec.vsphere.credentials_secret_ref;
        let own = pool.namespace().unwrap_or_default();
        let namespace = if spec.namespace.is_empty() { &own } else { &spec.namespace };
        let key = Key::new(namespace, &spec.name);
        let read_for = (key.clone(), own.clone());
        if let Some((login, at)) = lock(&self.logins).get(&read_for)
            && at.elapsed() < LOGIN_LASTS
        {
            return login.clone();
        }
        let needs_consent = self.needs_consent.load(Ordering::Relaxed);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let login = match secrets.get_opt(&spec.name).await {
            Ok(Some(secret)) if *namespace != own && !may_use(&secret, &own, needs_consent) => {
                Err(format!(
                    "Secret {key} is not for pools in namespace {own}: its annotation {ALLOWED_NAMESPACES} does not name it"
                ))
            }
            Ok(Some(secret)) => {
                Login::from_secret(&key.to_string(), &secret).map_err(|error| error.to_string())
            }
            Ok(None) => Err(format!("Secret {key} does not exist")),
            Err(error) => Err(format!("reading Secret {key}: {}", Chain(&error))),
        };
        lock(&self.logins).insert(read_for, (login.clone(), Instant::now()));
        login
    }

    /// Where VMs go, if it is known for what the pool says now.
    pub(crate) fn place_of(&self, region: &Region) -> Option<Known> {
        use crate::api::PoolDefaults;
        let (places, pool) = (lock(&self.places), &region.pool);
        let known = places.get(&region.key())?;
        let is_current = known.made_from == pool.spec.vsphere && known.folder == pool.folder();
        is_current.then(|| known.clone())
    }

    /// Whether what a site shows includes this place, whole and lately.
    pub(crate) fn shows(&self, site: &Site, region: &Region) -> bool {
        let freshness = site.fleet.mirror().freshness();
        let known = self.place_of(region);
        let as_of = freshness.as_of;
        freshness.complete && known.is_some_and(|known| as_of.is_some_and(|at| at >= known.since))
    }

    /// Percent of a pool's ISO that are on the datastore, while it is copied.
    pub(crate) fn arriving(&self, pool: &VsphereAgentPool) -> Option<u64> {
        let key = Key::of(pool);
        let arrivals = lock(&self.arrivals);
        let progress = arrivals.iter().find(|((pool, _), _)| *pool == key)?.1.borrow();
        let total = progress.total.filter(|total| *total > 0)?;
        Some(progress.moved.saturating_mul(100) / total)
    }

    /// Lets go of everything, as a crash does.
    pub(crate) fn abandon(&self) {
        self.vm_jobs.abandon();
        self.pool_jobs.abandon();
        self.sites.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_may_say_whose_pools_use_it() {
        let with = |value: Option<&str>| {
            let mut secret = Secret::default();
            let pair = value.map(|value| (ALLOWED_NAMESPACES.to_owned(), value.to_owned()));
            secret.metadata.annotations = pair.map(|pair| [pair].into());
            secret
        };
        for (annotation, by_default, with_consent) in [
            (None, true, false),
            (Some("blue, green"), true, true),
            (Some("green"), false, false),
            (Some("*"), true, true),
            (Some(""), false, false),
        ] {
            let secret = with(annotation);
            assert_eq!(may_use(&secret, "blue", false), by_default, "{annotation:?}");
            assert_eq!(may_use(&secret, "blue", true), with_consent, "{annotation:?}");
        }
    }
}
