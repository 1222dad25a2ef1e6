//! What happens in the simulated datacenter, told as stories on paused time.
#![allow(clippy::unwrap_used, reason = "it is a test")]
#![allow(clippy::large_futures, reason = "a story holds all that it tells of")]

mod announce;
mod clone;
mod device;
mod event;
mod exec;
mod file;
mod guest;
#[path = "../lab/mod.rs"]
mod lab;
mod pool;
mod power;
mod provision;
mod reconfigure;
mod replay;
mod shape;
mod snapshot;
mod story;
mod task;
