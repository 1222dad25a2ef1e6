//! PEM text and the files that hold it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// All authorities of a machine together have less.
const MAX_BYTES: u64 = 4 << 20;

/// Why PEM text cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("it holds no {what} in PEM form")]
pub struct PemError {
    what: &'static str,
    source: rustls::pki_types::pem::Error,
}

/// Why a file with PEM text cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PemFileError {
    #[error(transparent)]
    Read(io::Error),
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is larger than 4 MiB")]
    TooLarge,
}

/// At least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let failed = |source| PemError { what: "certificate", source };
    let found: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() {
        return Err(failed(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(found)
}

pub(crate) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|source| PemError { what: "private key", source })
}

/// A pipe would never end, and a device never say anything: only regular files, and no larger than what certificates need.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, PemFileError> {
    let failed = PemFileError::Read;
    // Before it is opened: to open a pipe is to wait for whoever writes.
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(PemFileError::NotRegular);
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(PemFileError::TooLarge);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_sane_size_are_read() {
        let missing = read_file(Path::new("/no/such/file.pem"));
        assert!(matches!(missing, Err(PemFileError::Read(_))), "{missing:?}");
        for path in ["/", "/dev/zero"] {
            let refused = read_file(Path::new(path)).unwrap_err();
            assert_eq!(refused.to_string(), "it is not a regular file", "{path}");
        }
    }
}
