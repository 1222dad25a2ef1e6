use std::error::Error;
use std::time::Duration;

use jiff::Timestamp;

/// When to look at an object again, after a pass without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When a watch, a signal or the resync timer says so.
    AwaitChange,
    At(Timestamp),
    After(Duration),
    /// As soon as the key's back-off allows: 5 ms, then 10, 20, ... until a pass ends otherwise.
    Now,
}

/// What an error asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Try again, each time later.
    Backoff,
    /// Try again after this time; zero is back-off. Not counted as an error.
    After(Duration),
    /// Retrying is useless until somebody changes something. Counted and logged; a later change still causes a pass.
    Person,
    /// No error at all: the step that was started will signal its end.
    AwaitChange,
}

/// An error of a reconciler. `remedy` is matched without `_`, so that a new variant is decided upon.
pub trait Remedial: Error + Send + Sync + 'static {
    fn remedy(&self) -> Remedy;
}

impl Remedial for std::convert::Infallible {
    fn remedy(&self) -> Remedy {
        match *self {}
    }
}
