#![doc = include_str!("../README.md")]

pub mod access;
pub mod api;
mod control;
mod forge;
mod front_door;
pub mod identity;
pub mod iso;
mod metrics;
mod names;
pub mod outside;
pub mod plan;
pub mod planted;
pub mod vcenter;

pub use control::may_use;
pub use forge::{Forge, ForgeParts, machine_version};
pub use front_door::{ForgeDoor, WORDS};
pub use metrics::{Capacity, Metrics, Operation, Outcome};
pub use names::{alternate_name, label_value};
