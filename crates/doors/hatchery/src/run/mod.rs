//! The running hatchery: loops that observe, decide under one lock, and carry out.
//!
//! ```text
//!   queues ──> jobs ─┐                               ┌─> spawn ──> VM, worker
//!   models ──────────┤                               │
//!   workers ─────────┼──> plan (pure) ──> scheduler ─┤
//!   mirror ──────────┤          reserves, all or     ├─> spares ──> VMs made ahead
//!                    │          nothing              │
//!                    └──> retire (pure) ──> guard ───┴─> cleanup ──> VMs gone
//! ```
//!
//! Each loop is a struct that owns what it needs, so that its type says what it may touch:
//!
//! | Loop | Does | Changes |
//! | --- | --- | --- |
//! | `inventory::InventoryFollower` | keeps the mirror as the vCenter is | nothing |
//! | `opener::Opener` | reads both sides once, then lets the others decide | nothing itself; starts the adoption |
//! | `workers::Workers`, `models::Models` | read what CDS knows | nothing |
//! | `listen::Listener` | hears of jobs and asks CDS about them | nothing |
//! | `planner::Planner` | weighs what waits, reserves, gives out orders | V1 jobs that had all attempts |
//! | `spawn::Spawner` | carries out orders, takes up what was left half-way | jobs, VMs |
//! | `keeping::PoolKeeper` | makes, finishes and marks spares | VMs |
//! | `register::Registrar` | builds templates, registers V1 models | models, VMs |
//! | `cleanup::Retirer` | deletes VMs that have served, through the guard | VMs, jobs |
//! | `cleanup::Corrector` | sets CDS right about workers without a VM | workers, jobs |
//! | `others::TakeOver` | speaks with other processes of our name | marks on VMs |
//! | `observe::Heart`, `observe::Gauges` | tell CDS and Prometheus | nothing |
//!
//! `observe::StateReader` is for those who look, `steer::Steerer` for people who say what to do.
//!
//! Nothing here is remembered that a restart could not find again: whose a VM is and what for stands in its annotation, what waits in CDS.

mod about;
mod bring_up;
mod cds_calls;
mod cds_link;
mod cleanup;
mod earlier;
mod holding;
mod inventory;
mod jobs;
mod keeping;
mod lifecycle;
mod listen;
mod machine;
mod models;
mod observe;
mod opener;
mod opening;
mod order;
mod others;
mod parts;
mod planner;
mod recorder;
mod register;
mod running;
mod scheduler;
mod signals;
mod site;
mod spare_view;
mod spawn;
mod steer;
mod verdicts;
mod worker_setup;
mod workers;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::{CallError, HeartbeatGaveUp, SettingsError};
use roost_clock::{Clock, Random};
use roost_fleet::{Fleet, Freeze, Resume};
use roost_supervise::Chain;
use roost_vim::AddressError;
use tokio::sync::watch;

pub use self::observe::{Changes, News, Window, view};
pub use self::opening::{OpenFleet, cds_settings};
pub use self::site::SiteError;
pub use self::steer::{Controls, Held, Hold, NotDone};
pub use roost_supervise::TaskHealth;

use self::running::Running;
use crate::config::{Config, SecretError, Surroundings};
use crate::metrics::Metrics;

/// What a hatchery is made of.
#[derive(Debug)]
pub struct Wiring {
    pub config: Arc<Config>,
    /// Where secrets that stand in files and variables are read.
    pub surroundings: Arc<dyn Surroundings + Send + Sync>,
    pub vcenter: OpenFleet,
    pub cds: Arc<dyn roost_cds::Transport>,
    pub clock: Arc<dyn Clock>,
    pub random: Random,
    pub metrics: Arc<Metrics>,
    pub version: String,
    pub hostname: String,
}

/// Why a hatchery does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("reading {what}")]
    Secret { what: &'static str, source: SecretError },
    #[error("the CDS API's address {url:?}")]
    ApiAddress { url: String, source: url::ParseError },
    #[error("the CDS API")]
    Api { source: SettingsError },
    #[error("signing in to CDS")]
    SignIn { source: CallError },
    #[error("the vCenter's address")]
    VcenterAddress { source: AddressError },
    #[error("connecting to the vCenter")]
    Vcenter { source: roost_vim::CallError },
    /// Trying again does not help and may lock the account.
    #[error(
        "the vCenter refuses the login of {user}: check hatchery.vsphere.user, with its domain, and its password"
    )]
    LoginRefused { user: String },
    #[error("finding where VMs go")]
    Site { source: SiteError },
    #[error("the vCenter's guest operations")]
    Guests { source: roost_vim::CallError },
}

/// Why a hatchery that ran cannot go on.
#[derive(Debug, Clone)]
pub enum Stopped {
    /// CDS has not taken our heartbeats for too long.
    Heartbeat(Arc<HeartbeatGaveUp>),
    /// The vCenter does not let us follow its inventory.
    Inventory(String),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heartbeat(why) => write!(f, "the CDS API takes no heartbeats: {}", Chain(&**why)),
            Self::Inventory(why) => write!(f, "the inventory cannot be followed: {why}"),
        }
    }
}

/// A hatchery at work. Dropping it ends it wherever it is, as a crash would; [`Hatchery::shut_down`] is the polite way.
#[derive(Debug)]
pub struct Hatchery {
    running: Running,
    mode: Mode,
}

/// What a hatchery does with what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Works,
    /// It follows the inventory with a handle that cannot change anything, runs no loop that decides, and never speaks to CDS: there is no
    /// way to sign in that leaves a hatchery of the same name alone.
    ObservesOnly,
}

impl Hatchery {
    /// Signs in, finds its place in the vCenter, and begins. It decides nothing before it has read everything once.
    pub async fn start(wiring: Wiring) -> Result<Self, StartError> {
        Self::start_telling(wiring, |_| {}).await
    }

    /// As [`Hatchery::start`]; `waits_for` is told what it waits for at each step.
    pub async fn start_telling(
        wiring: Wiring,
        waits_for: impl Fn(&str) + Send + Sync,
    ) -> Result<Self, StartError> {
        let mode = Mode::Works;
        Ok(Self { running: opening::start(wiring, mode, &waits_for).await?, mode })
    }

    /// Only looks: nothing is changed on the vCenter, and CDS is not spoken to. It shows its own VMs, pools, capacity, addresses and the link;
    /// jobs and what CDS knows of workers it cannot see, so that it decides nothing.
    pub async fn observe(wiring: Wiring) -> Result<Self, StartError> {
        let mode = Mode::ObservesOnly;
        Ok(Self { running: opening::start(wiring, mode, &|_| {}).await?, mode })
    }

    pub fn name(&self) -> &str {
        self.running.reader.about.hatchery()
    }

    /// Waits until everything was read once and decisions are made.
    pub async fn opened(&self) {
        self.running.lifecycle.opened().await;
    }

    pub fn is_open(&self) -> bool {
        self.running.lifecycle.is_open()
    }

    /// Why it cannot go on, as soon as that is so.
    pub fn stopped(&self) -> watch::Receiver<Option<Stopped>> {
        self.running.lifecycle.stopped()
    }

    pub fn tasks(&self) -> Vec<TaskHealth> {
        self.running.tasks.health()
    }

    /// A person has looked at why deletion is frozen. Returns the freeze that this ends, if there was one.
    pub fn resume_deletions(&self, found: Resume) -> Option<Freeze> {
        self.running.steerer.resume_deletions(found)
    }

    /// Where its VMs are. Whoever opened it logs out when all doors are shut down.
    pub fn fleet(&self) -> &Fleet {
        &self.running.fleet
    }

    /// Begins nothing new, lets what is under way finish for as long as `grace`, and signs out of CDS. What did not finish is found by
    /// the next start. Returns how much that is.
    pub async fn shut_down(&self, grace: Duration) -> usize {
        let Running { cds, tasks, .. } = &self.running;
        let left = tasks.drain(grace).await;
        if self.mode == Mode::Works {
            cds.sign_out().await;
        }
        left
    }
}
