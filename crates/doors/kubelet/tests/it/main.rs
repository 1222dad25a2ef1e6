//! Scenarios of a virtual node on simulated time: the real kubelet between an embedded API server and a simulated host.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod accidents;
mod hibernate;
mod lab;
mod lifecycle;
mod node;
