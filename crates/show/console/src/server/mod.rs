//! The HTTP server.

mod access;
mod actions;
mod answer;
mod api;
mod app;
mod connections;
mod events;
mod guarded;
mod meter;
mod metrics;
#[cfg(test)]
mod openapi;
mod pages;
mod port;
mod probes;
mod refusals;
mod starting;
#[cfg(test)]
mod stress_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;

use std::sync::Arc;

use roost_door::House;

pub use self::port::Port;
pub use self::starting::Starter;
use crate::Settings;

/// A running service, and who may look at it and steer it.
#[derive(Debug, Clone)]
pub struct Console {
    pub house: Arc<House>,
    pub settings: Settings,
}
