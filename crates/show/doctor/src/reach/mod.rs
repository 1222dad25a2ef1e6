//! How far a connection to a server gets: name, port, certificate.

mod judge;
mod probe;
mod proxy;

pub use self::judge::{TrustWords, judge, obstacle};
pub use self::probe::{Reach, probe};

use roost_tls::TlsTrust;

/// A server, and whose certificate is believed there.
#[derive(Debug, Clone)]
pub struct Target {
    /// Without brackets.
    pub host: String,
    pub port: u16,
    /// `None` without TLS.
    pub trust: Option<TlsTrust>,
}

impl Target {
    pub fn place(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}
