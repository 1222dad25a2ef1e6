#![doc = include_str!("../README.md")]

mod archive;
pub mod cli;
mod fault;
mod host;
mod registry;
mod runtime;

pub use fault::{Fault, Faults};
pub use host::{Host, Refusal};
pub use registry::{Effect as RegistryEffect, EpochRegistry, RegistryFault};
pub use runtime::{SimRuntime, Timings};
