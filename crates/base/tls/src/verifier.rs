//! Normal verification comes first. A certificate that it does not accept is still believed if its thumbprint was pinned, for all
//! hosts by the operator or for one host by an answer of a trusted server. The handshake's signature is always
//! verified: a pinned certificate without its key is worth nothing.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::{Pins, Thumbprint, TlsTrust, TrustError};

#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) authorities: Option<Arc<WebPkiServerVerifier>>,
    pinned: Option<Thumbprint>,
    pins: Pins,
    believes_all: bool,
    pub(crate) provider: Arc<CryptoProvider>,
}

const NO_ROOTS: &str = "this machine has no root certificates; give a CA file or a thumbprint";
const NOT_PINNED: &str = "it is not the one whose thumbprint was given";

impl Verifier {
    pub(crate) fn new(trust: &TlsTrust, pins: Pins) -> Result<Self, TrustError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = roots(trust, system_roots)?;
        let authorities = if roots.is_empty() {
            None
        } else {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                    .build();
            Some(verifier.map_err(|source| TrustError::Verifier { source })?)
        };
        let pinned = if let TlsTrust::Thumbprint(pinned) = trust { Some(*pinned) } else { None };
        let believes_all = *trust == TlsTrust::Insecure;
        Ok(Self { authorities, pinned, pins, believes_all, provider })
    }
}

/// The authorities that are believed. `system`: those of this machine.
fn roots(
    trust: &TlsTrust,
    system: impl FnOnce() -> RootCertStore,
) -> Result<RootCertStore, TrustError> {
    Ok(match trust {
        // Without any, whoever shows a certificate is refused with these words; plain HTTP is not in need of them.
        TlsTrust::System | TlsTrust::Thumbprint(_) => system(),
        TlsTrust::CaFile(path) => TlsTrust::read_ca_file(path)?,
        TlsTrust::SystemAndCaFile(path) => {
            let mut roots = system();
            roots.extend(TlsTrust::read_ca_file(path)?.roots);
            roots
        }
        TlsTrust::CaPem(pem) => TlsTrust::read_ca_pem(pem)?,
        TlsTrust::Insecure => RootCertStore::empty(),
    })
}

fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::warn!("some of the system's certificates cannot be read: {error}");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
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
            None => rustls::Error::General(
                if self.pinned.is_some() { NOT_PINNED } else { NO_ROOTS }.to_owned(),
            ),
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

    fn authority(name: &str) -> rcgen::Certificate {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut wish = rcgen::CertificateParams::new(vec![]).unwrap();
        wish.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        wish.distinguished_name.push(rcgen::DnType::CommonName, name);
        wish.self_signed(&key).unwrap()
    }

    #[test]
    fn a_file_is_believed_instead_of_this_machines_authorities_or_beside_them() {
        let (machines, extra) = (authority("machine"), authority("extra"));
        let path = std::env::temp_dir().join(format!("roost-tls-extra-{}", std::process::id()));
        std::fs::write(&path, extra.pem()).unwrap();
        let system = || {
            let mut roots = RootCertStore::empty();
            roots.add(machines.der().clone()).unwrap();
            roots
        };
        let names = |trust: TlsTrust| {
            let roots = roots(&trust, system).unwrap();
            let has = |name: &str| {
                roots
                    .roots
                    .iter()
                    .any(|it| it.subject.windows(name.len()).any(|it| it == name.as_bytes()))
            };
            (has("machine"), has("extra"))
        };
        assert_eq!(names(TlsTrust::System), (true, false));
        assert_eq!(names(TlsTrust::CaFile(path.clone())), (false, true));
        assert_eq!(names(TlsTrust::SystemAndCaFile(path.clone())), (true, true));
        std::fs::remove_file(&path).unwrap();
    }
}
