#![doc = include_str!("../README.md")]

mod backoff;
mod chain;
mod service_manager;
mod tasks;

pub use backoff::{Attempts, Backoff};
pub use chain::Chain;
pub use service_manager::ServiceManager;
pub use tasks::{TaskHealth, Tasks};
