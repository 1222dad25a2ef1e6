//! V1 models show what they can do before jobs match them: their template is built from the image that they name, and a worker of it registers.
//!
//! ```text
//!   models, templates ──> to_register (pure) ──> reserve at the desk ──> book ──┬─> build <model>-tmp, make it the template ──┐
//!                                                                               └─> the template is there ───────────────────┴─> register-... VM
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

use super::nest::Nest;

use self::look::{Work, look};

/// Whether this hatchery registers models at all.
pub(super) fn is_wanted(nest: &Nest) -> bool {
    let counts = &nest.config.counts;
    nest.cds.v1().is_some()
        && nest.config.models_v1
        && counts.register_interval.is_some()
        && counts.max_registering.is_some()
}

/// Looks at every interval, and when a model has changed.
pub(super) async fn keep_registered(nest: Arc<Nest>, tasks: Arc<Tasks>) {
    let Some(interval) = nest.config.counts.register_interval else { return };
    nest.opened().await;
    loop {
        tasks.beat("registration", nest.patience() + interval);
        let is_held = nest.steering.spawning().is_some();
        let Work { begin, abandon } = if is_held { Work::default() } else { look(&nest) };
        for (vm, reason) in abandon {
            let nest = Arc::clone(&nest);
            tasks.errand("registration", async move { abandon_build(&nest, &vm, reason).await });
        }
        for registration in begin {
            let nest = Arc::clone(&nest);
            tasks.errand("registration", async move {
                Box::pin(carry::carry_out(&nest, registration)).await;
            });
        }
        tokio::select! {
            biased;
            () = nest.signals.register.notified() => {}
            () = sleep(interval) => {}
        }
    }
}

/// Gives up what nobody will finish.
async fn abandon_build(nest: &Nest, vm: &VmId, reason: &'static str) {
    let Some(_at_work) = nest.at_work(vm) else { return };
    match nest.mark(vm, reason).await {
        Ok(()) => nest.signals.cleanup.notify_one(),
        Err(error) => tracing::warn!(%vm, "giving up a template's build failed: {}", Chain(&error)),
    }
}
