//! One binary for all scenarios: each binary costs link time.
#![allow(clippy::unwrap_used, reason = "it is a test")]

mod access;
mod applying;
mod basics;
mod conversion;
mod custom_resources;
mod deleting;
mod differential;
mod draw;
mod failing;
mod kubectl;
mod many;
mod watching;
mod wire;
mod world;
