//! The manager: watches, controllers, signals, probes, metrics.

mod cache_files;
mod caches;
mod collect;
mod console;
mod discovery;
mod door;
mod environment;
mod extension;
mod groups;
mod linked_trial;
mod metrics;
pub(crate) mod owner;
mod policies;
mod probes;
mod reconciler;
mod replica_sets;
mod services;
mod signals;
mod snapshots;

pub use self::discovery::ImageSources;
pub use self::door::{VmOperator, VmOperatorSettings};
pub use self::environment::{CREDENTIALS_SECRET, PROVIDER_CONFIG_MAP, ProviderConfig, RateLimit};
pub(crate) use self::metrics::VmMetrics;
pub(crate) use self::probes::Probes;
