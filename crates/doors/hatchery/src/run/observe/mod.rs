//! What a running hatchery shows and tells: views, `/mon/*`, gauges, heartbeats. It reads what is there and decides nothing.

mod calls;
mod cycle;
mod disks;
mod heartbeat;
mod jobs;
mod levels;
mod names;
mod needs;
mod overview;
mod past;
mod reader;
mod status;
pub mod view;
mod vms;
mod window;
mod workers;

pub(super) use calls::CallMeter;
pub(super) use cycle::{Gauges, keep_counting};
pub(super) use heartbeat::{Heart, beat_v1, beat_v2, follow_version};
pub(super) use names::NamesSeen;
pub(super) use reader::StateReader;
pub use window::{Changes, News, Window};
