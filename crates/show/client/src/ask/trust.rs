//! Whom a service that speaks HTTPS is believed to be, and the certificate by which it knows us.

use std::path::PathBuf;

use reqwest::ClientBuilder;
use roost_tls::{
    ClientCertificate, ClientCertificateError, Pins, TlsTrust, TrustError as Untrusted,
};

/// PEM file with the authority of the service's certificate. Without it, those of this machine are asked.
const CA_FILE: &str = "ROOST_CA_FILE";
/// PEM file with our own certificate; the key may stand in it, too.
const CERT_FILE: &str = "ROOST_CERT_FILE";
/// PEM file with the key of that certificate.
const KEY_FILE: &str = "ROOST_KEY_FILE";

#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("{CA_FILE}")]
    Authority { source: Untrusted },
    #[error("{CERT_FILE}, {KEY_FILE}")]
    Own { source: ClientCertificateError },
    #[error("{CERT_FILE}")]
    Use { source: Untrusted },
    #[error("{KEY_FILE} has no use without {CERT_FILE}")]
    KeyAlone,
}

pub(super) fn from_environment(builder: ClientBuilder) -> Result<ClientBuilder, TrustError> {
    apply(builder, path_in(CA_FILE), path_in(CERT_FILE), path_in(KEY_FILE))
}

/// Whether we show one. Whether it is believed is for the service to say.
pub(super) fn has_certificate() -> bool {
    path_in(CERT_FILE).is_some()
}

fn path_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|text| !text.is_empty()).map(PathBuf::from)
}

fn apply(
    builder: ClientBuilder,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
) -> Result<ClientBuilder, TrustError> {
    let trust = ca_file.map_or(TlsTrust::System, TlsTrust::CaFile);
    trust.check().map_err(|source| TrustError::Authority { source })?;
    let own = match (cert_file, key_file) {
        (None, None) => None,
        (None, Some(_)) => return Err(TrustError::KeyAlone),
        (Some(certificate), key) => {
            let own = ClientCertificate::from_files(&certificate, key.as_deref());
            Some(own.map_err(|source| TrustError::Own { source })?)
        }
    };
    let config = trust.client_config_with(Pins::default(), own);
    Ok(builder.tls_backend_preconfigured(config.map_err(|source| TrustError::Use { source })?))
}

#[cfg(test)]
mod tests {
    use roost_supervise::Chain;

    use super::*;

    #[test]
    fn what_cannot_be_used_is_named() {
        let said = |ca: Option<&str>, cert: Option<&str>, key: Option<&str>| {
            let path = |text: Option<&str>| text.map(PathBuf::from);
            let builder = reqwest::Client::builder();
            Chain(&apply(builder, path(ca), path(cert), path(key)).map(drop).unwrap_err())
                .to_string()
        };
        for (words, wanted) in [
            (
                said(Some("/no/ca"), None, None),
                "ROOST_CA_FILE: the CA file /no/ca cannot be read: ",
            ),
            (
                said(None, Some("/no/c"), None),
                "ROOST_CERT_FILE, ROOST_KEY_FILE: /no/c cannot be read: ",
            ),
        ] {
            assert!(words.starts_with(wanted), "{words}");
        }
        let alone = said(None, None, Some("/no/key"));
        assert_eq!(alone, "ROOST_KEY_FILE has no use without ROOST_CERT_FILE");
        let no_pem = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(said(Some(no_pem), None, None).starts_with("ROOST_CA_FILE: "));
        assert!(said(None, Some(no_pem), None).starts_with("ROOST_CERT_FILE, "));
    }
}
