//! The core of the client against scripted answers, on paused time.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod calls;
mod collector;
mod login;
mod script;
mod secrets;
mod session_end;
mod stream;
