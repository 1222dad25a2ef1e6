//! The discovery ISO on a datastore: looked at on schedule, streamed through when it changed, never whole in memory or on a local disk.

mod cache;
mod due;
mod hashed;
mod source;

pub use cache::{IsoCache, IsoError, RefreshInput, Refreshed};
pub use due::{Due, after_refresh, due, stale_paths};
pub use source::{Fetch, Fetched, IsoSource, SourceError};
