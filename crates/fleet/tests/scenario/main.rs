//! The mirror on a simulated vCenter, on paused time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lab;
mod outages;
mod reading;
mod writing;
