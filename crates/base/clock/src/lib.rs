#![doc = include_str!("../README.md")]

mod random;
mod time;

pub use random::Random;
pub use time::{Clock, SimClock, SystemClock};
