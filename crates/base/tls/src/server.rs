//! HTTPS, and whom a client's certificate names.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::ring;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::reload::Watched;
use crate::{Certificate, PemError, pem};

/// A client that opens a connection and says nothing must not keep it.
const GREET_WITHIN: Duration = Duration::from_secs(10);

/// Longer names are cut: they stand in a journal that is kept in memory.
const MAX_NAME: usize = 80;

/// The certificate that the server shows, and whose clients it takes at their certificates.
#[derive(Clone)]
pub struct ServerTls {
    shared: Arc<Shared>,
}

struct Shared {
    config: RwLock<Arc<ServerConfig>>,
    takes_certificates: bool,
    /// `None`: what was given does not change.
    watched: Option<Watched>,
}

/// What of it cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPart {
    Certificate,
    Key,
    ClientCa,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    #[error("the certificate")]
    Certificate { source: PemError },
    #[error("the key")]
    Key { source: PemError },
    #[error("the key is not that of the certificate, or one of them cannot be used")]
    Pair { source: rustls::Error },
    #[error("the authorities of clients")]
    ClientCa { source: PemError },
    #[error("holds a certificate that cannot be used")]
    ClientCaUnusable { source: rustls::Error },
    #[error("holds nothing by which clients could be verified")]
    ClientVerifier { source: VerifierBuilderError },
    #[error("TLS cannot be set up")]
    Setup { source: rustls::Error },
}

impl ServerTlsError {
    /// Whose file is to be looked at.
    pub fn part(&self) -> TlsPart {
        match self {
            Self::Certificate { .. } | Self::Setup { .. } => TlsPart::Certificate,
            Self::Key { .. } | Self::Pair { .. } => TlsPart::Key,
            Self::ClientCa { .. } | Self::ClientCaUnusable { .. } | Self::ClientVerifier { .. } => {
                TlsPart::ClientCa
            }
        }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls")
            .field("takes_certificates", &self.takes_certificates())
            .finish_non_exhaustive()
    }
}

impl ServerTls {
    /// All in PEM form. `chain` begins with the server's own certificate. With `client_ca`, a client may show a certificate that one of these
    /// authorities signed; one whose certificate is not good is not let in, one without goes on as before.
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        client_ca: Option<&[u8]>,
    ) -> Result<Self, ServerTlsError> {
        Ok(Self::new(config(chain, key, client_ca)?, client_ca.is_some(), None))
    }

    pub(crate) fn new(
        config: ServerConfig,
        takes_certificates: bool,
        watched: Option<Watched>,
    ) -> Self {
        let config = RwLock::new(Arc::new(config));
        Self { shared: Arc::new(Shared { config, takes_certificates, watched }) }
    }

    /// What the next client is greeted with.
    pub fn current(&self) -> Arc<ServerConfig> {
        if let Some(renewed) = self.shared.watched.as_ref().and_then(Watched::look) {
            let mut config = self.shared.config.write().unwrap_or_else(PoisonError::into_inner);
            *config = renewed;
        }
        Arc::clone(&self.shared.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a client may show a certificate.
    pub fn takes_certificates(&self) -> bool {
        self.shared.takes_certificates
    }

    /// Greets a client. Whoever has shown a good certificate is named by it.
    pub async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Arc<str>>)> {
        let greeting = TlsAcceptor::from(self.current()).accept(stream);
        let stream = timeout(GREET_WITHIN, greeting).await.map_err(io::Error::from)??;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let name = shown.map(|certificate| name_in(certificate));
        Ok((stream, name))
    }
}

pub(crate) fn config(
    chain: &[u8],
    key: &[u8],
    client_ca: Option<&[u8]>,
) -> Result<ServerConfig, ServerTlsError> {
    let chain =
        pem::certificates(chain).map_err(|source| ServerTlsError::Certificate { source })?;
    let key = pem::private_key(key).map_err(|source| ServerTlsError::Key { source })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| ServerTlsError::Setup { source })?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(client_ca) => {
            let mut roots = RootCertStore::empty();
            let found = pem::certificates(client_ca);
            for authority in found.map_err(|source| ServerTlsError::ClientCa { source })? {
                roots
                    .add(authority)
                    .map_err(|source| ServerTlsError::ClientCaUnusable { source })?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|source| ServerTlsError::ClientVerifier { source })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config =
        builder.with_single_cert(chain, key).map_err(|source| ServerTlsError::Pair { source })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn name_in(certificate: &[u8]) -> Arc<str> {
    let name = Certificate::read(certificate).and_then(|read| read.common_name).unwrap_or_default();
    let plain = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let plain: String = plain.take(MAX_NAME).collect();
    match plain.trim() {
        "" => "somebody without a common name".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(name: &DistinguishedName) -> (String, String, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = name.clone();
        let made = params.self_signed(&key).unwrap();
        (made.pem(), key.serialize_pem(), made.der().to_vec())
    }

    fn named(parts: &[(DnType, &str)]) -> DistinguishedName {
        let mut name = DistinguishedName::new();
        for (kind, text) in parts {
            name.push(kind.clone(), *text);
        }
        name
    }

    #[test]
    fn a_certificate_is_known_by_its_common_name() {
        for (parts, wanted) in [
            (vec![(DnType::CommonName, "ada")], "ada"),
            (vec![(DnType::OrganizationName, "Ops"), (DnType::CommonName, "Ada L.")], "Ada L."),
            (vec![(DnType::CommonName, "אדה\nDELETE")], "אדה DELETE"),
            (vec![(DnType::OrganizationName, "Ops")], "somebody without a common name"),
            (vec![], "somebody without a common name"),
        ] {
            assert_eq!(&*name_in(&certificate(&named(&parts)).2), wanted);
        }
    }

    #[test]
    fn what_is_no_certificate_names_nobody_and_breaks_nothing() {
        let (_, _, der) = certificate(&named(&[(DnType::CommonName, "ada")]));
        for cut in 0..der.len() {
            let _ = name_in(&der[..cut]);
            let mut bent = der.clone();
            bent[cut] ^= 0xff;
            let _ = name_in(&bent);
        }
        assert_eq!(&*name_in(&[]), "somebody without a common name");
    }

    #[test]
    fn what_cannot_be_used_is_told_by_its_file() {
        let (chain, key, _) = certificate(&named(&[]));
        let other = KeyPair::generate().unwrap().serialize_pem();
        let part = |chain: &str, key: &str, ca: Option<&str>| {
            let made = ServerTls::from_pem(chain.as_bytes(), key.as_bytes(), ca.map(str::as_bytes));
            made.map(|_| ()).map_err(|error| error.part())
        };
        assert_eq!(part(&chain, &key, None), Ok(()));
        assert_eq!(part(&chain, &key, Some(&chain)), Ok(()));
        assert_eq!(part(&key, &key, None), Err(TlsPart::Certificate));
        assert_eq!(part("", &key, None), Err(TlsPart::Certificate));
        assert_eq!(part(&chain, &chain, None), Err(TlsPart::Key));
        assert_eq!(part(&chain, &other, None), Err(TlsPart::Key));
        assert_eq!(part(&chain, &key, Some("")), Err(TlsPart::ClientCa));
    }

    #[test]
    fn the_key_is_not_in_what_is_printed() {
        let (chain, key, _) = certificate(&named(&[]));
        let tls = ServerTls::from_pem(chain.as_bytes(), key.as_bytes(), None).unwrap();
        assert_eq!(format!("{tls:?}"), "ServerTls { takes_certificates: false, .. }");
    }
}
