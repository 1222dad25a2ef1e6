//! Deletes what has served, and sets CDS right about what is gone.
//!
//! ```text
//!   inventory, workers ──> retire::judge (pure) ──> guard ──> delete ──> what is owed to CDS
//! ```
//!
//! A VM is judged by what it says itself, by its power, and by what CDS knows of its worker. The guard wants it seen twice on whole and
//! fresh views of both sides and keeps deletions within their budgets; beyond them it freezes until a person has looked.

mod aftermath;
mod confirm;
mod delete;
mod deletions;
mod events;
mod fate;
mod pass;
mod set_right;

use std::sync::Arc;

use roost_fleet::{Freeze, Resume};
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

pub(super) use self::aftermath::give_back;
pub(crate) use self::deletions::Deletions;
pub(crate) use self::fate::fates;
pub(super) use self::set_right::keep_right;

use super::nest::Nest;
use crate::planted::{self, Bug};
use crate::status::task;

/// Looks at every tick, when a VM was marked, and when what was seen once can be seen again.
pub(super) async fn keep_clean(nest: Arc<Nest>, tasks: Arc<Tasks>) {
    nest.opened().await;
    let mut asks = true;
    loop {
        tasks.beat(task::CLEANUP, nest.patience());
        if planted::is(Bug::CleanupHangs) {
            return std::future::pending().await;
        }
        if asks {
            // A list that could not be read is known as such, and refuses.
            if let Err(error) = nest.read_workers().await {
                tracing::warn!("the clean-up could not read the workers: {}", Chain(&error));
            }
            nest.learn_events(&tasks).await;
            confirm::confirm_absent(&nest, &tasks).await;
        }
        let again = pass::pass(&nest, &tasks);
        tasks.beat(task::CLEANUP, nest.patience() + again);
        asks = tokio::select! {
            biased;
            () = nest.signals.cleanup.notified() => true,
            // What may go was decided already: the next one of a long row needs no new question to CDS.
            () = nest.deletions.has_room() => false,
            () = sleep(again) => true,
        };
    }
}

impl Nest {
    /// A person has looked at a freeze. Returns the one that this ends.
    pub(crate) fn resume_deletions(&self, found: Resume) -> Option<Freeze> {
        let ended = self.deletions.resume(found);
        self.metrics.own.deletion_is_frozen(false);
        self.signals.cleanup.notify_one();
        ended
    }
}
