#![doc = include_str!("../README.md")]

mod ask;
mod interruption;
mod output;
mod tell;
pub mod terminal;
mod top;

pub use ask::{Ask, Reach, ServiceAddress, Surroundings, run as ask};
pub use interruption::interruption;
pub use output::{complain, deliver, say};
pub use tell::{Tell, run as tell};
pub use top::{Top, run as top};
