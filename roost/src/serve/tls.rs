//! The console's certificate, from the files that the configuration names.

use roost_hatchery::config::{Listen, ListenTls};
use roost_tls::{ClientCa, ServerFileError, ServerFiles, ServerTls, TlsPart};

/// Led by the path to edit, as every problem of the file is.
#[derive(Debug, thiserror::Error)]
#[error("hatchery.vsphere.commonConfiguration.http.{key}")]
pub(crate) struct TlsFileError {
    key: &'static str,
    source: ServerFileError,
}

/// `None` if plain HTTP is to be spoken. The files are read again when they change.
pub(crate) fn load(listen: &Listen) -> Result<Option<ServerTls>, TlsFileError> {
    let Some(ListenTls { cert_file, key_file, client_ca_file }) = &listen.tls else {
        return Ok(None);
    };
    let files = ServerFiles {
        certificate: cert_file.clone(),
        key: key_file.clone(),
        client_ca: client_ca_file.clone().map(ClientCa::File),
    };
    ServerTls::from_files(files).map(Some).map_err(|source| {
        let key = match source.part() {
            TlsPart::Certificate => "certFile",
            TlsPart::Key => "keyFile",
            TlsPart::ClientCa => "clientCaFile",
        };
        TlsFileError { key, source }
    })
}
