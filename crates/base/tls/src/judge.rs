//! Saying beforehand what a connection would make of a certificate, and why.

use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};

use crate::verifier::Verifier;
use crate::{Pins, TlsTrust, TrustError};

/// Why a certificate is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// An authority of the machine or of the CA file vouches for it.
    Authority,
    /// It is the one whose thumbprint was pinned.
    Thumbprint,
    /// Everyone is believed.
    Anyone,
}

/// Why a certificate is not believed.
#[derive(Debug, thiserror::Error)]
pub enum Disbelief {
    #[error("the trust cannot be set up")]
    Trust { source: TrustError },
    #[error("the server showed no certificate")]
    NoCertificate,
    #[error("the host name cannot be in a certificate")]
    Name { source: InvalidDnsNameError },
    #[error("{source}")]
    Refused { source: rustls::Error },
}

impl TlsTrust {
    /// What a connection to `host` makes of the certificate chain that the server shows, leaf first.
    pub fn judge(
        &self,
        host: &str,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Belief, Disbelief> {
        let (leaf, intermediates) = chain.split_first().ok_or(Disbelief::NoCertificate)?;
        if *self == Self::Insecure {
            return Ok(Belief::Anyone);
        }
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host).map_err(|source| Disbelief::Name { source })?;
        let verifier =
            Verifier::new(self, Pins::default()).map_err(|source| Disbelief::Trust { source })?;
        let verify = |by: &dyn ServerCertVerifier| {
            by.verify_server_cert(leaf, intermediates, &name, &[], now)
        };
        verify(&verifier).map_err(|source| Disbelief::Refused { source })?;
        let is_vouched_for = verifier.authorities.is_some_and(|by| verify(&*by).is_ok());
        Ok(if is_vouched_for { Belief::Authority } else { Belief::Thumbprint })
    }
}
