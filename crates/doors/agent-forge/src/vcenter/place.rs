use roost_fleet::Fleet;
use roost_vim::wire::MoRef;
use roost_vim::{FindError, Found, NetworkBacking, NetworkError, Observer, PolicyError};

use crate::api::{PoolDefaults, VsphereAgentPool};

/// Where VMs of a pool go. Read once and kept until something is not where it was.
#[derive(Debug, Clone)]
pub struct Place {
    pub datacenter: Found,
    pub folder: Found,
    pub pool: MoRef,
    /// One for each card.
    pub networks: Vec<NetworkBacking>,
    /// The id of the storage policy.
    pub policy: Option<String>,
    pub disks: Disks,
    pub iso_datastore: Found,
}

/// Where the disks go.
#[derive(Debug, Clone)]
pub enum Disks {
    /// Which of its datastores is asked anew for each VM.
    Cluster(MoRef),
    Datastore(Found),
}

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("spec.vsphere.{field}")]
    Find { field: &'static str, source: FindError },
    #[error("spec.vsphere.{field}")]
    Network { field: &'static str, source: NetworkError },
    #[error("spec.vsphere.storagePolicy")]
    Policy { source: PolicyError },
    #[error("spec.vsphere.storagePolicy: there is no storage policy {name:?}")]
    NoPolicy { name: String },
    #[error("spec.vsphere.datastore: the storage policy {policy:?} does not allow {datastore:?}")]
    NotAllowed { policy: String, datastore: String },
    #[error("spec.vsphere: one of datastoreCluster and datastore is required")]
    NoDisks,
}

/// Finds everything that a pool names. Nothing is changed; a missing one is told by its field.
pub async fn place(fleet: &Fleet, pool: &VsphereAgentPool) -> Result<Place, PlaceError> {
    let at = |field| move |source| PlaceError::Find { field, source };
    let spec = &pool.spec.vsphere;
    let observer = fleet.observer();
    let finder = observer.finder(pool.datacenter()).await.map_err(at("datacenter"))?;
    let datacenter = finder.datacenter().clone();
    // One rule for all calls: the path is below the datacenter's VM folder, however deep.
    let folder = format!("{}/vm/{}", datacenter.path, pool.folder());
    let folder = finder.vm_folder(&folder).await.map_err(at("folder"))?;
    let resource_pool =
        finder.resource_pool(&spec.resource_pool).await.map_err(at("resourcePool"))?;
    let mut networks = Vec::new();
    let more = spec.extra_networks.iter().map(|extra| ("extraNetworks", &extra.network));
    for (field, name) in [("network", &spec.network)].into_iter().chain(more) {
        let network = finder.network(name).await.map_err(at(field))?;
        let backing = observer.network_backing(&network.moref).await;
        networks.push(backing.map_err(|source| PlaceError::Network { field, source })?);
    }
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let disks = match (named(&spec.datastore_cluster), named(&spec.datastore)) {
        (Some(cluster), _) => {
            let found = finder.datastore_cluster(&cluster).await;
            Disks::Cluster(found.map_err(at("datastoreCluster"))?.moref)
        }
        (None, Some(datastore)) => {
            Disks::Datastore(finder.datastore(&datastore).await.map_err(at("datastore"))?)
        }
        (None, None) => return Err(PlaceError::NoDisks),
    };
    let policy = match named(&spec.storage_policy) {
        Some(name) => Some(find_policy(&observer, &name, &disks).await?),
        None => None,
    };
    let iso_datastore = finder.datastore(&spec.iso_datastore).await.map_err(at("isoDatastore"))?;
    let pool = resource_pool.moref;
    Ok(Place { datacenter, folder, pool, networks, policy, disks, iso_datastore })
}

/// The id of a policy. A datastore that it does not allow is told before anything is made; of a cluster the vCenter chooses one that it allows.
async fn find_policy(observer: &Observer, name: &str, disks: &Disks) -> Result<String, PlaceError> {
    let failed = |source| PlaceError::Policy { source };
    let all = observer.storage_policies().await.map_err(failed)?;
    let found = all.iter().find(|policy| policy.id == name);
    let found = found.or_else(|| all.iter().find(|policy| policy.name == name));
    let policy = found.ok_or_else(|| PlaceError::NoPolicy { name: name.to_owned() })?;
    if let Disks::Datastore(datastore) = disks {
        let allowed = observer.compatible_datastores(&policy.id).await.map_err(failed)?;
        if !allowed.contains(&datastore.moref) {
            let (policy, datastore) = (name.to_owned(), datastore.name.clone());
            return Err(PlaceError::NotAllowed { policy, datastore });
        }
    }
    Ok(policy.id.clone())
}
