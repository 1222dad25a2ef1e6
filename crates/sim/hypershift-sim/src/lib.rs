#![doc = include_str!("../README.md")]

mod assisted;
mod capi;
mod isos;
mod kinds;
mod provider;
mod sim;

pub use assisted::{Boot, Guests, Looking};
pub use isos::Isos;
pub use kinds::neighbour_crds;
pub use sim::{Hypershift, RefBy, SimSettings, Summary};
