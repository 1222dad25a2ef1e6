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
use std::time::Duration;

use roost_fleet::{Freeze, Resume};
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

pub(super) use self::aftermath::give_back;
pub(crate) use self::deletions::Deletions;
pub(crate) use self::fate::fates;
pub(super) use self::set_right::keep_right;

use super::context::Context;
use crate::planted::{self, Bug};
use crate::status::task;

/// How often it is looked whether another process of our name is still at work. It costs no call.
const STANDS_BY: Duration = Duration::from_secs(10);

/// Looks at every tick, when a VM was marked, and when what was seen once can be seen again.
pub(super) async fn keep_clean(cx: Arc<Context>, tasks: Arc<Tasks>) {
    cx.opened().await;
    let mut asks = true;
    loop {
        tasks.beat(task::CLEANUP, cx.patience());
        assert!(!planted::is(Bug::CleanupPanics), "planted");
        if planted::is(Bug::CleanupHangs) {
            return std::future::pending().await;
        }
        if cx.look_for_others().is_some() {
            tasks.beat(task::CLEANUP, cx.patience() + STANDS_BY);
            sleep(STANDS_BY).await;
            continue;
        }
        if asks {
            // A list that could not be read is known as such, and refuses.
            if let Err(error) = cx.read_workers().await {
                tracing::warn!("the clean-up could not read the workers: {}", Chain(&error));
            }
            cx.learn_events(&tasks).await;
            confirm::confirm_absent(&cx, &tasks).await;
        }
        let again = pass::pass(&cx, &tasks);
        tasks.beat(task::CLEANUP, cx.patience() + again);
        asks = tokio::select! {
            biased;
            () = cx.signals.cleanup.notified() => true,
            // What may go was decided already: the next one of a long row needs no new question to CDS.
            () = cx.deletions.has_room() => false,
            () = sleep(again) => true,
        };
    }
}

impl Context {
    /// A person has looked at a freeze. Returns the one that this ends.
    pub(crate) fn resume_deletions(&self, found: Resume) -> Option<Freeze> {
        let ended = self.deletions.resume(found);
        self.metrics.own.deletion_is_frozen(false);
        self.signals.cleanup.notify_one();
        ended
    }
}
