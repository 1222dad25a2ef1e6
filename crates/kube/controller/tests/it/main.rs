//! Controllers on the embedded API server, on paused time.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod events;
mod lab;
mod leader;
mod passes;
mod toy;
mod writes;
