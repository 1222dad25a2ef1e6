//! HTTPS, and whom a client's certificate names.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that opens a connection and says nothing must not keep it.
const GREET_WITHIN: Duration = Duration::from_secs(10);

/// Longer names are cut: they stand in a journal that is kept in memory.
const MAX_NAME: usize = 80;

/// The certificate that the server shows, and whose clients it takes at their certificates.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    takes_certificates: bool,
}

/// What of it cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPart {
    Certificate,
    Key,
    ClientCa,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("holds no certificate in PEM form")]
    Certificate { source: pem::Error },
    #[error("holds no private key in PEM form")]
    Key { source: pem::Error },
    #[error("the key is not that of the certificate, or one of them cannot be used")]
    Pair { source: rustls::Error },
    #[error("holds no certificate in PEM form")]
    ClientCa { source: pem::Error },
    #[error("holds a certificate that cannot be used")]
    ClientCaUnusable { source: rustls::Error },
    #[error("holds nothing by which clients could be verified")]
    ClientVerifier { source: VerifierBuilderError },
    #[error("TLS cannot be set up")]
    Setup { source: rustls::Error },
}

impl TlsError {
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

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { takes_certificates, .. } = self;
        f.debug_struct("Tls")
            .field("takes_certificates", takes_certificates)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// All in PEM form. `chain` begins with the server's own certificate. With `client_ca`, a client may show a certificate that one of these
    /// authorities signed, and then needs no token; one whose certificate is not good is not let in, one without goes on as before.
    pub fn from_pem(chain: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<Self, TlsError> {
        let chain = certificates(chain).map_err(|source| TlsError::Certificate { source })?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Key { source })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| TlsError::Setup { source })?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(client_ca) => {
                let mut roots = RootCertStore::empty();
                let found = certificates(client_ca);
                for authority in found.map_err(|source| TlsError::ClientCa { source })? {
                    roots.add(authority).map_err(|source| TlsError::ClientCaUnusable { source })?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated()
                        .build()
                        .map_err(|source| TlsError::ClientVerifier { source })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config =
            builder.with_single_cert(chain, key).map_err(|source| TlsError::Pair { source })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), takes_certificates: client_ca.is_some() })
    }

    pub(crate) fn takes_certificates(&self) -> bool {
        self.takes_certificates
    }

    /// Greets a client. Whoever has shown a good certificate is named by it.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Arc<str>>)> {
        let greeting = TlsAcceptor::from(Arc::clone(&self.config)).accept(stream);
        let stream = timeout(GREET_WITHIN, greeting).await.map_err(io::Error::from)??;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let name = shown.map(|certificate| name_in(certificate));
        Ok((stream, name))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) }
}

fn name_in(certificate: &[u8]) -> Arc<str> {
    let name = common_name(certificate).unwrap_or_default();
    let plain = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let plain: String = plain.take(MAX_NAME).collect();
    match plain.trim() {
        "" => "somebody without a common name".into(),
        name => name.into(),
    }
}

// Tags of DER, as far as a subject needs them.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const VERSION: u8 = 0xa0;
/// UTF8String, PrintableString, IA5String.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The common name of a certificate's subject. The certificate was verified before: this reads, and judges nothing.
fn common_name(certificate: &[u8]) -> Option<String> {
    let mut outer = certificate;
    let mut signed = value(&mut outer, SEQUENCE)?;
    let mut fields = value(&mut signed, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        next(&mut fields)?;
    }
    // Serial number, algorithm, issuer, validity.
    for _ in 0..4 {
        next(&mut fields)?;
    }
    let mut subject = value(&mut fields, SEQUENCE)?;
    while !subject.is_empty() {
        let mut set = value(&mut subject, SET)?;
        while !set.is_empty() {
            let mut pair = value(&mut set, SEQUENCE)?;
            let (kind, (tag, text)) = (value(&mut pair, OBJECT_ID)?, next(&mut pair)?);
            if kind == COMMON_NAME && TEXTS.contains(&tag) {
                return std::str::from_utf8(text).ok().map(str::to_owned);
            }
        }
    }
    None
}

fn value<'a>(input: &mut &'a [u8], wanted: u8) -> Option<&'a [u8]> {
    next(input).filter(|(tag, _)| *tag == wanted).map(|(_, value)| value)
}

/// Takes one value with its tag.
fn next<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let [tag, first, rest @ ..] = *input else { return None };
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some((*tag, value))
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
            let _ = common_name(&der[..cut]);
            let mut bent = der.clone();
            bent[cut] ^= 0xff;
            let _ = common_name(&bent);
        }
        assert_eq!(common_name(&[]), None);
    }

    #[test]
    fn what_cannot_be_used_is_told_by_its_file() {
        let (chain, key, _) = certificate(&named(&[]));
        let other = KeyPair::generate().unwrap().serialize_pem();
        let part = |chain: &str, key: &str, ca: Option<&str>| {
            let made = Tls::from_pem(chain.as_bytes(), key.as_bytes(), ca.map(str::as_bytes));
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
        let tls = Tls::from_pem(chain.as_bytes(), key.as_bytes(), None).unwrap();
        assert_eq!(format!("{tls:?}"), "Tls { takes_certificates: false, .. }");
    }
}
