use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tracing::warn;

use super::{HttpSettings, HttpSetupError};

pub(super) fn client_config(settings: &HttpSettings) -> Result<ClientConfig, HttpSetupError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|source| HttpSetupError::Tls { source })?;
    let mut config = if settings.insecure {
        warn!("the certificate of the CDS API is not verified");
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Gullible(provider)))
            .with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(settings)?).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(settings: &HttpSettings) -> Result<RootCertStore, HttpSetupError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &settings.ca_file else {
        let found = rustls_native_certs::load_native_certs();
        for error in found.errors {
            warn!("some of the system's certificates cannot be read: {error}");
        }
        roots.add_parsable_certificates(found.certs);
        return Ok(roots);
    };
    let unreadable = |source| HttpSetupError::CaFile { path: path.clone(), source };
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        roots
            .add(certificate.map_err(unreadable)?)
            .map_err(|source| HttpSetupError::CaRefused { path: path.clone(), source })?;
    }
    Ok(roots)
}

/// Believes every certificate, because the operator wrote `insecure = true`. Signatures are still checked.
#[derive(Debug)]
struct Gullible(Arc<CryptoProvider>);

impl ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
