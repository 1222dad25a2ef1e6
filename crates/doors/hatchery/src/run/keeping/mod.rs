//! Keeps as many spares as the pools ask for: makes what is missing, finishes what an earlier process left half-made, takes away what is too much.
//!
//! ```text
//!   inventory, scheduler, models ──> spares::plan (pure) ──> reserve ──┬─> make    clone, boot, shut down
//!                                                                      ├─> finish          boot, shut down
//!                                                                      └─> remove  mark; the clean-up deletes
//! ```
//!
//! A spare is one by its name and annotation, ready when it is off. So nothing is lost with the process: a clone that nobody waits for any
//! more shows up as a spare that is on, and is finished.

mod look;
mod make;
mod source;

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::Reservation;
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

use self::look::{Work, look};
use super::context::Context;
use crate::spares::Removal;
use crate::status::task;

/// What waits for room or for a whole view is looked at again after this long. It costs no call.
const SOON: Duration = Duration::from_secs(15);

/// Looks at every claim, at every tick, and when a template has been left alone for long enough.
pub(super) async fn keep(cx: Arc<Context>, tasks: Arc<Tasks>) {
    cx.opened().await;
    loop {
        tasks.beat(task::PROVISIONING, cx.patience());
        let (work, again) = look(&cx);
        begin(&cx, &tasks, work);
        tasks.beat(task::PROVISIONING, cx.patience() + again);
        tokio::select! {
            biased;
            () = cx.signals.spares.notified() => {}
            () = sleep(again) => {}
        }
    }
}

fn begin(cx: &Arc<Context>, tasks: &Tasks, work: Work) {
    for spare in work.make {
        let cx = Arc::clone(cx);
        tasks.errand("spare", async move { make::make(&cx, spare).await });
    }
    for vm in work.finish {
        let Some(at_work) = cx.at_work(&vm) else { continue };
        let cx = Arc::clone(cx);
        tasks.errand("spare", async move { make::finish(&cx, at_work).await });
    }
    for (reservation, removal) in work.remove {
        let cx = Arc::clone(cx);
        tasks.errand("spare-removal", async move { remove(&cx, reservation, removal).await });
    }
}

/// Marks a spare for deletion. The reservation keeps jobs from claiming it meanwhile (W17).
async fn remove(cx: &Context, mut reservation: Reservation, removal: Removal) {
    let Some(vm) = reservation.spare().cloned() else { return };
    let Some(_at_work) = cx.at_work(&vm) else { return };
    reservation.submitted();
    match cx.mark(&vm, removal.as_str()).await {
        Ok(()) => cx.signals.cleanup.notify_one(),
        Err(error) => {
            tracing::warn!(%vm, "marking a spare that goes failed: {}", Chain(&error));
        }
    }
    // The VM says itself by now what it is, or it is still the spare that it was.
    reservation.release();
}
