#![doc = include_str!("../README.md")]

pub mod access;
mod api;
#[cfg(test)]
mod behaviours;
mod contract;
mod front_door;
mod kubelet;
mod metrics;
mod node;
pub mod planted;
mod pods;
mod serving;
mod settings;
#[cfg(test)]
mod testing;
mod usage;

pub use api::KubeletApi;
pub use contract::key;
pub use front_door::{KubeletCore, KubeletDoor, WORDS};
pub use kubelet::{Kubelet, KubeletParts, StartError};
pub use node::ResourceOverrides;
pub use pods::{NoPinger, OrphanPolicy, Pinger, StartupError};
pub use serving::{ServingError, serving_tls};
pub use settings::{Problem, QemuVariables, Settings};
