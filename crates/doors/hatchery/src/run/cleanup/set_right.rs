//! Workers that CDS believes in and that have no VM any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::CallError;
use roost_fleet::{Decided, Draft, Mirror};
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

use crate::door::HATCHERY;
use crate::pool::{Consistency, Correction, Pool};
use crate::run::about::About;
use crate::run::cleanup::JobReturns;
use crate::run::lifecycle::Lifecycle;
use crate::run::others::OtherProcesses;
use crate::run::recorder::Recorder;
use crate::run::workers::Workers;
use crate::status::task;

const INTERVAL: Duration = Duration::from_secs(20);

/// Sets CDS right. It cannot change a VM.
#[derive(Debug)]
pub(in crate::run) struct Corrector {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) processes: Arc<OtherProcesses>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) returns: Arc<JobReturns>,
    pub(in crate::run) workers: Arc<Workers>,
}

/// Corrects CDS about workers whose VM is gone, on whole views only (W3, W28).
pub(in crate::run) async fn keep_right(corrector: Arc<Corrector>, tasks: Arc<Tasks>) {
    corrector.lifecycle.opened().await;
    let (mut consistency, mut given_back) = (Consistency::default(), BTreeSet::new());
    loop {
        tasks.beat(task::DISABLED, corrector.about.patience() + INTERVAL);
        sleep(INTERVAL).await;
        if corrector.processes.look().is_some() {
            // What it is about to do is not known here.
            consistency = Consistency::default();
            continue;
        }
        let now = corrector.about.now();
        if let Ok(pool) = corrector.workers.join(&corrector.mirror.snapshot(), now) {
            let corrections = consistency.observe(&pool, now);
            given_back.retain(|name: &String| pool.get(name).is_some());
            for correction in corrections {
                tasks.beat(task::DISABLED, corrector.about.patience());
                correct(&corrector, &pool, &correction, &mut given_back).await;
            }
        }
    }
}

async fn correct(
    corrector: &Corrector,
    pool: &Pool,
    correction: &Correction,
    given_back: &mut BTreeSet<String>,
) {
    let (Correction::Disable { name, .. } | Correction::Release { name, .. }) = correction;
    // A VM of that name whose annotation cannot be read is a VM all the same.
    if corrector.mirror.snapshot().named(name).next().is_some() {
        return;
    }
    let done: Result<(), CallError> = async {
        match correction {
            Correction::Disable { name, id } => {
                let Some(client) = corrector.cds.v1() else { return Ok(()) };
                client.disable_worker(id).await?;
                note_disabled(corrector, pool, name);
            }
            Correction::Release { name, job } => {
                if given_back.contains(name) {
                    return Ok(());
                }
                let why = format!("worker {name} has no VM any more");
                if corrector.returns.give_back(job, name, &why).await? {
                    given_back.insert(name.clone());
                }
            }
        }
        Ok(())
    }
    .await;
    match done {
        Err(error) if !error.is_gone() => {
            tracing::warn!(worker = name, "setting CDS right failed: {}", Chain(&error));
        }
        _ => {}
    }
}

fn note_disabled(corrector: &Corrector, pool: &Pool, name: &str) {
    let registered = pool.get(name).and_then(|worker| worker.registered.as_ref());
    let job = registered.and_then(|registered| registered.job.as_ref());
    let request = job.map_or_else(|| format!("worker {name}"), ToString::to_string);
    let words = format!("worker {name} has no VM any more and was disabled");
    corrector
        .recorder
        .decide(Draft::new(HATCHERY.about_request(request), Decided::Failed, words), "vm-gone");
}
