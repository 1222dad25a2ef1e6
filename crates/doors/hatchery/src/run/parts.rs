//! What a hatchery is wired together from at its start. Each loop takes what it needs from here, and nobody keeps the rest.

use std::sync::{Arc, Mutex};

use roost_fleet::{Fleet, Mirror, PoolId, Timelines};
use roost_vim::Observer;
use tokio::sync::Semaphore;

use super::about::About;
use super::cds_link::CdsLink;
use super::cleanup::{Corrector, Deletions, JobReturns, Judge, Retirer};
use super::earlier::EarlierTasks;
use super::inventory::InventoryFollower;
use super::keeping::PoolKeeper;
use super::lifecycle::Lifecycle;
use super::listen::Listener;
use super::machine::WorkerVms;
use super::models::Models;
use super::observe::{CallMeter, Gauges, Heart, StateReader};
use super::opener::Opener;
use super::others::{OtherProcesses, TakeOver};
use super::planner::Planner;
use super::recorder::Recorder;
use super::register::Registrar;
use super::scheduler::Scheduler;
use super::signals::Signals;
use super::spawn::Spawner;
use super::steer::{Steerer, Steering};
use super::verdicts::Verdicts;
use super::worker_setup::WorkerSetup;
use super::workers::Workers;
use crate::metrics::Metrics;
use crate::spares::PoolStanding;

/// Jobs that are asked about at the same time.
const ASKING: usize = 8;

/// Everything that is shared between loops.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) about: Arc<About>,
    pub(super) fleet: Fleet,
    pub(super) mirror: Mirror,
    pub(super) vcenter: Observer,
    pub(super) vms: Arc<WorkerVms>,
    pub(super) pool: PoolId,
    pub(super) cds: roost_cds::Client,
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) timelines: Timelines,
    pub(super) workers: Arc<Workers>,
    pub(super) models: Arc<Models>,
    pub(super) processes: Arc<OtherProcesses>,
    pub(super) earlier: Arc<EarlierTasks>,
    pub(super) setup: Arc<WorkerSetup>,
    pub(super) deletions: Arc<Deletions>,
    pub(super) judge: Arc<Judge>,
    pub(super) returns: Arc<JobReturns>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) signals: Arc<Signals>,
    pub(super) steering: Arc<Steering>,
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) cds_link: Arc<CdsLink>,
    pub(super) calls: Arc<CallMeter>,
    pub(super) standing: Arc<Mutex<Vec<PoolStanding>>>,
}

impl Parts {
    pub(super) fn registrar(&self) -> Registrar {
        Registrar {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            lifecycle: Arc::clone(&self.lifecycle),
            mirror: self.mirror.clone(),
            models: Arc::clone(&self.models),
            pool: self.pool.clone(),
            processes: Arc::clone(&self.processes),
            recorder: Arc::clone(&self.recorder),
            scheduler: Arc::clone(&self.scheduler),
            setup: Arc::clone(&self.setup),
            signals: Arc::clone(&self.signals),
            steering: Arc::clone(&self.steering),
            vms: Arc::clone(&self.vms),
        }
    }

    pub(super) fn pool_keeper(&self) -> PoolKeeper {
        PoolKeeper {
            about: Arc::clone(&self.about),
            lifecycle: Arc::clone(&self.lifecycle),
            mirror: self.mirror.clone(),
            models: Arc::clone(&self.models),
            pool: self.pool.clone(),
            processes: Arc::clone(&self.processes),
            recorder: Arc::clone(&self.recorder),
            scheduler: Arc::clone(&self.scheduler),
            signals: Arc::clone(&self.signals),
            standing: Arc::clone(&self.standing),
            steering: Arc::clone(&self.steering),
            vms: Arc::clone(&self.vms),
        }
    }

    pub(super) fn corrector(&self) -> Corrector {
        Corrector {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            lifecycle: Arc::clone(&self.lifecycle),
            mirror: self.mirror.clone(),
            processes: Arc::clone(&self.processes),
            recorder: Arc::clone(&self.recorder),
            returns: Arc::clone(&self.returns),
            workers: Arc::clone(&self.workers),
        }
    }

    pub(super) fn retirer(&self) -> Retirer {
        Retirer {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            deletions: Arc::clone(&self.deletions),
            judge: Arc::clone(&self.judge),
            lifecycle: Arc::clone(&self.lifecycle),
            metrics: Arc::clone(&self.metrics),
            mirror: self.mirror.clone(),
            processes: Arc::clone(&self.processes),
            recorder: Arc::clone(&self.recorder),
            returns: Arc::clone(&self.returns),
            signals: Arc::clone(&self.signals),
            steering: Arc::clone(&self.steering),
            vcenter: self.vcenter.clone(),
            vms: Arc::clone(&self.vms),
            workers: Arc::clone(&self.workers),
        }
    }

    pub(super) fn spawner(&self) -> Spawner {
        Spawner {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            metrics: Arc::clone(&self.metrics),
            mirror: self.mirror.clone(),
            models: Arc::clone(&self.models),
            processes: Arc::clone(&self.processes),
            recorder: Arc::clone(&self.recorder),
            returns: Arc::clone(&self.returns),
            scheduler: Arc::clone(&self.scheduler),
            setup: Arc::clone(&self.setup),
            signals: Arc::clone(&self.signals),
            vcenter: self.vcenter.clone(),
            vms: Arc::clone(&self.vms),
            workers: Arc::clone(&self.workers),
        }
    }

    pub(super) fn verdicts(&self) -> Verdicts {
        Verdicts {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            recorder: Arc::clone(&self.recorder),
        }
    }

    pub(super) fn listener(&self, verdicts: &Arc<Verdicts>) -> Listener {
        Listener {
            asking: Semaphore::new(ASKING),
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            cds_link: Arc::clone(&self.cds_link),
            lifecycle: Arc::clone(&self.lifecycle),
            metrics: Arc::clone(&self.metrics),
            models: Arc::clone(&self.models),
            scheduler: Arc::clone(&self.scheduler),
            signals: Arc::clone(&self.signals),
            verdicts: Arc::clone(verdicts),
        }
    }

    pub(super) fn planner(&self, spawner: &Arc<Spawner>, verdicts: &Arc<Verdicts>) -> Planner {
        Planner {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            lifecycle: Arc::clone(&self.lifecycle),
            metrics: Arc::clone(&self.metrics),
            mirror: self.mirror.clone(),
            models: Arc::clone(&self.models),
            pool: self.pool.clone(),
            processes: Arc::clone(&self.processes),
            recorder: Arc::clone(&self.recorder),
            scheduler: Arc::clone(&self.scheduler),
            signals: Arc::clone(&self.signals),
            spawner: Arc::clone(spawner),
            steering: Arc::clone(&self.steering),
            verdicts: Arc::clone(verdicts),
            workers: Arc::clone(&self.workers),
        }
    }

    pub(super) fn take_over(&self, spawner: &Arc<Spawner>) -> TakeOver {
        TakeOver {
            about: Arc::clone(&self.about),
            lifecycle: Arc::clone(&self.lifecycle),
            mirror: self.mirror.clone(),
            processes: Arc::clone(&self.processes),
            signals: Arc::clone(&self.signals),
            spawner: Arc::clone(spawner),
        }
    }

    pub(super) fn heart(&self, reader: &Arc<StateReader>) -> Heart {
        Heart {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            cds_link: Arc::clone(&self.cds_link),
            lifecycle: Arc::clone(&self.lifecycle),
            reader: Arc::clone(reader),
        }
    }

    pub(super) fn gauges(&self, reader: &Arc<StateReader>) -> Gauges {
        Gauges {
            about: Arc::clone(&self.about),
            lifecycle: Arc::clone(&self.lifecycle),
            metrics: Arc::clone(&self.metrics),
            mirror: self.mirror.clone(),
            pool: self.pool.clone(),
            reader: Arc::clone(reader),
            recorder: Arc::clone(&self.recorder),
            scheduler: Arc::clone(&self.scheduler),
            standing: Arc::clone(&self.standing),
            vcenter: self.vcenter.clone(),
            workers: Arc::clone(&self.workers),
        }
    }

    pub(super) fn state_reader(&self) -> StateReader {
        StateReader {
            about: Arc::clone(&self.about),
            calls: Arc::clone(&self.calls),
            cds_link: Arc::clone(&self.cds_link),
            deletions: Arc::clone(&self.deletions),
            judge: Arc::clone(&self.judge),
            lifecycle: Arc::clone(&self.lifecycle),
            mirror: self.mirror.clone(),
            models: Arc::clone(&self.models),
            processes: Arc::clone(&self.processes),
            recorder: Arc::clone(&self.recorder),
            scheduler: Arc::clone(&self.scheduler),
            standing: Arc::clone(&self.standing),
            steering: Arc::clone(&self.steering),
            timelines: self.timelines.clone(),
            workers: Arc::clone(&self.workers),
        }
    }

    pub(super) fn steerer(&self, listener: &Arc<Listener>) -> Steerer {
        Steerer {
            about: Arc::clone(&self.about),
            deletions: Arc::clone(&self.deletions),
            listener: Arc::clone(listener),
            metrics: Arc::clone(&self.metrics),
            mirror: self.mirror.clone(),
            recorder: Arc::clone(&self.recorder),
            scheduler: Arc::clone(&self.scheduler),
            signals: Arc::clone(&self.signals),
            steering: Arc::clone(&self.steering),
            vms: Arc::clone(&self.vms),
        }
    }

    pub(super) fn inventory_follower(&self) -> InventoryFollower {
        InventoryFollower {
            fleet: self.fleet.clone(),
            mirror: self.mirror.clone(),
            lifecycle: Arc::clone(&self.lifecycle),
        }
    }

    pub(super) fn opener(&self, spawner: &Arc<Spawner>) -> Opener {
        Opener {
            about: Arc::clone(&self.about),
            cds: self.cds.clone(),
            earlier: Arc::clone(&self.earlier),
            lifecycle: Arc::clone(&self.lifecycle),
            mirror: self.mirror.clone(),
            models: Arc::clone(&self.models),
            processes: Arc::clone(&self.processes),
            setup: Arc::clone(&self.setup),
            spawner: Arc::clone(spawner),
            workers: Arc::clone(&self.workers),
        }
    }
}
