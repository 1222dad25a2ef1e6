//! Servers of a controller process: probes, metrics, webhooks. Every replica serves, whether it leads or not.

mod access;
mod listen;
mod probes;

pub use access::Access;
pub use listen::{Tls, serve};
pub use probes::{metrics_router, probe_router};
