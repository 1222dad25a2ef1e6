//! The loop that keeps the mirror as the vCenter is.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Fleet, Mirror};
use roost_supervise::{Chain, Tasks};
use roost_vim::Remedy;
use tokio::time::sleep;

use super::Stopped;
use super::lifecycle::Lifecycle;

pub(super) const INVENTORY: &str = "inventory";
const PAUSE: Duration = Duration::from_secs(10);
/// A wait for news ends after a minute, a call after less; a whole load is a row of them. Many times that is a stream that hangs.
const UNHEARD: Duration = Duration::from_mins(15);

/// Keeps the mirror as the vCenter is.
#[derive(Debug)]
pub(in crate::run) struct InventoryFollower {
    pub(in crate::run) fleet: Fleet,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
}

pub(super) async fn follow(follower: Arc<InventoryFollower>, tasks: Arc<Tasks>) {
    loop {
        let followed = tokio::select! {
            biased;
            followed = follower.fleet.follow() => followed,
            never = note_progress(&follower, &tasks) => match never {},
        };
        match followed {
            // The client was shut down.
            Ok(()) => return,
            Err(error) if error.remedy() == Remedy::GiveUp => {
                follower.lifecycle.stop(Stopped::Inventory(Chain(&error).to_string()));
                return;
            }
            Err(error) => {
                tracing::warn!("the inventory is followed again in {PAUSE:?}: {}", Chain(&error));
                sleep(PAUSE).await;
            }
        }
    }
}

/// The stream is heard at every answer of the vCenter, also at one without news, and at every call that failed.
async fn note_progress(follower: &InventoryFollower, tasks: &Tasks) -> Infallible {
    let (mut stream, mut changes) = (follower.mirror.stream(), follower.mirror.changes());
    loop {
        // What it waits for then is the vCenter, and after a refused login for as long as that takes: a restart would only lock the account.
        if stream.borrow_and_update().trouble.is_some() {
            tasks.rest(INVENTORY);
        } else {
            tasks.beat(INVENTORY, UNHEARD);
        }
        let heard = async {
            tokio::select! {
                biased;
                heard = stream.changed() => heard,
                heard = changes.changed() => heard,
            }
        };
        if heard.await.is_err() {
            return pending().await;
        }
    }
}
