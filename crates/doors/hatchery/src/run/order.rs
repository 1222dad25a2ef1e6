use std::sync::Arc;

use jiff::Timestamp;
use roost_fleet::{Reservation, Vm};

use crate::flavor::Flavor;
use crate::job::Job;
use crate::model::WorkerModel;

/// A worker that is to be started: everything that it takes is reserved, and nothing outside knows of it yet.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) job: Arc<Job>,
    pub(crate) model: Arc<WorkerModel>,
    pub(crate) flavor: Option<Flavor>,
    /// What a cold start clones. A warm start has its VM in the reservation.
    pub(crate) template: Arc<Vm>,
    /// The worker's name, which becomes that of the VM.
    pub(crate) worker: Arc<str>,
    pub(crate) reservation: Reservation,
    /// Which attempt for this job it is, from 1.
    pub(crate) attempt: u32,
    pub(crate) ordered: Timestamp,
}

/// How an order ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The worker's script runs in its VM.
    Started,
    /// CDS did not give us the job: it is somebody else's, or is gone. Nothing was made.
    NotOurs,
    /// Nothing was made, and the job waits on: CDS could not be reached, or could not say.
    NotTaken,
    /// It was taken and given back; what was made of a VM is marked for deletion.
    Failed,
}
