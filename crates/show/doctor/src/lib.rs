#![doc = include_str!("../README.md")]

pub mod clock;
mod patience;
pub mod reach;
mod report;
mod telling;
mod text;

pub use clock::{Clocks, Skew};
pub use patience::{
    CALL, CONNECT, GOODBYE, HANDSHAKE, INVENTORY, LOGIN, NAME, QUESTIONS, SIGN_IN, told, within,
};
pub use report::{Counts, Fact, Finding, Section, Verdict};
pub use telling::Telling;
