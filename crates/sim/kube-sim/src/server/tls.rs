use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("listening on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("making a certificate")]
    MakeCertificate { source: rcgen::Error },
    #[error("using the certificate")]
    UseCertificate { source: rustls::Error },
}

/// A self-signed certificate with its key.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    pub(super) pem: String,
}

impl Identity {
    /// For `localhost`, the loopback addresses and `name`.
    pub(super) fn self_signed(name: &str) -> Result<Self, ServeError> {
        let failed = |source| ServeError::MakeCertificate { source };
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let is_wildcard = name.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        if !is_wildcard && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Roost");
        params.distinguished_name.push(DnType::CommonName, "kube-sim");
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let pem = certificate.pem();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self { certificate: certificate.der().clone(), key: key.into(), pem })
    }

    pub(super) fn acceptor(self) -> Result<TlsAcceptor, ServeError> {
        let failed = |source| ServeError::UseCertificate { source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key)
            .map_err(failed)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
