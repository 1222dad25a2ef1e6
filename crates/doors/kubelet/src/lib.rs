#![doc = include_str!("../README.md")]

mod contract;
mod kubelet;
mod metrics;
mod node;
mod pods;
mod settings;
#[cfg(test)]
mod testing;

pub use contract::key;
pub use kubelet::{Kubelet, KubeletParts, StartError};
pub use node::Resources;
pub use pods::{NoPinger, OrphanPolicy, Pinger, StartupError};
pub use settings::{Problem, Settings};
