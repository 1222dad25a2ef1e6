#![doc = include_str!("../README.md")]

mod api;
mod arrivals;
mod clients;
mod control;
mod control_endpoint;
mod demand;
mod faults;
mod glob;
mod handlers;
mod history;
mod incoming;
mod keys;
mod options;
mod reply;
mod routes;
mod server;
mod summary;
mod worker;
mod world;

pub use api::CdsApi;
pub use arrivals::Arrivals;
pub use clients::{Clients, Tally};
pub use control::WorkerReport;
pub use demand::{Outcome, V1Demand, V2Demand, Work};
pub use faults::{EventFault, Fault};
pub use history::{DoubleWorker, HistoryEntry, JobEvent, JobReport};
pub use keys::demo_hatchery_key;
pub use options::{Consumer, Hatchery, Options, Timings};
pub use server::Server;
pub use summary::Summary;
pub use worker::{Worker, WorkerEnd, WorkerError, worker_main};
