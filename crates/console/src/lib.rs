#![doc = include_str!("../README.md")]

#[cfg(test)]
mod fake;
mod feed;
mod server;
mod settings;
mod source;
mod steer;
pub mod views;

pub use feed::{Feed, Subscription};
pub use server::serve;
pub use settings::Settings;
pub use source::{Answered, Source};
pub use steer::{Action, Refused, Steer};
