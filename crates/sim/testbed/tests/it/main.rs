//! The toy door at work, alone, beside another, and as a controller.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod controller;
mod toy;
#[path = "../../../../kube/controller/tests/it/wire.rs"]
mod wire;
