//! Which certificates are believed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use crate::verifier::Verifier;
use crate::{ClientCertificate, PemFileError, Thumbprint, pem};

/// Why certificates cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("the CA file {} cannot be read", path.display())]
    CaFile { path: PathBuf, source: PemFileError },
    #[error("the CA file {} holds no certificate", path.display())]
    NoCertificate { path: PathBuf },
    #[error("the CA that was given holds no certificate in PEM form")]
    NoCertificateInText,
    #[error("setting up the verification of certificates")]
    Verifier { source: rustls::client::VerifierBuilderError },
    #[error("setting up TLS")]
    Tls { source: rustls::Error },
    #[error("the certificate that is to be shown cannot be used with its key")]
    Shown { source: rustls::Error },
}

/// Whose certificates are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TlsTrust {
    /// Those of the authorities that this machine trusts.
    #[default]
    System,
    /// Those of the authorities in a PEM file, and no others.
    CaFile(PathBuf),
    /// Those of the authorities that this machine trusts, and of those in a PEM file.
    SystemAndCaFile(PathBuf),
    /// Those of the authorities in this PEM text, and no others.
    CaPem(String),
    /// Those of the system's authorities, and the one with this thumbprint.
    Thumbprint(Thumbprint),
    /// Everyone's.
    Insecure,
}

impl TlsTrust {
    /// For connections of one's own, beside those of the client.
    pub fn client_config(&self) -> Result<ClientConfig, TrustError> {
        self.client_config_with(Pins::default(), None)
    }

    /// As [`TlsTrust::client_config`]; the pins can be added to later. With a certificate, servers that ask for one are shown it.
    pub fn client_config_with(
        &self,
        pins: Pins,
        shown: Option<ClientCertificate>,
    ) -> Result<ClientConfig, TrustError> {
        let verifier = Verifier::new(self, pins)?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&verifier.provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| TrustError::Tls { source })?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(ClientCertificate { chain, key }) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|source| TrustError::Shown { source })?,
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Whether what it names can be read, without connecting to anybody.
    pub fn check(&self) -> Result<(), TrustError> {
        match self {
            Self::CaFile(path) | Self::SystemAndCaFile(path) => Self::read_ca_file(path).map(drop),
            Self::CaPem(pem) => Self::read_ca_pem(pem).map(drop),
            Self::System | Self::Thumbprint(_) | Self::Insecure => Ok(()),
        }
    }

    pub(crate) fn read_ca_pem(pem: &str) -> Result<RootCertStore, TrustError> {
        let mut roots = RootCertStore::empty();
        let found = pem::certificates(pem.as_bytes());
        for certificate in found.map_err(|_| TrustError::NoCertificateInText)? {
            roots.add(certificate).map_err(|_| TrustError::NoCertificateInText)?;
        }
        Ok(roots)
    }

    pub(crate) fn read_ca_file(path: &Path) -> Result<RootCertStore, TrustError> {
        let pem = pem::read_file(path)
            .map_err(|source| TrustError::CaFile { path: path.to_owned(), source })?;
        let no_certificate = || TrustError::NoCertificate { path: path.to_owned() };
        let mut roots = RootCertStore::empty();
        for certificate in pem::certificates(&pem).map_err(|_| no_certificate())? {
            roots.add(certificate).map_err(|_| no_certificate())?;
        }
        Ok(roots)
    }
}

/// Thumbprints by host; they can be added while connections are made.
#[derive(Debug, Clone, Default)]
pub struct Pins(Arc<RwLock<HashMap<String, Thumbprint>>>);

impl Pins {
    pub fn add(&self, host: &str, thumbprint: Thumbprint) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(canonical(host), thumbprint);
    }

    pub(crate) fn has(&self, host: &ServerName<'_>, thumbprint: Thumbprint) -> bool {
        let pins = self.0.read().unwrap_or_else(PoisonError::into_inner);
        pins.get(&canonical(&host.to_str())) == Some(&thumbprint)
    }
}

fn canonical(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use roost_supervise::Chain;

    use super::*;

    #[test]
    fn a_missing_or_empty_ca_file_is_one_clear_line() {
        let said = |path: &str| {
            let trust = TlsTrust::CaFile(path.into());
            let refused = trust.check().unwrap_err();
            assert_eq!(trust.client_config().unwrap_err().to_string(), refused.to_string());
            Chain(&refused).to_string()
        };
        let missing = said("/no/such/ca.pem");
        assert!(missing.starts_with("the CA file /no/such/ca.pem cannot be read: "), "{missing}");
        assert_eq!(said("/dev"), "the CA file /dev cannot be read: it is not a regular file");
        let path = std::env::temp_dir().join(format!("roost-tls-empty-ca-{}", std::process::id()));
        std::fs::write(&path, "no certificate here\n").unwrap();
        let empty = said(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(empty.ends_with("holds no certificate"), "{empty}");
    }

    #[test]
    fn a_pin_is_for_its_host_only() {
        let (pins, thumbprint) = (Pins::default(), Thumbprint::of(b"a certificate"));
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
