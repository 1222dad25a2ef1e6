#![doc = include_str!("../README.md")]

pub mod access;
pub mod api;
#[cfg(test)]
mod behaviours;
pub mod bootstrap;
pub mod class;
mod flow;
mod front_door;
pub mod images;
pub mod planted;
pub mod priority;
mod provider;
mod run;
pub mod webhook;

pub use flow::{FlowSettings, PassError};
pub use front_door::{VmDoor, WORDS};
pub use provider::{
    CREATES, DOOR, EXTENSION_KEY, FastDeployMode, Features, OWNER, OwnVms, ProviderSettings,
    READ_INSTEAD, Zone,
};
pub use run::{
    CREDENTIALS_SECRET, ImageSources, PROVIDER_CONFIG_MAP, ProviderConfig, RateLimit, VmOperator,
    VmOperatorSettings,
};
