#![doc = include_str!("../README.md")]

#[cfg(test)]
mod fake;
mod feed;
mod page;
mod server;
mod settings;
mod source;
mod steer;
pub mod views;

pub use feed::{Feed, Subscription};
pub use roost_tls::ServerTls;
pub use server::{Console, serve};
pub use settings::Settings;
pub use source::{Answered, Source};
pub use steer::{Acting, Action, Found, Order, Person, Refused, Shown, Steer};
