//! What a test or a demonstration does to the API from outside, and what it may ask.

use std::time::Duration;

use roost_cds::v1::{Group, Model, ModelPath, ModelSecret};
use roost_cds::{JobId, JobStatus, Secret, WorkerStatus, v1, v2};

use crate::api::CdsApi;
use crate::demand::{V1Demand, V2Demand};
use crate::faults::{EventFault, Fault};
use crate::glob;
use crate::handlers::access;
use crate::history::{DoubleWorker, JobReport};
use crate::world::{ModelRow, WorkerRow};

/// A worker on the API's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    pub id: String,
    pub name: String,
    pub hatchery: String,
    pub status: WorkerStatus,
    /// `None` for one that registers its model.
    pub job: Option<JobId>,
}

/// Demand and models.
impl CdsApi {
    /// Queues a V1 job and tells hatcheries about it.
    pub fn add_v1_job(&self, demand: V1Demand) -> i64 {
        self.change(|world| world.add_v1_job(demand))
    }

    /// Queues a V2 job and tells hatcheries about it. `None` when its model does not exist.
    pub fn add_v2_job(&self, demand: V2Demand) -> Option<String> {
        self.change(|world| world.add_v2_job(demand))
    }

    /// Adds or replaces a V1 model; its path follows from group and name, and an id of 0 gets a number.
    pub fn add_model(&self, mut model: Model, secrets: Vec<(&str, Secret)>) -> ModelPath {
        let mut world = self.lock();
        let group = Group { id: 1, name: Group::SHARED_INFRA.to_owned() };
        let group = model.group.get_or_insert(group);
        model.group_id = group.id;
        if model.id == 0 {
            model.id = world.number();
        }
        if model.user_last_modified.is_none() {
            model.user_last_modified = Some(world.now());
        }
        let secret = |(name, value): (&str, Secret)| ModelSecret {
            id: name.to_owned(),
            worker_model_id: model.id,
            name: name.to_owned(),
            value,
        };
        let (path, secrets) = (model.path(), secrets.into_iter().map(secret).collect());
        world.models.v1.insert(path.clone(), ModelRow { model, secrets, booked: None });
        path
    }

    /// Changes a V1 model, such as its `need_registration`.
    pub fn change_model(&self, path: &ModelPath, change: impl FnOnce(&mut Model)) {
        if let Some(row) = self.lock().models.v1.get_mut(path) {
            change(&mut row.model);
        }
    }

    pub fn remove_model(&self, path: &ModelPath) {
        self.lock().models.v1.remove(path);
    }

    pub fn model(&self, path: &ModelPath) -> Option<Model> {
        self.lock().models.v1.get(path).map(|row| row.model.clone())
    }

    /// Adds a model as code at its path.
    pub fn add_v2_model(&self, path: &v2::AsCodePath, model: v2::Model) {
        self.lock().models.v2.insert(path.to_string(), model);
    }
}

/// Faults.
impl CdsApi {
    /// Adds a rule for requests. Rules add up and stay until they are cleared.
    pub fn inject(&self, fault: Fault) {
        self.lock().rules.add(fault);
    }

    /// Adds a rule for events on their way to websockets.
    pub fn inject_event(&self, fault: EventFault) {
        self.lock().rules.add_event(fault);
    }

    /// Adds faults of every kind that a hatchery must live through, each with this probability per request or event: lost
    /// requests and answers, errors, slowness, sessions that end, events that are lost, late or doubled, and websockets
    /// that close.
    pub fn inject_chaos(&self, probability: f64) {
        let any = || Fault::on("**").chance(probability);
        let secs = Duration::from_secs;
        for fault in [
            any().cut(),
            any().cut_after(),
            any().answer(500, 0),
            any().answer(409, 0),
            any().answer_after(504, 0),
            any().delay(secs(4)),
            any().delay(secs(14)),
            // Not for workers: theirs is not renewed in reality either.
            Fault::on("GET /**").chance(probability).answer(401, 10),
            Fault::on("POST /queue/workflows/*/book").chance(probability).answer(401, 10),
            Fault::on("* /v2/queue/*/job/*/hatchery/take").chance(probability).answer(401, 10),
        ] {
            self.inject(fault);
        }
        for fault in [
            EventFault::lose(),
            EventFault::late(secs(45)),
            EventFault::duplicate(2, secs(1)),
            EventFault::close(1000),
            EventFault::close(1001),
            EventFault::close(1006),
            EventFault::close(1011),
        ] {
            self.inject_event(fault.chance(probability));
        }
    }

    /// How often a fault of any rule has struck, also of those that were cleared.
    pub fn faults_met(&self) -> u64 {
        self.lock().rules.acted()
    }

    pub fn clear_faults(&self) {
        self.lock().rules.clear();
    }

    /// Closes every websocket with this code; 1006 breaks the connections.
    pub fn close_websockets(&self, code: u16) {
        self.lock().sockets.close_all(code);
    }

    /// From now on every connection breaks.
    pub fn go_down(&self) {
        let mut world = self.lock();
        world.is_down = true;
        world.sockets.close_all(roost_cds::SocketClosed::ABNORMAL);
    }

    pub fn come_back(&self) {
        self.lock().is_down = false;
    }

    /// Ends all sessions of hatcheries: the next call of each gets 401.
    pub fn forget_sessions(&self) {
        self.lock().access.forget_hatchery_sessions();
    }

    /// Deletes the V1 service of this name, as the API does when its heart stopped.
    pub fn delete_service(&self, name: &str) {
        let mut world = self.lock();
        if let Some(id) = world.access.service_named(name).map(|row| row.service.id) {
            world.access.delete_service(id);
        }
    }

    /// Makes a new V2 token for a hatchery; the old one is worth nothing from now on. `None` if there is no such hatchery.
    pub fn regenerate_token(&self, hatchery: &str) -> Option<Secret> {
        access::regenerate(&mut self.lock(), hatchery).ok()
    }

    /// Moves a V2 hatchery to another region, which it learns at its next sign-in.
    pub fn move_hatchery(&self, hatchery: &str, region: &str) {
        if let Some(row) = self.lock().access.hatcheries.get_mut(hatchery) {
            row.region = Some(region.to_owned());
        }
    }

    /// Disables the worker of this name. The V1 job that it is building fails with it.
    pub fn disable_worker(&self, name: &str) {
        self.change(|world| {
            let id = world.workers.values().find(|row| row.name == name).map(|row| row.id.clone());
            id.map(|id| world.disable_worker(&id))
        });
    }

    /// A person cancels a job.
    pub fn stop_job(&self, job: &JobId) {
        let (status, reason) = (JobStatus::Stopped, "stopped by a person");
        self.change(|world| match job {
            JobId::V1(id) => world.end_v1_job(*id, status, reason),
            JobId::V2(id) => world.end_v2_job(id, status, reason),
        });
    }
}

/// Questions.
impl CdsApi {
    /// What is known about a job, also of one that vanished.
    pub fn job(&self, id: &JobId) -> Option<JobReport> {
        let world = self.lock();
        let (status, hatchery, record) = match id {
            JobId::V1(number) => {
                let row = world.v1_jobs.get(number)?;
                let holder = row.holder(world.now()).map(|booking| booking.name.clone());
                (row.job.status, holder, row.record.clone())
            }
            JobId::V2(uuid) => {
                let row = world.v2_jobs.get(uuid)?;
                let holder = Some(row.job.hatchery_name.clone()).filter(|name| !name.is_empty());
                (row.job.status, holder, row.record.clone())
            }
        };
        let (history, infos) = (record.history, record.infos);
        Some(JobReport { id: id.clone(), status, hatchery, history, infos })
    }

    /// All jobs, V1 first, each kind in the order in which they were queued.
    pub fn jobs(&self) -> Vec<JobReport> {
        let ids: Vec<JobId> = {
            let world = self.lock();
            let mut v2: Vec<_> = world.v2_jobs.iter().collect();
            v2.sort_by_key(|(_, row)| row.number);
            let v1 = world.v1_jobs.keys().copied().map(JobId::V1);
            v1.chain(v2.into_iter().map(|(id, _)| JobId::V2(id.clone()))).collect()
        };
        ids.iter().filter_map(|id| self.job(id)).collect()
    }

    pub fn workers(&self) -> Vec<WorkerReport> {
        let report = |row: &WorkerRow| WorkerReport {
            id: row.id.clone(),
            name: row.name.clone(),
            hatchery: row.hatchery_name.clone(),
            status: row.status,
            job: row.job(),
        };
        self.lock().workers.values().map(report).collect()
    }

    /// Every time that two workers were alive for one job. What one hatchery did twice is never right.
    pub fn double_workers(&self) -> Vec<DoubleWorker> {
        self.lock().doubles.clone()
    }

    /// The V1 services that the API knows now.
    pub fn services(&self) -> Vec<v1::Service> {
        self.lock().access.services.values().map(|row| row.service.clone()).collect()
    }

    /// The V2 hatchery of this name, as it last signed in.
    pub fn hatchery(&self, name: &str) -> Option<v2::Hatchery> {
        self.lock().access.hatcheries.get(name).map(|row| row.hatchery.clone())
    }

    /// How many requests met routes that fit this pattern, such as `POST /v2/queue/*/job/*/hatchery/take`. Requests that a
    /// fault kept away do not count.
    pub fn calls(&self, pattern: &str) -> u64 {
        let fits = |(route, _): &(&&str, &u64)| glob::matches(pattern, route);
        self.lock().calls.iter().filter(fits).map(|(_, count)| count).sum()
    }

    pub fn open_websockets(&self) -> usize {
        self.lock().sockets.count()
    }
}
