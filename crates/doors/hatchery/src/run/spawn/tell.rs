//! What the people who wait for a job read in its log. Best effort: no VM waits for a message.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::v1::SpawnInfo;
use roost_cds::v2::InfoLevel;
use roost_cds::{CallError, JobId};
use roost_supervise::{Chain, Tasks};

use super::NewWorker;
use crate::messages;
use crate::model::WorkerModel;
use crate::run::spawn::Spawner;

/// Says beside everything else that a worker is being started.
pub(super) fn of_start(spawner: &Arc<Spawner>, tasks: &Tasks, new: &NewWorker) {
    let (spawner, new) = (Arc::clone(spawner), new.clone());
    // Taken before anything else can be told of this worker.
    let first = Arc::clone(&new.telling).try_lock_owned();
    tasks.errand("job-message", async move {
        note(&new, start(&spawner, &new).await);
        drop(first);
    });
}

async fn start(spawner: &Spawner, new: &NewWorker) -> Result<(), CallError> {
    let (hatchery, worker, model) =
        (spawner.about.hatchery(), &new.worker, new.model.display_name());
    match (&new.job.id, spawner.cds.v1(), spawner.cds.v2()) {
        (JobId::V1(number), Some(client), _) => {
            let now = spawner.about.now();
            let mut infos = vec![SpawnInfo::hatchery_starts(now, hatchery, worker, &model)];
            if matches!(&*new.model, WorkerModel::V1(model) if model.is_deprecated) {
                infos.push(SpawnInfo::deprecated_model(now, &model));
            }
            client.add_spawn_infos(*number, &infos).await
        }
        (JobId::V2(uuid), _, Some(client)) => {
            let words = messages::starting(hatchery, worker, &model);
            client.add_info(uuid, InfoLevel::Info, words).await?;
            let words = messages::size(worker, new.flavor.as_ref());
            client.add_info(uuid, InfoLevel::Info, words).await
        }
        _ => Ok(()),
    }
}

/// Says that no worker came of it.
pub(super) async fn of_failure(spawner: &Spawner, new: &NewWorker, after: Duration, why: &str) {
    let (hatchery, worker, model) =
        (spawner.about.hatchery(), &new.worker, new.model.display_name());
    let _after_what_came_before = new.telling.lock().await;
    let told = match (&new.job.id, spawner.cds.v1(), spawner.cds.v2()) {
        (JobId::V1(number), Some(client), _) => {
            let info = SpawnInfo::spawn_failed(spawner.about.now(), hatchery, &model, after, why);
            client.add_spawn_infos(*number, &[info]).await
        }
        (JobId::V2(uuid), _, Some(client)) => {
            let words = messages::failed(hatchery, worker, &model, after, &why);
            client.add_info(uuid, InfoLevel::Error, words).await
        }
        _ => Ok(()),
    };
    note(new, told);
}

fn note(new: &NewWorker, told: Result<(), CallError>) {
    if let Err(error) = told {
        tracing::debug!(job = %new.job.id, "a message to the job was lost: {}", Chain(&error));
    }
}
