//! The certificate that the API server and others see: from files, made for a while, or signed by the cluster and renewed.

mod files;
mod keep;
mod request;

use jiff::Timestamp;
use roost_tls::{
    ClientCa, IdentityError, ServerFileError, ServerFiles, ServerTls, TlsIdentity, TlsPart,
};

pub(crate) use self::files::Pair;
pub(crate) use self::keep::CertificateKeeper;
use crate::settings::Settings;

/// Why the kubelet cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    #[error("VK_TLS_CERT, VK_TLS_KEY, VK_CLIENT_CA")]
    Files(#[from] ServerFileError),
    #[error("the kubelet's certificate")]
    Identity(#[from] IdentityError),
}

/// From the files if they hold a certificate that has not expired. Otherwise one is made now, which an API server believes only if it does not
/// verify kubelets, and the files are used as soon as they are there.
pub fn serving_tls(
    settings: &Settings,
    client_ca: Option<ClientCa>,
    now: Timestamp,
) -> Result<ServerTls, ServingError> {
    let (certificate, key) = (settings.tls_cert.clone(), settings.tls_key.clone());
    let files = ServerFiles { certificate, key, client_ca };
    let why = if !settings.tls_cert.exists() && !settings.tls_key.exists() {
        "is not there"
    } else {
        let found = Pair::of(settings).read();
        let is_over =
            found.and_then(|pair| pair.certificate()).is_some_and(|it| it.not_after <= now);
        if is_over {
            "has expired"
        } else {
            match ServerTls::from_files(files.clone()) {
                Ok(tls) => return Ok(tls),
                // Whoever has it signed by the cluster gets a new pair; a person has to look at theirs.
                Err(error)
                    if error.part() == TlsPart::ClientCa || !settings.requests_certificate =>
                {
                    return Err(error.into());
                }
                Err(_) => "cannot be used",
            }
        }
    };
    tracing::warn!(
        "{} {why}: for now the kubelet's certificate is self-signed",
        settings.tls_cert.display()
    );
    let hosts = [settings.node_name.clone(), settings.node_ip.to_string()];
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let made = TlsIdentity::self_signed(&settings.node_name, &hosts)?;
    Ok(ServerTls::until_files(files, &made)?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// In a folder of its own.
    fn settings(requests: &str) -> Settings {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("roost-kubelet-tls-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let get = |name: &str| match name {
            "VK_TLS_CERT" => Some(folder.join("c.pem").display().to_string()),
            "VK_TLS_KEY" => Some(folder.join("k.pem").display().to_string()),
            "VK_TLS_CSR" => Some(requests.to_owned()),
            _ => None,
        };
        Settings::read(&get).unwrap()
    }

    fn clear(settings: &Settings) {
        let _ = std::fs::remove_dir_all(settings.tls_cert.parent().unwrap());
    }

    #[tokio::test]
    async fn a_certificate_that_is_missing_or_over_is_replaced_until_there_is_a_good_one() {
        let settings = settings("false");
        let made = TlsIdentity::self_signed("node", &[]).unwrap();
        let end = made.certificate().unwrap().not_after;
        let at = |now| serving_tls(&settings, None, now);
        assert!(at(Timestamp::UNIX_EPOCH).is_ok(), "nothing is there");
        std::fs::write(&settings.tls_cert, made.certificate_pem()).unwrap();
        assert!(at(Timestamp::UNIX_EPOCH).is_err(), "a certificate without its key is a mistake");
        std::fs::write(&settings.tls_key, made.key_pem()).unwrap();
        assert!(at(Timestamp::UNIX_EPOCH).is_ok());
        assert!(at(end).is_ok(), "it is over, and the kubelet serves nevertheless");
        std::fs::write(&settings.tls_key, "half a k").unwrap();
        let error = at(Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.to_string(), "VK_TLS_CERT, VK_TLS_KEY, VK_CLIENT_CA");
        clear(&settings);
    }

    #[tokio::test]
    async fn where_the_cluster_signs_a_broken_pair_is_made_anew_and_not_a_persons_task() {
        let settings = settings("true");
        std::fs::write(&settings.tls_cert, "half a certif").unwrap();
        assert!(serving_tls(&settings, None, Timestamp::UNIX_EPOCH).is_ok());
        clear(&settings);
    }
}
