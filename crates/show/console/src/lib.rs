#![doc = include_str!("../README.md")]

#[cfg(test)]
mod fake;
mod page;
mod server;
mod settings;

pub use roost_tls::ServerTls;
pub use server::{Console, Port, Starter};
pub use settings::Settings;
