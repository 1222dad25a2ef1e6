//! The API as its clients see it.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod arrivals;
mod calls;
mod control_endpoint;
mod doors;
mod heartbeat;
mod jobs;
mod lab;
mod queue;
mod replay;
mod secrets;
mod sign_in;
mod wire;
