//! The core of the client against the embedded vCenter, in process and on paused time.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod campaign;
mod lab;
mod leftovers;
mod session;
mod stream;
mod tasks;
