//! The client of `cocoon` and of the registry against the simulated host, and a kubelet on it and on QEMU under a real API server: real processes, real HTTP on loopback.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod cluster;
mod cocoon;
mod kubelet;
mod lab;
mod qemu;
mod registry;
