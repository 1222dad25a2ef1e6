//! The mirror on a simulated vCenter, on paused time.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod lab;
mod outages;
mod reading;
mod writing;
