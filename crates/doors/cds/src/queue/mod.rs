//! Which jobs wait: pushed by websocket, polled every 20 s for what a push missed.

mod feed;
mod health;
mod watch;

pub use health::QueueHealth;
pub use watch::{JobHint, QueueSettings, QueueWatch, WaitingJob};
