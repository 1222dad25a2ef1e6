//! Controllers on the embedded API server, on paused time.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod access;
mod campaign;
mod causes;
mod definitions;
mod events;
mod lab;
mod leader;
mod passes;
mod real;
mod selected;
mod serving;
mod toy;
mod webhooks;
mod wire;
mod writes;
