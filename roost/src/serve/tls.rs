//! The console's certificate, from the files that the configuration names.

use std::path::{Path, PathBuf};

use roost_console::{Tls, TlsError, TlsPart};
use roost_hatchery::config::{Listen, ListenTls};

/// Led by the path to edit, as every problem of the file is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsFileError {
    #[error("hatchery.vsphere.commonConfiguration.http.{key}: {} cannot be read", path.display())]
    Read { key: &'static str, path: PathBuf, source: std::io::Error },
    #[error("hatchery.vsphere.commonConfiguration.http.{key}: {} cannot be used", path.display())]
    Use { key: &'static str, path: PathBuf, source: TlsError },
}

/// `None` if plain HTTP is to be spoken. The files are read once: a new certificate counts from the next start.
pub(crate) fn load(listen: &Listen) -> Result<Option<Tls>, TlsFileError> {
    let Some(ListenTls { cert_file, key_file, client_ca_file }) = &listen.tls else {
        return Ok(None);
    };
    let chain = read("certFile", cert_file)?;
    let key = read("keyFile", key_file)?;
    let client_ca = client_ca_file.as_deref().map(|path| read("clientCaFile", path)).transpose()?;
    let made = Tls::from_pem(&chain, &key, client_ca.as_deref());
    made.map(Some).map_err(|source| {
        let (key, path) = match source.part() {
            TlsPart::Certificate => ("certFile", cert_file),
            TlsPart::Key => ("keyFile", key_file),
            TlsPart::ClientCa => ("clientCaFile", client_ca_file.as_ref().unwrap_or(cert_file)),
        };
        TlsFileError::Use { key, path: path.clone(), source }
    })
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    std::fs::read(path).map_err(|source| TlsFileError::Read { key, path: path.to_owned(), source })
}
