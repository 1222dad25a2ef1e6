#![doc = include_str!("../README.md")]

mod add;
mod backoff;
mod levels;
mod line;
mod metrics;
mod moment;
mod queue;
mod record;
mod settings;
mod state;
mod tally;

pub use add::{Add, Delay};
pub use metrics::Metrics;
pub use queue::{Taken, Workqueue};
pub use settings::{Ageing, Backoff, Order, PriorityLabels, Settings};
