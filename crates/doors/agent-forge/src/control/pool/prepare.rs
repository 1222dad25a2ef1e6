//! What a place needs before VMs can be made there: everything that the pool names, and the ISO.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use roost_controller::Key;
use roost_supervise::Chain;
use roost_vim::{Datastore, TransferProgress};
use tokio::sync::watch;

use crate::api::{IsoStatus, Phase, PoolDefaults};
use crate::control::region::Region;
use crate::control::world::{Known, World, lock};
use crate::iso::{Due, RefreshInput, Refreshed, after_refresh, due, stale_paths};
use crate::metrics::{Operation, Outcome};
use crate::names::hex_digest;
use crate::vcenter::{Place, Site, place};

/// What one round came to.
#[derive(Debug)]
pub(crate) struct PoolWork {
    pub(super) place: Result<(), String>,
    pub(super) iso: IsoWork,
    pub(super) at: Timestamp,
}

#[derive(Debug)]
pub(super) enum IsoWork {
    NotLooked,
    Found { status: IsoStatus, uploaded: bool, not_pruned: Vec<String> },
    Failed { reason: &'static str, why: String },
}

impl PoolWork {
    pub(super) fn is_failed(&self) -> bool {
        self.place.is_err() || matches!(self.iso, IsoWork::Failed { .. })
    }
}

/// Starts a round if something is to be looked at and none runs.
pub(super) fn start(world: &Arc<World>, site: &Site, region: &Region, url: Option<String>) {
    let key = region.key();
    let now = world.now();
    let is_lost = lock(&world.lost_isos).contains(&key);
    let is_due = |url: &str| is_lost || due(&region.pool, url, now) == Due::Now;
    let url = url.filter(|url| region.takes_vms() && is_due(url));
    if world.place_of(region).is_some() && url.is_none() {
        return;
    }
    let on = (Arc::clone(world), site.clone(), region.clone());
    world.pool_jobs.start(
        key.clone(),
        async move {
            let (world, site, region) = on;
            run(&world, &site, &region, url).await
        },
        {
            let world = Arc::clone(world);
            move || {
                let (pool, _) = key;
                for agent in world.agents_of_pool.keys(&pool.to_string()) {
                    world.wake_vm(agent);
                }
                world.wake_pool(pool);
            }
        },
    );
}

async fn run(world: &Arc<World>, site: &Site, region: &Region, url: Option<String>) -> PoolWork {
    let known = match world.place_of(region) {
        Some(known) => Ok(known.place),
        None => find(world, site, region).await,
    };
    let (place, iso) = match (known, url) {
        (Err(why), _) => (Err(why), IsoWork::NotLooked),
        (Ok(_), None) => (Ok(()), IsoWork::NotLooked),
        (Ok(place), Some(url)) => {
            let (progress, seen) = watch::channel(TransferProgress::default());
            lock(&world.arrivals).insert(region.key(), seen);
            let iso = look(world, site, region, &place, &url, &progress).await;
            lock(&world.arrivals).remove(&region.key());
            (Ok(()), iso)
        }
    };
    PoolWork { place, iso, at: world.now() }
}

async fn find(world: &Arc<World>, site: &Site, region: &Region) -> Result<Arc<Place>, String> {
    let pool = &region.pool;
    let found = place(&site.fleet, pool).await.map_err(|error| Chain(&error).to_string())?;
    site.cover(&found.datacenter.moref);
    let known = Known {
        place: Arc::new(found),
        made_from: pool.spec.vsphere.clone(),
        folder: pool.folder().to_owned(),
        since: world.now(),
    };
    let place = Arc::clone(&known.place);
    lock(&world.places).insert(region.key(), known);
    Ok(place)
}

async fn look(
    world: &Arc<World>,
    site: &Site,
    region: &Region,
    place: &Place,
    url: &str,
    progress: &watch::Sender<TransferProgress>,
) -> IsoWork {
    let pool = &region.pool;
    let failed = |reason, why| {
        world.metrics.iso(Operation::Ensure, Outcome::Error);
        IsoWork::Failed { reason, why }
    };
    let files = site.fleet.client().datastore(&place.datacenter, &place.iso_datastore).await;
    let files = match files {
        Ok(files) => files,
        Err(error) => return failed("DatastoreUnavailable", Chain(&error).to_string()),
    };
    let before = pool.status.iso.clone().unwrap_or_default();
    let prefix = pool.iso_prefix();
    let is_here = before.path.starts_with(&format!("{prefix}/")) && !before.sha256.is_empty();
    let size = before.size_bytes.and_then(|size| size.try_into().ok()).unwrap_or_default();
    let token = pool.force_refresh_token();
    let (key, domain) = region.key();
    let own = hex_digest(format!("{key}/{domain}").as_bytes());
    let input = RefreshInput {
        url: url.to_owned(),
        prefix,
        arriving: format!("arriving-{}.iso", &own[..10]),
        known: is_here.then(|| (before.path.clone(), before.sha256.clone(), size)),
        forced: !token.is_empty() && token != before.force_refresh_token,
        authorities: pool.spec.iso.as_ref().and_then(|iso| iso.ca_bundle.clone()),
    };
    let found: Refreshed = match world.iso.refresh(&input, &files, progress).await {
        Ok(found) => found,
        Err(error) => return failed(error.reason(), Chain(&error).to_string()),
    };
    lock(&world.lost_isos).remove(&region.key());
    world.metrics.iso(Operation::Ensure, Outcome::Success);
    let mut status = after_refresh(pool, url, &found, world.now());
    let not_pruned = prune(world, region, &files, &before, &mut status).await;
    tracing::info!(pool = %pool.name_any(), path = found.path, uploaded = found.uploaded, "ISO {} of pool {}", found.path, pool.name_any());
    IsoWork::Found { status, uploaded: found.uploaded, not_pruned }
}

/// Deletes what is not kept. What is still needed, or cannot be deleted, stays in the status and is tried again at the next look. Returns why.
async fn prune(
    world: &Arc<World>,
    region: &Region,
    files: &Datastore,
    before: &IsoStatus,
    after: &mut IsoStatus,
) -> Vec<String> {
    let agents = world.vsphere_agents_of(&region.pool);
    // A VM that has not been installed yet may boot its ISO again, and one that was made before paths were recorded does not say which.
    let may_boot_any = agents.iter().any(|agent| {
        agent.status.iso_path.is_empty()
            && agent.recorded().is_none_or(|vm| vm.phase == Some(Phase::Provisioning))
    });
    let mounted: BTreeSet<&str> =
        agents.iter().map(|agent| agent.status.iso_path.as_str()).collect();
    let of_others = paths_of_others(world, region);
    let mut not_pruned = Vec::new();
    after.stale.clear();
    for path in stale_paths(before, after) {
        if may_boot_any || mounted.contains(path.as_str()) || of_others.contains(&path) {
            after.stale.push(path);
            continue;
        }
        let deleted = files.delete(&files.path(&path)).await;
        world.metrics.iso(Operation::Delete, Outcome::of(deleted.is_ok()));
        if let Err(error) = deleted {
            not_pruned.push(format!("{path}: {}", Chain(&error)));
            after.stale.push(path);
        }
    }
    not_pruned
}

/// What other pools and failure domains keep: they may share a directory on one datastore.
fn paths_of_others(world: &World, region: &Region) -> BTreeSet<String> {
    let (own, domain) = region.key();
    paths_kept(world, |pool, name| !(*pool == own && name == domain))
}

/// What the places for which `counts` holds keep.
pub(super) fn paths_kept(world: &World, counts: impl Fn(&Key, &str) -> bool) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for pool in world.pools.objects() {
        let key = Key::of(pool.as_ref());
        let whole = pool.status.iso.as_ref().map(|iso| ("", iso));
        let domains = pool.status.failure_domains.iter();
        let domains = domains.filter_map(|it| Some((it.name.as_str(), it.iso.as_ref()?)));
        let names = pool.domain_names();
        for (name, iso) in whole.into_iter().chain(domains) {
            if names.contains(&name) && counts(&key, name) {
                paths.extend(iso.history.iter().map(|version| version.path.clone()));
                paths.insert(iso.path.clone());
            }
        }
    }
    paths
}
