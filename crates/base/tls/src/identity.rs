use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::ParsedCertificate;

use crate::{Certificate, PemError, Thumbprint, pem};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("making a certificate")]
    Make { source: rcgen::Error },
    #[error("using the certificate")]
    Use { source: rustls::Error },
    #[error("reading the certificate and its key")]
    Pem { source: PemError },
}

/// A certificate with its key.
pub struct TlsIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl TlsIdentity {
    /// A self-signed certificate of this common name for `localhost`, the loopback addresses and `hosts`, made now.
    pub fn self_signed(common_name: &str, hosts: &[&str]) -> Result<Self, IdentityError> {
        let failed = |source| IdentityError::Make { source };
        let mut all = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        all.extend(hosts.iter().filter(|host| !is_wildcard(host)).map(ToString::to_string));
        all.sort();
        all.dedup();
        let mut params = CertificateParams::new(all).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Roost");
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self { chain: vec![certificate.der().clone()], key: key.into() })
    }

    /// A certificate chain, leaf first, and its key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let failed = |source| IdentityError::Pem { source };
        let chain = pem::certificates(chain).map_err(failed)?;
        Ok(Self { chain, key: pem::private_key(key).map_err(failed)? })
    }

    /// The leaf certificate, for a client that is to trust it.
    pub fn certificate_der(&self) -> &[u8] {
        self.chain.first().map(AsRef::as_ref).unwrap_or_default()
    }

    /// What the leaf certificate says of itself.
    pub fn certificate(&self) -> Option<Certificate> {
        Certificate::read(self.certificate_der())
    }

    /// Whether the leaf certificate is one for this name or address.
    pub fn is_for(&self, host: &str) -> bool {
        let Some(leaf) = self.chain.first() else { return false };
        let (Ok(name), Ok(parsed)) =
            (ServerName::try_from(host), ParsedCertificate::try_from(leaf))
        else {
            return false;
        };
        verify_server_name(&parsed, &name).is_ok()
    }

    pub fn certificate_pem(&self) -> String {
        let blocks = self.chain.iter().map(|one| block("CERTIFICATE", one));
        blocks.collect::<Vec<_>>().concat()
    }

    /// PKCS#8, for a server that reads it from a file.
    pub fn key_pem(&self) -> String {
        block("PRIVATE KEY", self.key.secret_der())
    }

    pub fn thumbprint(&self) -> Thumbprint {
        Thumbprint::of(self.certificate_der())
    }

    /// For a server that takes no client certificates.
    pub fn server_config(self) -> Result<Arc<ServerConfig>, IdentityError> {
        let failed = |source| IdentityError::Use { source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(self.chain, self.key)
            .map_err(failed)?;
        Ok(Arc::new(config))
    }
}

fn block(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
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
