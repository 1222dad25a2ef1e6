//! The door against embedded and real API servers and an embedded vCenter.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod access;
mod behaviours;
mod beyond;
mod campaign;
mod cost;
mod definitions;
mod front_door;
mod happy;
mod hardware;
mod inventory;
mod iso;
mod lab;
mod real;
mod weaknesses;
