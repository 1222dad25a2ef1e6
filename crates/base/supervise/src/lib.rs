#![doc = include_str!("../README.md")]

mod backoff;
mod chain;
mod clock_watch;
mod log_writer;
mod service_manager;
mod tasks;

pub use backoff::{Attempts, Backoff};
pub use chain::Chain;
pub use clock_watch::ClockWatch;
pub use log_writer::LogWriter;
pub use service_manager::ServiceManager;
pub use tasks::{TaskHealth, Tasks};
