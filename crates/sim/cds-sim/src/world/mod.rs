//! All state of the simulated API, behind one lock. Nothing in here waits.

mod access;
mod models;
mod sockets;
mod timers;
mod v1_jobs;
mod v2_jobs;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use roost_cds::{HatcheryKey, JobId, KeyError, Secret};
use roost_clock::{Clock, Random};

use crate::clients::Clients;
use crate::faults::Rules;
use crate::history::{DoubleWorker, HistoryEntry, JobEvent};
use crate::options::Options;

pub(crate) use access::{Access, HatcheryRow, ServiceRow, Who};
pub(crate) use models::{ModelRow, Models};
pub(crate) use sockets::{Delivery, Event, SocketId, Sockets};
pub(crate) use v1_jobs::{V1Booking, V1Row};
pub(crate) use v2_jobs::V2Row;
pub(crate) use workers::{NewWorker, WorkerFor, WorkerRow};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
    /// What each answer waits for; a stream of its own, so that ids do not depend on it.
    pub(crate) latency: Random,
    pub(crate) key: HatcheryKey,
    pub(crate) access: Access,
    pub(crate) v1_jobs: BTreeMap<i64, V1Row>,
    pub(crate) v2_jobs: BTreeMap<String, V2Row>,
    pub(crate) workers: BTreeMap<String, WorkerRow>,
    pub(crate) models: Models,
    pub(crate) sockets: Sockets,
    pub(crate) rules: Rules,
    /// Requests by route.
    pub(crate) calls: BTreeMap<&'static str, u64>,
    pub(crate) clients: Clients,
    pub(crate) doubles: Vec<DoubleWorker>,
    /// Events that wait for the lock to be released.
    pub(crate) outbox: Vec<Event>,
    pub(crate) is_down: bool,
    next_number: i64,
}

/// The key that signs sessions. It is in the source for everybody to read, which is fine for an API that is not one.
const API_KEY: &str = include_str!("../../keys/api.pem");

impl World {
    pub(crate) fn new(options: Options, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        let random = Random::from_seed(options.seed);
        let access = Access::new(&options, &mut random.fork("hatcheries"));
        Ok(Self {
            clock,
            random: random.fork("ids"),
            latency: random.fork("latency"),
            key: HatcheryKey::parse(&Secret::from(API_KEY))?,
            access,
            v1_jobs: BTreeMap::new(),
            v2_jobs: BTreeMap::new(),
            workers: BTreeMap::new(),
            models: Models::default(),
            sockets: Sockets::new(random.fork("events")),
            rules: Rules::new(random.fork("faults")),
            calls: BTreeMap::new(),
            clients: Clients::default(),
            doubles: Vec::new(),
            outbox: Vec::new(),
            is_down: false,
            next_number: 1000,
            options,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A number that no other thing in this world has.
    pub(crate) fn number(&mut self) -> i64 {
        self.next_number += 1;
        self.next_number
    }

    /// Writes into a job's history, if the job exists.
    pub(crate) fn record(&mut self, job: &JobId, event: JobEvent) {
        let at = self.now();
        let record = match job {
            JobId::V1(id) => self.v1_jobs.get_mut(id).map(|row| &mut row.record),
            JobId::V2(id) => self.v2_jobs.get_mut(id).map(|row| &mut row.record),
        };
        if let Some(record) = record {
            record.history.push(HistoryEntry { at, event });
        }
    }

    /// Removes a job as if it had never been there. Its history stays readable.
    pub(crate) fn vanish(&mut self, job: &JobId) {
        self.record(job, JobEvent::Vanished);
        match job {
            JobId::V1(id) => {
                if let Some(row) = self.v1_jobs.get_mut(id) {
                    row.has_vanished = true;
                }
            }
            JobId::V2(id) => {
                if let Some(row) = self.v2_jobs.get_mut(id) {
                    row.has_vanished = true;
                }
            }
        }
    }
}

/// What tests may ask about a job afterwards.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) history: Vec<HistoryEntry>,
    pub(crate) infos: Vec<String>,
}

/// Whether more than `limit` has passed since `then`.
pub(crate) fn is_older(then: Timestamp, now: Timestamp, limit: std::time::Duration) -> bool {
    now.duration_since(then) > SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX)
}
