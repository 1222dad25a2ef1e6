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

use roost_fleet::{Mirror, PoolId, VmId};
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

use self::look::{Work, look};
use super::about::About;
use super::lifecycle::Lifecycle;
use super::machine::WorkerVms;
use super::models::Models;
use super::others::OtherProcesses;
use super::recorder::Recorder;
use super::scheduler::Scheduler;
use super::signals::Signals;
use super::steer::Steering;
use super::worker_setup::WorkerSetup;
use crate::config::Config;

/// Shows CDS what V1 models can do.
#[derive(Debug)]
pub(in crate::run) struct Registrar {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) models: Arc<Models>,
    pub(in crate::run) pool: PoolId,
    pub(in crate::run) processes: Arc<OtherProcesses>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) setup: Arc<WorkerSetup>,
    pub(in crate::run) signals: Arc<Signals>,
    pub(in crate::run) steering: Arc<Steering>,
    pub(in crate::run) vms: Arc<WorkerVms>,
}

/// Whether this hatchery registers models at all.
pub(super) fn is_wanted(config: &Config, cds: &roost_cds::Client) -> bool {
    let counts = &config.counts;
    cds.v1().is_some()
        && config.models_v1
        && counts.register_interval.is_some()
        && counts.max_registering.is_some()
}

/// Looks at every interval, and when a model has changed.
pub(super) async fn keep_registered(registrar: Arc<Registrar>, tasks: Arc<Tasks>) {
    let Some(interval) = registrar.about.config.counts.register_interval else { return };
    registrar.lifecycle.opened().await;
    loop {
        tasks.beat("registration", registrar.about.patience() + interval);
        let is_held =
            registrar.steering.spawning().is_some() || registrar.processes.look().is_some();
        let Work { begin, abandon } = if is_held { Work::default() } else { look(&registrar) };
        for (vm, reason) in abandon {
            let registrar = Arc::clone(&registrar);
            tasks.errand(
                "registration",
                async move { abandon_build(&registrar, &vm, reason).await },
            );
        }
        for registration in begin {
            let registrar = Arc::clone(&registrar);
            tasks.errand("registration", async move {
                Box::pin(carry::carry_out(&registrar, registration)).await;
            });
        }
        tokio::select! {
            biased;
            () = registrar.signals.register.notified() => {}
            () = sleep(interval) => {}
        }
    }
}

/// Gives up what nobody will finish.
async fn abandon_build(registrar: &Registrar, vm: &VmId, reason: &'static str) {
    let Some(_at_work) = registrar.vms.at_work(vm) else { return };
    match registrar.vms.mark(vm, reason).await {
        Ok(()) => registrar.signals.cleanup.notify_one(),
        Err(error) => tracing::warn!(%vm, "giving up a template's build failed: {}", Chain(&error)),
    }
}
