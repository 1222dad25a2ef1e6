//! Events: what happened in the inventory, as the server wrote it down. They age out, so that no fact that matters may rest on
//! them alone.

mod error;
mod query;
mod tail;

pub use error::EventError;
pub use query::{EventQuery, Recursion};
pub use tail::{EventTail, TailFrom};
