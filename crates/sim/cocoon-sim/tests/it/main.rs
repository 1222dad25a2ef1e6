//! The client of `cocoon` and of the registry against the simulated host: real processes, real HTTP on loopback.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod cocoon;
mod registry;
