//! The trial of linked disks at the start. Until it has shown that this vCenter keeps the disks that linked VMs stand on, disks are copied.

use std::sync::Arc;
use std::time::Duration;

use roost_controller::Status;
use roost_fleet::{LinkedTrial, MachineError};
use roost_supervise::Chain;
use roost_vim::wire::{MoRef, MoType};
use tokio::time::sleep;

use crate::api::names::extra_config;
use crate::flow::Context;
use crate::images::short_hash;
use crate::provider::PlaceError;

/// Until it is tried again, or there is a datastore to try it on.
const AGAIN: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
enum TrialError {
    #[error("finding a place for it")]
    Place(#[from] PlaceError),
    #[error("trying it")]
    Machine(#[from] MachineError),
}

/// Ends when the trial has an answer. Only the leader tries.
pub(crate) async fn run(cx: Arc<Context>, status: Status) {
    if cx.provider.settings.features.fast_deploy.is_none() {
        return;
    }
    loop {
        status.leads().await;
        match attempt(&cx).await {
            Ok(Some(true)) => {
                tracing::info!("linked disks are safe here: a disk outlives the VM on top of it");
                return cx.provider.linked.set(true);
            }
            Ok(Some(false)) => {
                tracing::warn!(
                    "this vCenter deletes a disk with the VM on top of it; disks of VMs are copied, not linked"
                );
                return cx.provider.linked.set(false);
            }
            // There is no datastore to try it on yet.
            Ok(None) => {}
            Err(error) => {
                tracing::warn!("whether linked disks are safe is not known yet: {}", Chain(&error));
            }
        }
        sleep(AGAIN).await;
    }
}

async fn attempt(cx: &Context) -> Result<Option<bool>, TrialError> {
    let places = &cx.provider.places;
    let (folder, pool, usual) = places.base().await?;
    let cached = || {
        let caches = cx.stores.caches.objects();
        let mut all = caches.iter().flat_map(|cache| &cache.spec.locations);
        all.next().map(|at| MoRef::new(MoType::Datastore, at.datastore_id.as_str()))
    };
    let datastore = match usual {
        Some(name) => Some(places.datastore(&name).await?),
        None => cached(),
    };
    let Some(datastore) = datastore else { return Ok(None) };
    let place = places.disk_place(&datastore).await?;
    // The same at every start, so that what a crash left is found; another for another installation.
    let whose = format!("{} {} {}", cx.settings.pod_namespace, cx.settings.manager_id, folder.id);
    let trial = LinkedTrial {
        name: format!("roost-linked-trial-{}", short_hash(&whose)),
        folder,
        pool,
        place: roost_fleet::DiskPlace::clone(&place),
        keep_key: extra_config::KEEP_DISKS.to_owned(),
    };
    Ok(Some(cx.provider.fleet.machines().keeps_parents(&trial).await?))
}
