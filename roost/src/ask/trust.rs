//! Whom a service that speaks HTTPS is believed to be, and the certificate by which it knows us.

use std::path::PathBuf;

use reqwest::{Certificate, ClientBuilder, Identity};

/// PEM file with the authority of the service's certificate. Without it, those of this machine are asked.
const CA_FILE: &str = "ROOST_CA_FILE";
/// PEM file with our own certificate; the key may stand in it, too.
const CERT_FILE: &str = "ROOST_CERT_FILE";
/// PEM file with the key of that certificate.
const KEY_FILE: &str = "ROOST_KEY_FILE";

#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("{variable}: {} cannot be read", path.display())]
    Read { variable: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{variable}: {} holds nothing of use", path.display())]
    Use { variable: &'static str, path: PathBuf, source: reqwest::Error },
    #[error("{CA_FILE}: {} holds no certificate", path.display())]
    NoCertificate { path: PathBuf },
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
    mut builder: ClientBuilder,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
) -> Result<ClientBuilder, TrustError> {
    if let Some(path) = ca_file {
        let pem = read(CA_FILE, &path)?;
        let authorities = Certificate::from_pem_bundle(&pem).map_err(|source| TrustError::Use {
            variable: CA_FILE,
            path: path.clone(),
            source,
        })?;
        if authorities.is_empty() {
            return Err(TrustError::NoCertificate { path });
        }
        builder = builder.tls_certs_only(authorities);
    }
    match (cert_file, key_file) {
        (None, None) => Ok(builder),
        (None, Some(_)) => Err(TrustError::KeyAlone),
        (Some(path), key_file) => {
            let mut pem = read(CERT_FILE, &path)?;
            if let Some(key_file) = key_file {
                pem.push(b'\n');
                pem.extend(read(KEY_FILE, &key_file)?);
            }
            let own = Identity::from_pem(&pem).map_err(|source| TrustError::Use {
                variable: CERT_FILE,
                path,
                source,
            })?;
            Ok(builder.identity(own))
        }
    }
}

fn read(variable: &'static str, path: &PathBuf) -> Result<Vec<u8>, TrustError> {
    std::fs::read(path).map_err(|source| TrustError::Read { variable, path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_named() {
        let said = |ca: Option<&str>, cert: Option<&str>, key: Option<&str>| {
            let path = |text: Option<&str>| text.map(PathBuf::from);
            let builder = reqwest::Client::builder();
            apply(builder, path(ca), path(cert), path(key)).map(drop).unwrap_err().to_string()
        };
        assert_eq!(said(Some("/no/ca"), None, None), "ROOST_CA_FILE: /no/ca cannot be read");
        assert_eq!(said(None, Some("/no/c"), None), "ROOST_CERT_FILE: /no/c cannot be read");
        let alone = said(None, None, Some("/no/key"));
        assert_eq!(alone, "ROOST_KEY_FILE has no use without ROOST_CERT_FILE");
        let no_pem = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(said(Some(no_pem), None, None).starts_with("ROOST_CA_FILE: "));
        assert!(said(None, Some(no_pem), None).starts_with("ROOST_CERT_FILE: "));
    }
}
