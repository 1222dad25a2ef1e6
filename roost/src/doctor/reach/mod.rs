//! How far a connection to a server gets: name, port, certificate. Both systems are reached the same way.

mod judge;
mod probe;
mod proxy;

pub(super) use self::judge::{TrustWords, judge, obstacle};
use self::probe::Reach;
pub(super) use self::probe::probe;

use roost_vim::TlsTrust;

/// A server, and whose certificate is believed there.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// `None` without TLS.
    pub(super) trust: Option<TlsTrust>,
}

impl Target {
    pub(super) fn place(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}
