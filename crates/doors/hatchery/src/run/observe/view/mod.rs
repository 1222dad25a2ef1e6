//! What a running hatchery shows: plain values, read from memory at one moment. Nothing here holds a secret.

mod fleet;
mod job;
mod past;
mod vm;

use std::sync::Arc;

use jiff::Timestamp;
use roost_fleet::Decision;
use serde::Serialize;

pub use fleet::{Addresses, Calls, Capacity, Deletions, Gauge, Lane, Link, Pool, Queue};
pub use job::{Job, JobDetail, JobState};
pub use past::{CallMinute, CallsPast, Fault, GuardState, MethodCalls, Seen};
pub use vm::{Stage, Vm, VmDetail, VmKind};

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub overview: Overview,
    /// Those that wait first, the oldest of them first; then those that start, run, and have ended.
    pub jobs: Vec<Job>,
    /// Our own, by name.
    pub vms: Vec<Vm>,
}

/// The whole picture in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct Overview {
    /// Another process that is at work under our name, in words.
    pub other_process: Option<String>,
    /// The hatchery's name.
    pub service: String,
    pub version: String,
    pub now: Timestamp,
    pub started: Timestamp,
    /// Whether decisions are made: everything was read once.
    pub is_open: bool,
    /// What keeps the oldest waiting job waiting.
    pub what_binds: Option<Arc<Decision>>,
    pub queue: Queue,
    /// Workers by what they go through, in the order in which they do. Spares are not among them.
    pub lanes: Vec<Lane>,
    /// In the order of the configuration.
    pub pools: Vec<Pool>,
    pub capacity: Capacity,
    /// `None` if addresses come from a DHCP server.
    pub addresses: Option<Addresses>,
    pub deletions: Deletions,
    pub link: Link,
    /// The last 20, newest last.
    pub recent: Vec<Arc<Decision>>,
}

/// One condition of being alive or ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Short and without spaces.
    pub name: &'static str,
    pub ok: bool,
    /// How it stands, for people.
    pub words: String,
}
