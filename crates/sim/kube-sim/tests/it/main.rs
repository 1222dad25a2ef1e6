//! One binary for all scenarios: each binary costs link time.
#![allow(clippy::unwrap_used, reason = "it is a test")]

mod access;
mod applying;
mod basics;
mod custom_resources;
mod deleting;
mod differential;
mod failing;
mod kubectl;
mod many;
mod watching;
mod wire;
mod world;
