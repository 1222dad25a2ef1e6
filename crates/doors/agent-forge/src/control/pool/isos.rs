//! ISOs of a pool that is deleted.

use std::sync::Arc;
use std::time::Duration;

use roost_supervise::Chain;
use tokio::time::timeout;

use super::prepare::paths_kept;
use super::reconcile::PoolReconciler;
use crate::api::{PoolDefaults, VsphereAgentPool};
use crate::control::region::Region;
use crate::vcenter::{Site, SiteState, place};

/// A pool that is deleted does not wait longer for a datastore.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is left of a pool's ISOs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing, or what cannot be deleted.
    Done,
    /// The vCenter is being connected to.
    Later,
}

impl PoolReconciler {
    /// Deletes the ISOs of a pool that leaves nothing behind. What cannot be deleted is told and does not keep the pool.
    pub(super) async fn remove_isos(&self, pool: &Arc<VsphereAgentPool>) -> Left {
        if pool.retains() || pool.is_dry_run() {
            return Left::Done;
        }
        for region in Region::all(pool, &[]) {
            if region.pool.status.iso.is_none() {
                continue;
            }
            let failed = match self.world.site_of(&region).await {
                SiteState::Connecting => return Left::Later,
                SiteState::Failed { why } => Some(why),
                SiteState::Open(site) => {
                    let deleting = self.remove_isos_of(&region, &site);
                    let done = timeout(PATIENCE, deleting).await;
                    done.unwrap_or_else(|_| Err("it takes too long".to_owned())).err()
                }
            };
            if let Some(why) = failed {
                let note = region.told(&format!("ISOs stay on their datastore: {why}"));
                self.world.events.warning(pool.as_ref(), "ISOPruneFailed", &note);
            }
        }
        Left::Done
    }

    async fn remove_isos_of(&self, region: &Region, site: &Site) -> Result<(), String> {
        let Some(iso) = &region.pool.status.iso else { return Ok(()) };
        let known = if let Some(known) = self.world.place_of(region) {
            known.place
        } else {
            let found = place(&site.fleet, &region.pool).await;
            Arc::new(found.map_err(|error| Chain(&error).to_string())?)
        };
        let files = site.fleet.client().datastore(&known.datacenter, &known.iso_datastore).await;
        let files = files.map_err(|error| Chain(&error).to_string())?;
        let (own, _) = region.key();
        let of_others = paths_kept(&self.world, |pool, _| *pool != own);
        let history = iso.history.iter().map(|version| &version.path);
        let mut paths: Vec<&String> = history.chain(&iso.stale).chain([&iso.path]).collect();
        paths.sort();
        paths.dedup();
        for path in paths.into_iter().filter(|path| !path.is_empty() && !of_others.contains(*path))
        {
            let deleted = files.delete(&files.path(path)).await;
            deleted.map_err(|error| format!("{path}: {}", Chain(&error)))?;
        }
        Ok(())
    }
}
