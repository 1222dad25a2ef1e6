//! Scenarios of a virtual node on simulated time: the real kubelet between an embedded API server and a simulated host.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod access;
mod accidents;
mod campaign;
mod checker;
mod create;
mod front_door;
mod hibernate;
mod lab;
mod lifecycle;
mod node;
mod probes;
