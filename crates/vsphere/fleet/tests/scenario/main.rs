//! The mirror on a simulated vCenter, on paused time.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod close_up;
mod lab;
mod making;
mod outages;
mod outfit;
mod reading;
mod writing;
