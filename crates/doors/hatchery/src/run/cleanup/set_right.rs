//! Workers that CDS believes in and that have no VM any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::CallError;
use roost_fleet::{Decided, Draft};
use roost_supervise::{Chain, Tasks};
use tokio::time::sleep;

use super::aftermath::give_back;
use crate::door::HATCHERY;
use crate::pool::{Consistency, Correction, Pool};
use crate::run::context::Context;
use crate::status::task;

const INTERVAL: Duration = Duration::from_secs(20);

/// Corrects CDS about workers whose VM is gone, on whole views only (W3, W28).
pub(in crate::run) async fn keep_right(cx: Arc<Context>, tasks: Arc<Tasks>) {
    cx.opened().await;
    let (mut consistency, mut given_back) = (Consistency::default(), BTreeSet::new());
    loop {
        tasks.beat(task::DISABLED, cx.patience() + INTERVAL);
        sleep(INTERVAL).await;
        if cx.look_for_others().is_some() {
            // What it is about to do is not known here.
            consistency = Consistency::default();
            continue;
        }
        let now = cx.now();
        if let Ok(pool) = cx.join_workers(&cx.mirror.snapshot(), now) {
            let corrections = consistency.observe(&pool, now);
            given_back.retain(|name: &String| pool.get(name).is_some());
            for correction in corrections {
                tasks.beat(task::DISABLED, cx.patience());
                correct(&cx, &pool, &correction, &mut given_back).await;
            }
        }
    }
}

async fn correct(
    cx: &Context,
    pool: &Pool,
    correction: &Correction,
    given_back: &mut BTreeSet<String>,
) {
    let (Correction::Disable { name, .. } | Correction::Release { name, .. }) = correction;
    // A VM of that name whose annotation cannot be read is a VM all the same.
    if cx.mirror.snapshot().named(name).next().is_some() {
        return;
    }
    let done: Result<(), CallError> = async {
        match correction {
            Correction::Disable { name, id } => {
                let Some(client) = cx.cds.v1() else { return Ok(()) };
                client.disable_worker(id).await?;
                note_disabled(cx, pool, name);
            }
            Correction::Release { name, job } => {
                if given_back.contains(name) {
                    return Ok(());
                }
                let why = format!("worker {name} has no VM any more");
                if give_back(cx, job, name, &why).await? {
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

fn note_disabled(cx: &Context, pool: &Pool, name: &str) {
    let registered = pool.get(name).and_then(|worker| worker.registered.as_ref());
    let job = registered.and_then(|registered| registered.job.as_ref());
    let request = job.map_or_else(|| format!("worker {name}"), ToString::to_string);
    let words = format!("worker {name} has no VM any more and was disabled");
    cx.decide(Draft::new(HATCHERY.about_request(request), Decided::Failed, words), "vm-gone");
}
