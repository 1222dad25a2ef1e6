//! V1 models show what they can do before jobs match them: their template is built from the image that they name, and a worker of it registers.
//!
//! ```text
//!   models, templates ──> to_register (pure) ──> reserve ──> book ──┬─> build <model>-tmp, make it the template ──┐
//!                                                                   └─> the template is there ───────────────────┴─> register-... VM
//! ```
//!
//! The VM of a registration ends by itself, and the clean-up deletes it. A crash leaves a `-tmp` VM or a `register-` VM that says so: a template
//! that was complete is put in its place, all else is done anew.

mod carry;
mod choose;
mod error;
mod look;
mod template;

use std::sync::Arc;

use roost_fleet::VmId;
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

use super::context::Context;

use self::look::{Work, look};

/// Whether this hatchery registers models at all.
pub(super) fn is_wanted(cx: &Context) -> bool {
    let counts = &cx.config.counts;
    cx.cds.v1().is_some()
        && cx.config.models_v1
        && counts.register_interval.is_some()
        && counts.max_registering.is_some()
}

/// Looks at every interval, and when a model has changed.
pub(super) async fn keep_registered(cx: Arc<Context>, tasks: Arc<Tasks>) {
    let Some(interval) = cx.config.counts.register_interval else { return };
    cx.opened().await;
    loop {
        tasks.beat("registration", cx.patience() + interval);
        let is_held = cx.steering.spawning().is_some() || cx.look_for_others().is_some();
        let Work { begin, abandon } = if is_held { Work::default() } else { look(&cx) };
        for (vm, reason) in abandon {
            let cx = Arc::clone(&cx);
            tasks.errand("registration", async move { abandon_build(&cx, &vm, reason).await });
        }
        for registration in begin {
            let cx = Arc::clone(&cx);
            tasks.errand("registration", async move {
                Box::pin(carry::carry_out(&cx, registration)).await;
            });
        }
        tokio::select! {
            biased;
            () = cx.signals.register.notified() => {}
            () = sleep(interval) => {}
        }
    }
}

/// Gives up what nobody will finish.
async fn abandon_build(cx: &Context, vm: &VmId, reason: &'static str) {
    let Some(_at_work) = cx.at_work(vm) else { return };
    match cx.mark(vm, reason).await {
        Ok(()) => cx.signals.cleanup.notify_one(),
        Err(error) => tracing::warn!(%vm, "giving up a template's build failed: {}", Chain(&error)),
    }
}
