//! Folders, pools, networks, datastores and hosts by name. What was found is kept: nothing here is asked twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roost_fleet::{DiskPlace, Fleet};
use roost_vim::wire::types::{
    ObjectSpec, PropertyFilterSpec, PropertySpec, TaskInfo, VirtualDevice, VirtualHardware,
};
use roost_vim::wire::{Element, MoRef, MoType, Value};
use roost_vim::{
    CallError, FindError, Finder, Found, NetworkBacking, NetworkError, PolicyError, VmError,
};
use tokio::sync::OnceCell;

use super::settings::{ProviderSettings, Zone};

/// Why a place could not be found or made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error("finding {what}")]
    Find { what: String, source: FindError },
    #[error("making {what}")]
    Make { what: String, source: VmError },
    #[error("network {name}")]
    Network { name: String, source: NetworkError },
    #[error("reading {what}")]
    Read { what: String, source: CallError },
    #[error("storage policy {id}")]
    Policy { id: String, source: PolicyError },
    #[error("library item {item}")]
    Library { item: String, source: roost_vim::RestError },
    #[error("library item {0} has no ISO image")]
    NoIso(String),
    #[error("there is no zone {0}")]
    NoZone(String),
    #[error("no datastore fits storage policy {0}")]
    NoDatastore(String),
}

/// Where the VMs of a namespace are in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) zone: String,
    pub(crate) folder: MoRef,
    pub(crate) pool: MoRef,
    /// The zone's own, for VMs whose storage class says nothing.
    pub(crate) datastore: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Places {
    fleet: Fleet,
    settings: Arc<ProviderSettings>,
    finder: OnceCell<Finder>,
    known: Mutex<Known>,
    /// One makes, the others wait: two would both be told that there is none.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    places: BTreeMap<(String, String), Arc<Place>>,
    folders: BTreeMap<String, MoRef>,
    pools: BTreeMap<String, MoRef>,
    networks: BTreeMap<String, Arc<NetworkBacking>>,
    datastores: BTreeMap<String, MoRef>,
    hosts: BTreeMap<String, Arc<str>>,
    clocks: BTreeMap<String, i64>,
    clusters: BTreeMap<String, MoRef>,
    disk_places: BTreeMap<String, Arc<DiskPlace>>,
    isos: BTreeMap<String, String>,
}

impl Places {
    pub(crate) fn new(fleet: Fleet, settings: Arc<ProviderSettings>) -> Self {
        Self {
            fleet,
            settings,
            finder: OnceCell::new(),
            known: Mutex::default(),
            making: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn finder(&self) -> Result<&Finder, PlaceError> {
        let datacenter = &self.settings.datacenter;
        let finding = || async { self.fleet.observer().finder(datacenter).await };
        self.finder
            .get_or_try_init(finding)
            .await
            .map_err(|source| PlaceError::Find { what: format!("datacenter {datacenter}"), source })
    }

    pub(crate) fn zones(&self) -> &[Zone] {
        &self.settings.zones
    }

    /// Where a namespace's VMs are in a zone. Folder and pool are made if they are not there.
    pub(crate) async fn of(&self, namespace: &str, zone: &str) -> Result<Arc<Place>, PlaceError> {
        let key = (namespace.to_owned(), zone.to_owned());
        if let Some(place) = self.known().places.get(&key) {
            return Ok(Arc::clone(place));
        }
        let wanted = self.zones().iter().find(|known| known.name == zone);
        let wanted = wanted.ok_or_else(|| PlaceError::NoZone(zone.to_owned()))?;
        let _alone = self.making.lock().await;
        let folder = self.folder_of(namespace).await?;
        let pool = self.pool_of(namespace, wanted).await?;
        let place = Arc::new(Place {
            zone: zone.to_owned(),
            folder,
            pool,
            datastore: wanted.datastore.clone(),
        });
        self.known().places.insert(key, Arc::clone(&place));
        Ok(place)
    }

    /// The place, if it has been asked for since the start.
    pub(crate) fn known_place(&self, namespace: &str, zone: &str) -> Option<Arc<Place>> {
        self.known().places.get(&(namespace.to_owned(), zone.to_owned())).cloned()
    }

    async fn folder_of(&self, namespace: &str) -> Result<MoRef, PlaceError> {
        if let Some(folder) = self.known().folders.get(namespace) {
            return Ok(folder.clone());
        }
        let base = &self.settings.folder;
        let what = format!("folder {base}");
        let found = self.finder().await?.vm_folder(base).await;
        let mut folder = found.map_err(|source| PlaceError::Find { what, source })?.moref;
        if self.settings.per_namespace {
            let what = format!("folder {namespace}");
            folder = self
                .child(&folder, namespace, what, async |parent| {
                    self.fleet.client().ensure_folder(parent, namespace).await
                })
                .await?;
        }
        self.known().folders.insert(namespace.to_owned(), folder.clone());
        Ok(folder)
    }

    async fn pool_of(&self, namespace: &str, zone: &Zone) -> Result<MoRef, PlaceError> {
        let wanted = &zone.resource_pool;
        let known = self.known().pools.get(wanted).cloned();
        let base = if let Some(known) = known {
            known
        } else {
            let what = format!("resource pool {wanted}");
            let found = self.finder().await?.resource_pool(wanted).await;
            let found = found.map_err(|source| PlaceError::Find { what, source })?.moref;
            self.known().pools.insert(wanted.clone(), found.clone());
            found
        };
        if !self.settings.per_namespace {
            return Ok(base);
        }
        let what = format!("resource pool {namespace}");
        self.child(&base, namespace, what, async |parent| {
            let spec = roost_vim::unlimited_pool();
            self.fleet.client().ensure_resource_pool(parent, namespace, spec).await
        })
        .await
    }

    async fn child(
        &self,
        parent: &MoRef,
        name: &str,
        what: String,
        make: impl AsyncFnOnce(&MoRef) -> Result<MoRef, VmError>,
    ) -> Result<MoRef, PlaceError> {
        // Most of the time it is there; a look leaves no failed task behind.
        let found = self.fleet.observer().child_named(parent, name).await;
        match found {
            Ok(Some(found)) => Ok(found),
            Ok(None) => make(parent).await.map_err(|source| PlaceError::Make { what, source }),
            Err(source) => Err(PlaceError::Read { what, source }),
        }
    }

    /// A folder or pool below a place, as a resource policy names it.
    pub(crate) async fn child_folder(&self, of: &Place, name: &str) -> Result<MoRef, PlaceError> {
        self.child(&of.folder, name, format!("folder {name}"), async |parent| {
            self.fleet.client().ensure_folder(parent, name).await
        })
        .await
    }

    pub(crate) async fn child_pool(&self, of: &Place, name: &str) -> Result<MoRef, PlaceError> {
        self.child(&of.pool, name, format!("resource pool {name}"), async |parent| {
            let spec = roost_vim::unlimited_pool();
            self.fleet.client().ensure_resource_pool(parent, name, spec).await
        })
        .await
    }

    /// What a card needs to be put on a network, by the network's name or path.
    pub(crate) async fn network(&self, name: &str) -> Result<Arc<NetworkBacking>, PlaceError> {
        let name = if name.is_empty() { self.settings.network.as_str() } else { name };
        if let Some(known) = self.known().networks.get(name) {
            return Ok(Arc::clone(known));
        }
        let found = self.finder().await?.network(name).await;
        let found =
            found.map_err(|source| PlaceError::Find { what: format!("network {name}"), source })?;
        let backing = self.fleet.observer().network_backing(&found.moref).await;
        let backing =
            backing.map_err(|source| PlaceError::Network { name: name.to_owned(), source })?;
        let backing = Arc::new(backing);
        self.known().networks.insert(name.to_owned(), Arc::clone(&backing));
        Ok(backing)
    }

    pub(crate) async fn datastore(&self, name: &str) -> Result<MoRef, PlaceError> {
        if let Some(known) = self.known().datastores.get(name) {
            return Ok(known.clone());
        }
        let found = self.finder().await?.datastore(name).await;
        let what = format!("datastore {name}");
        let found = found.map_err(|source| PlaceError::Find { what, source })?.moref;
        self.known().datastores.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// The datastore for a VM whose image is at these already: the one with the most room among those that fit the policy, unless one that has the image has at
    /// least half of that. So VMs stay together where their image is, and spread when it gets tight there.
    pub(crate) async fn near_image(
        &self,
        policy: &str,
        has_image: &[String],
    ) -> Result<(MoRef, String), PlaceError> {
        let fitting = self.fleet.observer().compatible_datastores(policy).await;
        let fitting =
            fitting.map_err(|source| PlaceError::Policy { id: policy.to_owned(), source })?;
        let rows = self.free_space(&fitting).await?;
        let most = rows.first().map_or(0, |(free, _, _)| *free);
        let near = rows.iter().find(|(free, moref, _)| {
            has_image.iter().any(|id| **id == *moref.id) && free.saturating_mul(2) >= most
        });
        let best = near.or(rows.first()).cloned();
        let best = best.ok_or_else(|| PlaceError::NoDatastore(policy.to_owned()))?;
        Ok((best.1, best.2))
    }

    /// Where disks and directories of a datastore are changed.
    pub(crate) async fn disk_place(&self, datastore: &MoRef) -> Result<Arc<DiskPlace>, PlaceError> {
        if let Some(known) = self.known().disk_places.get(&*datastore.id) {
            return Ok(Arc::clone(known));
        }
        let read = self.fleet.observer().properties(datastore, &["name", "capability"]).await;
        let what = format!("datastore {datastore}");
        let read = read.map_err(|source| PlaceError::Read { what, source })?;
        let name = read.str("name").unwrap_or_default().to_owned();
        let makes_directories = match read.get("capability") {
            Some(Value::Other(of)) => {
                of.text_of("topLevelDirectoryCreateSupported") != Some("false")
            }
            _ => true,
        };
        let place = Arc::new(DiskPlace {
            datacenter: self.finder().await?.datacenter().clone(),
            datastore: Found { path: String::new(), name, moref: datastore.clone() },
            names_directories: !makes_directories,
        });
        self.known().disk_places.insert(datastore.id.to_string(), Arc::clone(&place));
        Ok(place)
    }

    /// The datacenter that all VMs are in.
    pub(crate) async fn datacenter(&self) -> Result<MoRef, PlaceError> {
        Ok(self.finder().await?.datacenter().moref.clone())
    }

    /// The folder and the pool above those of namespaces, in the first zone, with the datastore that is usual there.
    pub(crate) async fn base(&self) -> Result<(MoRef, MoRef, Option<String>), PlaceError> {
        let zone = self.zones().first().ok_or_else(|| PlaceError::NoZone(String::new()))?;
        let folder = &self.settings.folder;
        let what = format!("folder {folder}");
        let found = self.finder().await?.vm_folder(folder).await;
        let folder = found.map_err(|source| PlaceError::Find { what, source })?.moref;
        let what = format!("resource pool {}", zone.resource_pool);
        let found = self.finder().await?.resource_pool(&zone.resource_pool).await;
        let pool = found.map_err(|source| PlaceError::Find { what, source })?.moref;
        Ok((folder, pool, zone.datastore.clone()))
    }

    /// VMs that have a file below a directory of a datastore, as vCenter itself knows it: of any door, of anybody, with all disks below disks and below snapshots.
    pub(crate) async fn users_of(
        &self,
        datastore: &MoRef,
        directory: &str,
    ) -> Result<Vec<String>, PlaceError> {
        let read = self.fleet.observer().properties(datastore, &["vm"]).await;
        let what = format!("datastore {datastore}");
        let vms = read.map_err(|source| PlaceError::Read { what, source })?.refs("vm");
        let paths = ["name", "config.hardware", "layoutEx"];
        let rows = self.read_all(MoType::VirtualMachine, &vms, &paths).await?;
        let below = format!("{directory}/");
        let uses = |(_, read): &&(MoRef, roost_vim::Properties)| {
            let hardware = read.data::<VirtualHardware>("config.hardware");
            let devices = hardware.into_iter().flat_map(|of| &of.device);
            let is_below =
                |file: &Element| file.text_of("name").is_some_and(|name| name.starts_with(&below));
            let lists = match read.get("layoutEx") {
                Some(Value::Other(layout)) => layout.children_named("file").any(is_below),
                _ => false,
            };
            devices.into_iter().any(|device| stands_on(device, &below))
                || lists
                // Of a VM that cannot be read nobody knows what it stands on.
                || hardware.is_none()
        };
        let name = |(moref, read): &(MoRef, roost_vim::Properties)| {
            read.str("name").map_or_else(|| moref.id.to_string(), str::to_owned)
        };
        Ok(rows.iter().filter(uses).map(name).collect())
    }

    /// The datastore with the most room among those that fit a policy, with its name.
    pub(crate) async fn roomiest(&self, policy: &str) -> Result<(MoRef, String), PlaceError> {
        let fitting = self.fleet.observer().compatible_datastores(policy).await;
        let fitting =
            fitting.map_err(|source| PlaceError::Policy { id: policy.to_owned(), source })?;
        self.most_free(&fitting).await?.ok_or_else(|| PlaceError::NoDatastore(policy.to_owned()))
    }

    async fn most_free(&self, among: &[MoRef]) -> Result<Option<(MoRef, String)>, PlaceError> {
        let best = self.free_space(among).await?.into_iter().next();
        Ok(best.map(|(_, moref, name)| (moref, name)))
    }

    /// What is free on those that can be reached, most first; by name where two have the same room, so that the choice can be repeated.
    async fn free_space(&self, among: &[MoRef]) -> Result<Vec<(i64, MoRef, String)>, PlaceError> {
        let paths = ["name", "summary.freeSpace", "summary.accessible"];
        let rows = self.read_all(MoType::Datastore, among, &paths).await?;
        let there =
            rows.into_iter().filter(|(_, read)| read.bool("summary.accessible") != Some(false));
        let row = |(moref, read): (MoRef, roost_vim::Properties)| {
            let free = read.i64("summary.freeSpace").unwrap_or_default();
            (free, moref, read.str("name").unwrap_or_default().to_owned())
        };
        let mut all: Vec<(i64, MoRef, String)> = there.map(row).collect();
        all.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.2.cmp(&other.2)));
        Ok(all)
    }

    async fn read_all(
        &self,
        kind: MoType,
        objects: &[MoRef],
        paths: &[&str],
    ) -> Result<Vec<(MoRef, roost_vim::Properties)>, PlaceError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let spec = PropertyFilterSpec {
            prop_set: vec![PropertySpec::new(kind.as_str(), paths)],
            object_set: objects
                .iter()
                .map(|object| ObjectSpec { obj: object.clone(), ..ObjectSpec::default() })
                .collect(),
            ..PropertyFilterSpec::default()
        };
        let read = self.fleet.observer().retrieve(spec).await;
        let what = kind.as_str().to_owned();
        let read = read.map_err(|source| PlaceError::Read { what, source })?;
        Ok(read.into_iter().map(|object| (object.obj.clone(), object.into())).collect())
    }

    /// What vCenter works at, or has lately.
    pub(crate) async fn recent_tasks(&self) -> Result<Vec<TaskInfo>, PlaceError> {
        let observer = self.fleet.observer();
        let Some(manager) = observer.content().task_manager.clone() else { return Ok(Vec::new()) };
        let read = observer.properties(&manager, &["recentTask"]).await;
        let what = "tasks".to_owned();
        let tasks = read.map_err(|source| PlaceError::Read { what, source })?.refs("recentTask");
        let rows = self.read_all(MoType::Task, &tasks, &["info"]).await?;
        let info =
            |(_, read): &(MoRef, roost_vim::Properties)| read.data::<TaskInfo>("info").cloned();
        Ok(rows.iter().filter_map(info).collect())
    }

    /// Whether the server works at any of these.
    pub(crate) async fn is_any_running(&self, tasks: &[MoRef]) -> Result<bool, PlaceError> {
        let rows = self.read_all(MoType::Task, tasks, &["info.state"]).await?;
        let is_running = |(_, read): &(MoRef, roost_vim::Properties)| {
            matches!(read.str("info.state"), Some("running" | "queued"))
        };
        Ok(rows.iter().any(is_running))
    }

    /// The name of a host; read once per host.
    pub(crate) async fn host_name(&self, id: &str) -> Option<Arc<str>> {
        if let Some(known) = self.known().hosts.get(id) {
            return Some(Arc::clone(known));
        }
        let host = MoRef::new(MoType::HostSystem, id);
        let read = self.fleet.observer().properties(&host, &["name"]).await.ok()?;
        let name: Arc<str> = read.str("name")?.into();
        self.known().hosts.insert(id.to_owned(), Arc::clone(&name));
        Some(name)
    }

    /// The compute resource of a pool.
    pub(crate) async fn cluster_of(&self, pool: &MoRef) -> Result<MoRef, PlaceError> {
        if let Some(known) = self.known().clusters.get(&*pool.id) {
            return Ok(known.clone());
        }
        let what = format!("resource pool {pool}");
        let read = self.fleet.observer().properties(pool, &["owner"]).await;
        let read = read.map_err(|source| PlaceError::Read { what, source })?;
        let owner = read.moref("owner").cloned().unwrap_or_else(|| pool.clone());
        self.known().clusters.insert(pool.id.to_string(), owner.clone());
        Ok(owner)
    }

    /// The slowest clock among the hosts of the pool's cluster, in MHz: what one CPU of a reservation is worth there.
    pub(crate) async fn clock_of(&self, pool: &MoRef) -> Result<i64, PlaceError> {
        let cluster = self.cluster_of(pool).await?;
        if let Some(known) = self.known().clocks.get(&*cluster.id) {
            return Ok(*known);
        }
        let what = format!("cluster {cluster}");
        let read = self.fleet.observer().properties(&cluster, &["host"]).await;
        let hosts = read.map_err(|source| PlaceError::Read { what, source })?.refs("host");
        let rows = self.read_all(MoType::HostSystem, &hosts, &["summary.hardware.cpuMhz"]).await?;
        let clocks = rows.iter().filter_map(|(_, read)| read.i64("summary.hardware.cpuMhz"));
        let slowest = clocks.filter(|mhz| *mhz > 0).min().unwrap_or(1_000);
        self.known().clocks.insert(cluster.id.to_string(), slowest);
        Ok(slowest)
    }

    /// The image of a library item, as a datastore path.
    pub(crate) async fn iso_file(&self, item: &str) -> Result<String, PlaceError> {
        if let Some(known) = self.known().isos.get(item) {
            return Ok(known.clone());
        }
        let failed = |source| PlaceError::Library { item: item.to_owned(), source };
        let files = self.fleet.observer().item_storage(item).await.map_err(failed)?;
        let is_iso = |name: &str| name.to_ascii_lowercase().ends_with(".iso");
        let file = files.into_iter().find(|file| is_iso(&file.name));
        let file = file.ok_or_else(|| PlaceError::NoIso(item.to_owned()))?;
        let path = file.uris.first().and_then(|uri| super::iso::path_of_uri(uri));
        let (Some(path), Some(datastore)) = (path, &file.datastore) else {
            return Err(PlaceError::NoIso(item.to_owned()));
        };
        let read = self.fleet.observer().properties(datastore, &["name"]).await;
        let what = format!("datastore {datastore}");
        let read = read.map_err(|source| PlaceError::Read { what, source })?;
        let file = format!("[{}] {path}", read.str("name").unwrap_or_default());
        self.known().isos.insert(item.to_owned(), file.clone());
        Ok(file)
    }

    /// The zone that a pool is in: one of the namespace's, or a child of it.
    pub(crate) fn zone_of(&self, namespace: &str, pool: &str) -> Option<String> {
        let known = self.known();
        let of_namespace = known.places.iter().filter(|((own, _), _)| own == namespace);
        let mut found = of_namespace.filter(|(_, place)| *place.pool.id == *pool);
        found.next().map(|(_, place)| place.zone.clone())
    }
}

/// Whether a disk, or one of those below it, is below a directory.
pub(crate) fn stands_on(device: &VirtualDevice, below: &str) -> bool {
    let mut link = device.backing.as_ref();
    while let Some(backing) = link {
        if backing.file_name.as_deref().is_some_and(|name| name.starts_with(below)) {
            return true;
        }
        link = backing.parent.as_deref();
    }
    false
}

/// What is behind a card on this network.
pub(crate) fn card_backing(
    network: &NetworkBacking,
) -> Option<roost_vim::wire::types::VirtualDeviceBackingInfo> {
    roost_vim::move_nic(&VirtualDevice::of("VirtualVmxnet3"), network).device.backing
}
