//! The core of the client against scripted answers, on paused time.

mod calls;
mod collector;
mod login;
mod script;
mod secrets;
mod session_end;
mod stream;
