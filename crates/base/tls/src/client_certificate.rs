use std::fmt;
use std::path::{Path, PathBuf};

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{PemError, PemFileError, pem};

/// The certificate by which a server knows us, with its key.
pub struct ClientCertificate {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificateError {
    #[error("{} cannot be read", path.display())]
    Read { path: PathBuf, source: PemFileError },
    #[error("{} cannot be used", path.display())]
    Use { path: PathBuf, source: PemError },
}

impl ClientCertificate {
    /// Both in PEM form. Without a file of its own, the key stands in the certificate's.
    pub fn from_files(
        certificate: &Path,
        key: Option<&Path>,
    ) -> Result<Self, ClientCertificateError> {
        let key_path = key.unwrap_or(certificate);
        let chain = pem::certificates(&read(certificate)?)
            .map_err(|source| ClientCertificateError::Use { path: certificate.into(), source })?;
        let key = pem::private_key(&read(key_path)?)
            .map_err(|source| ClientCertificateError::Use { path: key_path.into(), source })?;
        Ok(Self { chain, key })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ClientCertificateError> {
    pem::read_file(path)
        .map_err(|source| ClientCertificateError::Read { path: path.to_owned(), source })
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate")
            .field("chain", &self.chain.len())
            .finish_non_exhaustive()
    }
}
