//! `roost agent-forge` as its users run it.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod demo;
mod neighbours;
mod real;
mod whole;
#[path = "../wire/mod.rs"]
mod wire;
