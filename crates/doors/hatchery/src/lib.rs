#![doc = include_str!("../README.md")]

pub mod annotation;
pub mod attempts;
pub mod clone_spec;
pub mod cold;
pub mod config;
pub mod doctor;
pub mod door;
pub mod flavor;
mod front_door;
pub mod job;
pub mod messages;
pub mod metrics;
pub mod model;
pub mod names;
pub mod plan;
#[doc(hidden)]
pub mod planted;
pub mod pool;
pub mod process;
pub mod refusal;
pub mod retire;
pub mod run;
pub mod spares;
pub mod status;
mod time;

pub use front_door::{Build, HatcheryDoor, WORDS};
