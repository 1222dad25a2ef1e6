//! The mirror on a simulated vCenter, on paused time.

mod lab;
mod outages;
mod reading;
mod writing;
