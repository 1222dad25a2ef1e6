//! The worker that runs in simulated guests: it signs in with the token that its hatchery made for it, takes its job, works
//! for a while, says how it went, and ends.

mod main;
mod run;
mod script;
mod talk;

pub use main::worker_main;
pub use run::{Worker, WorkerEnd, WorkerError};
