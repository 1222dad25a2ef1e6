//! Which certificates are believed.
//!
//! Normal verification comes first. A certificate that it does not accept is still believed if its thumbprint was pinned, for all
//! hosts by the operator or for one host by an answer of a trusted server. The handshake's signature is always
//! verified: a pinned certificate without its key is worth nothing.

mod judge;

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};

pub use self::judge::{Belief, Disbelief};
use crate::TransportError;

/// SHA-256 of a certificate in DER form, written as 32 octets in hex with or without colons.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thumbprint([u8; 32]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThumbprintError {
    #[error(
        "{text:?} is a SHA-1 thumbprint, which can be forged; give the SHA-256 one (32 octets)"
    )]
    Sha1 { text: String },
    #[error("{text:?} is not a SHA-256 thumbprint: 32 octets in hex, such as 4C:3D:58:...")]
    Malformed { text: String },
}

impl Thumbprint {
    pub fn of(certificate_der: &[u8]) -> Self {
        Self(Sha256::digest(certificate_der).into())
    }
}

impl FromStr for Thumbprint {
    type Err = ThumbprintError;

    fn from_str(text: &str) -> Result<Self, ThumbprintError> {
        let malformed = || ThumbprintError::Malformed { text: text.to_owned() };
        let digits: Vec<char> = text.trim().chars().filter(|digit| *digit != ':').collect();
        let octets = digits.chunks(2).map(|pair| match pair {
            [high, low] => u8::try_from(high.to_digit(16)? * 16 + low.to_digit(16)?).ok(),
            _ => None,
        });
        let octets = octets.collect::<Option<Vec<u8>>>().ok_or_else(malformed)?;
        match octets.try_into() {
            Ok(octets) => Ok(Self(octets)),
            Err(octets) if octets.len() == 20 => {
                Err(ThumbprintError::Sha1 { text: text.to_owned() })
            }
            Err(_) => Err(malformed()),
        }
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, octet) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char(':')?;
            }
            write!(f, "{octet:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whose certificates are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TlsTrust {
    /// Those of the authorities that this machine trusts.
    #[default]
    System,
    /// Those of the authorities in a PEM file, and no others.
    CaFile(PathBuf),
    /// Those of the system's authorities, and the one with this thumbprint.
    Thumbprint(Thumbprint),
    /// Everyone's.
    Insecure,
}

impl TlsTrust {
    /// For connections of one's own, beside those of the client.
    pub fn client_config(&self) -> Result<ClientConfig, TransportError> {
        client_config(self, Pins::default())
    }
}

/// Thumbprints by host; they can be added while connections are made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins(Arc<RwLock<HashMap<String, Thumbprint>>>);

impl Pins {
    pub(crate) fn add(&self, host: &str, thumbprint: Thumbprint) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(canonical(host), thumbprint);
    }

    fn has(&self, host: &ServerName<'_>, thumbprint: Thumbprint) -> bool {
        let pins = self.0.read().unwrap_or_else(PoisonError::into_inner);
        pins.get(&canonical(&host.to_str())) == Some(&thumbprint)
    }
}

fn canonical(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

pub(crate) fn client_config(trust: &TlsTrust, pins: Pins) -> Result<ClientConfig, TransportError> {
    let verifier = verifier(trust, pins)?;
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&verifier.provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| TransportError::Tls { source })?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn verifier(trust: &TlsTrust, pins: Pins) -> Result<Verifier, TransportError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = match trust {
        TlsTrust::System => system_roots()?,
        TlsTrust::CaFile(path) => file_roots(path)?,
        // The pin may be all that is needed.
        TlsTrust::Thumbprint(_) => system_roots().unwrap_or_else(|_| RootCertStore::empty()),
        TlsTrust::Insecure => RootCertStore::empty(),
    };
    let authorities = if roots.is_empty() {
        None
    } else {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build();
        Some(verifier.map_err(|source| TransportError::Verifier { source })?)
    };
    Ok(Verifier {
        authorities,
        pinned: if let TlsTrust::Thumbprint(thumbprint) = trust { Some(*thumbprint) } else { None },
        pins,
        believes_all: *trust == TlsTrust::Insecure,
        provider,
    })
}

fn system_roots() -> Result<RootCertStore, TransportError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() { Err(TransportError::NoSystemRoots) } else { Ok(roots) }
}

fn file_roots(path: &Path) -> Result<RootCertStore, TransportError> {
    let unreadable = |source| TransportError::CaFile { path: path.to_owned(), source };
    let pem = std::fs::read(path).map_err(unreadable)?;
    let no_certificate = || TransportError::NoCertificate { path: path.to_owned() };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|_| no_certificate())?).map_err(|_| no_certificate())?;
    }
    if roots.is_empty() { Err(no_certificate()) } else { Ok(roots) }
}

#[derive(Debug)]
struct Verifier {
    authorities: Option<Arc<WebPkiServerVerifier>>,
    pinned: Option<Thumbprint>,
    pins: Pins,
    believes_all: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.believes_all {
            return Ok(ServerCertVerified::assertion());
        }
        let refused = match &self.authorities {
            Some(authorities) => {
                match authorities.verify_server_cert(
                    end_entity,
                    intermediates,
                    server_name,
                    ocsp_response,
                    now,
                ) {
                    Ok(verified) => return Ok(verified),
                    Err(refused) => refused,
                }
            }
            None => rustls::CertificateError::UnknownIssuer.into(),
        };
        let thumbprint = Thumbprint::of(end_entity);
        if self.pinned == Some(thumbprint) || self.pins.has(server_name, thumbprint) {
            return Ok(ServerCertVerified::assertion());
        }
        tracing::warn!(host = %server_name.to_str(), %thumbprint, "the server's certificate is not trusted: {refused}");
        Err(refused)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "4C:3D:58:C2:80:EA:08:A0:67:53:79:A8:D5:3B:7C:77:6A:8A:40:EE:D1:80:4E:17:26:39:5B:D7:07:23:D4:D8";

    #[test]
    fn a_thumbprint_reads_with_and_without_colons() {
        let thumbprint: Thumbprint = TEXT.parse().unwrap();
        assert_eq!(thumbprint.to_string(), TEXT);
        assert_eq!(TEXT.replace(':', "").to_lowercase().parse(), Ok(thumbprint));
    }

    #[test]
    fn a_wrong_thumbprint_is_one_clear_line() {
        let sha1 = "52:6C:4E:88:1D:78:AE:12:1C:F3:BB:6C:5B:F4:E2:82:86:A7:08:AF";
        for (text, part) in [
            (sha1, "SHA-1"),
            ("", "32 octets"),
            ("4C:3D", "32 octets"),
            (&TEXT.replace('4', "x"), "32 octets"),
        ] {
            let line = text.parse::<Thumbprint>().unwrap_err().to_string();
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn a_missing_or_empty_ca_file_is_one_clear_line() {
        let missing = client_config(&TlsTrust::CaFile("/no/such/ca.pem".into()), Pins::default())
            .unwrap_err();
        assert_eq!(missing.to_string(), "the CA file /no/such/ca.pem cannot be read");
        let path = std::env::temp_dir().join(format!("roost-vim-empty-ca-{}", std::process::id()));
        std::fs::write(&path, "no certificate here\n").unwrap();
        let empty = client_config(&TlsTrust::CaFile(path.clone()), Pins::default()).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(empty.to_string().ends_with("holds no certificate"), "{empty}");
    }

    #[test]
    fn a_pin_is_for_its_host_only() {
        let (pins, thumbprint) = (Pins::default(), TEXT.parse().unwrap());
        pins.add("ESX-1.example.org", thumbprint);
        pins.add("[::1]", thumbprint);
        for (host, wanted) in
            [("esx-1.example.org", true), ("esx-2.example.org", false), ("::1", true)]
        {
            assert_eq!(
                pins.has(&ServerName::try_from(host).unwrap(), thumbprint),
                wanted,
                "{host}"
            );
        }
        assert!(!pins.has(&ServerName::try_from("::1").unwrap(), Thumbprint::of(b"another")));
    }
}
