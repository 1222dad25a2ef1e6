#![doc = include_str!("../README.md")]

mod site;
mod toy;

pub use site::{InProcess, Site};
pub use toy::{ADDRESS, MACHINES, OWNER, SLOT, TOY, Toy, ToySettings, ToyVms};
