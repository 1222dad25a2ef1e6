//! What can be read of a running hatchery.

use std::sync::{Arc, Mutex};

use roost_fleet::{Mirror, Timelines};

use crate::run::about::About;
use crate::run::cds_link::CdsLink;
use crate::run::cleanup::{Deletions, Judge};
use crate::run::lifecycle::Lifecycle;
use crate::run::models::Models;
use crate::run::observe::CallMeter;
use crate::run::others::OtherProcesses;
use crate::run::recorder::Recorder;
use crate::run::scheduler::Scheduler;
use crate::run::steer::Steering;
use crate::run::workers::Workers;
use crate::spares::PoolStanding;

/// Reads memory to show it: it asks no server and changes nothing.
#[derive(Debug)]
pub(in crate::run) struct StateReader {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) calls: Arc<CallMeter>,
    pub(in crate::run) cds_link: Arc<CdsLink>,
    pub(in crate::run) deletions: Arc<Deletions>,
    pub(in crate::run) judge: Arc<Judge>,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) models: Arc<Models>,
    pub(in crate::run) processes: Arc<OtherProcesses>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) standing: Arc<Mutex<Vec<PoolStanding>>>,
    pub(in crate::run) steering: Arc<Steering>,
    pub(in crate::run) timelines: Timelines,
    pub(in crate::run) workers: Arc<Workers>,
}
