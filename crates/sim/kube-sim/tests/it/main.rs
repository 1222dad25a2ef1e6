//! One binary for all scenarios: each binary costs link time.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod basics;
mod custom_resources;
mod deleting;
mod watching;
mod world;
