//! The certificate that the server shows.

use std::fmt;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use super::ServeError;

/// A certificate with its key.
pub struct TlsIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl TlsIdentity {
    /// A self-signed certificate for `localhost`, the loopback addresses and `names`, made now.
    pub fn self_signed(names: &[&str]) -> Result<Self, ServeError> {
        let failed = |source| ServeError::MakeCertificate { source };
        let mut all = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        all.extend(names.iter().filter(|name| !is_wildcard(name)).map(ToString::to_string));
        all.sort();
        all.dedup();
        let mut params = CertificateParams::new(all).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Roost");
        params.distinguished_name.push(DnType::CommonName, "vCenter simulator");
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self { chain: vec![certificate.der().clone()], key: key.into() })
    }

    /// A certificate chain, leaf first, and its key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ServeError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain =
            certificates.map_err(|source| ServeError::ReadPem { what: "certificate", source })?;
        if chain.is_empty() {
            let source = rustls::pki_types::pem::Error::NoItemsFound;
            return Err(ServeError::ReadPem { what: "certificate", source });
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        Ok(Self { chain, key: key.map_err(|source| ServeError::ReadPem { what: "key", source })? })
    }

    /// The leaf certificate, for a client that is to trust it.
    pub fn certificate_der(&self) -> &[u8] {
        self.chain.first().map(AsRef::as_ref).unwrap_or_default()
    }

    /// SHA-256 of the leaf certificate: upper-case octets joined by colons.
    pub fn thumbprint(&self) -> String {
        let mut text = String::with_capacity(95);
        for (index, octet) in Sha256::digest(self.certificate_der()).iter().enumerate() {
            let _ = write!(text, "{}{octet:02X}", if index == 0 { "" } else { ":" });
        }
        text
    }

    pub(super) fn acceptor(self) -> Result<TlsAcceptor, ServeError> {
        let failed = |source| ServeError::UseCertificate { source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(self.chain, self.key)
            .map_err(failed)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// `0.0.0.0` and the like are where one listens, not who one is.
fn is_wildcard(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity")
            .field("thumbprint", &self.thumbprint())
            .finish_non_exhaustive()
    }
}
