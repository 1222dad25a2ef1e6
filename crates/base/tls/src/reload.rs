//! A server's certificate from files, read again when they change.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use roost_supervise::Chain;
use rustls::ServerConfig;
use tokio::time::Instant;

use crate::server::config;
use crate::{PemFileError, ServerTls, ServerTlsError, TlsIdentity, TlsPart, pem};

/// How often the files are looked at, at most. To look costs a few microseconds, and only while somebody connects.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Where a server's certificate stands, all in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// The server's own certificate first, then those that signed it.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Authorities of clients that may show a certificate in place of a token.
    pub client_ca: Option<ClientCa>,
}

/// Where the authorities of clients are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCa {
    /// Read again when it changes, as the other files are.
    File(PathBuf),
    /// Known already, in PEM form.
    Pem(Vec<u8>),
}

impl ClientCa {
    fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Pem(_) => None,
        }
    }
}

/// Which file cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum ServerFileError {
    #[error("{} cannot be read", path.display())]
    Read { part: TlsPart, path: PathBuf, source: PemFileError },
    #[error("{} cannot be used", path.display())]
    Use { part: TlsPart, path: PathBuf, source: ServerTlsError },
}

impl ServerFileError {
    pub fn part(&self) -> TlsPart {
        match self {
            Self::Read { part, .. } | Self::Use { part, .. } => *part,
        }
    }
}

impl ServerFiles {
    fn path(&self, part: TlsPart) -> &Path {
        match part {
            TlsPart::Certificate => &self.certificate,
            TlsPart::Key => &self.key,
            TlsPart::ClientCa => {
                self.client_ca.as_ref().and_then(ClientCa::file).unwrap_or(&self.certificate)
            }
        }
    }

    fn read(&self, part: TlsPart) -> Result<Vec<u8>, ServerFileError> {
        let path = self.path(part);
        let failed = |source| ServerFileError::Read { part, path: path.to_owned(), source };
        pem::read_file(path).map_err(failed)
    }

    fn client_ca(&self) -> Result<Option<Vec<u8>>, ServerFileError> {
        match &self.client_ca {
            None => Ok(None),
            Some(ClientCa::File(_)) => self.read(TlsPart::ClientCa).map(Some),
            Some(ClientCa::Pem(known)) => Ok(Some(known.clone())),
        }
    }

    fn unusable(&self, source: ServerTlsError) -> ServerFileError {
        let part = source.part();
        ServerFileError::Use { part, path: self.path(part).to_owned(), source }
    }

    fn load(&self) -> Result<ServerConfig, ServerFileError> {
        let (chain, key) = (self.read(TlsPart::Certificate)?, self.read(TlsPart::Key)?);
        let client_ca = self.client_ca()?;
        config(&chain, &key, client_ca.as_deref()).map_err(|source| self.unusable(source))
    }

    /// Changes with every write and every replacement, also of what a symbolic link leads to.
    fn signature(&self) -> Vec<Option<Signature>> {
        let client_ca = self.client_ca.as_ref().and_then(ClientCa::file);
        let files = [Some(&self.certificate), Some(&self.key), client_ca];
        let of = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
        };
        files.into_iter().flatten().map(of).collect()
    }
}

/// Device, inode, size and the time of the last write.
type Signature = (u64, u64, u64, i64, i64);

/// Files that are looked at now and then.
#[derive(Debug)]
pub(crate) struct Watched {
    files: ServerFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    looked: Instant,
    seen: Vec<Option<Signature>>,
}

impl Watched {
    /// The new configuration, if the files have changed and can be used.
    pub(crate) fn look(&self) -> Option<Arc<ServerConfig>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() < LOOK_EVERY {
            return None;
        }
        state.looked = Instant::now();
        let now = self.files.signature();
        if now == state.seen {
            return None;
        }
        match self.files.load() {
            Ok(config) => {
                state.seen = now;
                tracing::info!(file = %self.files.certificate.display(), "the server's certificate was read again");
                Some(Arc::new(config))
            }
            Err(error) => {
                // Whoever renews it may be half way through. Said again only when the files change once more.
                tracing::warn!("the server's new certificate is not used: {}", Chain(&error));
                state.seen = now;
                None
            }
        }
    }
}

impl ServerTls {
    /// Reads the files, and again when they change. Files that cannot be used then leave in place what was read before.
    pub fn from_files(files: ServerFiles) -> Result<Self, ServerFileError> {
        let seen = files.signature();
        let config = files.load()?;
        let takes_certificates = files.client_ca.is_some();
        let state = Mutex::new(State { looked: Instant::now(), seen });
        Ok(Self::new(config, takes_certificates, Some(Watched { files, state })))
    }

    /// Shows a certificate that was made for the time until the files are there, and then theirs.
    pub fn until_files(files: ServerFiles, made: &TlsIdentity) -> Result<Self, ServerFileError> {
        let seen = files.signature();
        let client_ca = files.client_ca()?;
        let (chain, key) = (made.certificate_pem(), made.key_pem());
        let config = config(chain.as_bytes(), key.as_bytes(), client_ca.as_deref());
        let config = config.map_err(|source| files.unusable(source))?;
        let state = Mutex::new(State { looked: Instant::now(), seen });
        Ok(Self::new(config, client_ca.is_some(), Some(Watched { files, state })))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, ServerConnection};

    use super::*;
    use crate::TlsTrust;

    /// A folder of this test's own with the files of a server.
    struct Shelf(PathBuf);

    impl Shelf {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("roost-tls-reload-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        /// Puts a new certificate there, as renewers do: written beside it, then renamed. Returns whom to trust then.
        fn renew(&self) -> TlsTrust {
            let made = TlsIdentity::self_signed("server", &[]).unwrap();
            self.replace("cert.pem", &made.certificate_pem());
            self.replace("key.pem", &made.key_pem());
            TlsTrust::Thumbprint(made.thumbprint())
        }

        fn replace(&self, name: &str, text: &str) {
            fs::write(self.0.join("new"), text).unwrap();
            fs::rename(self.0.join("new"), self.0.join(name)).unwrap();
        }

        fn files(&self) -> ServerFiles {
            let (certificate, key) = (self.0.join("cert.pem"), self.0.join("key.pem"));
            ServerFiles { certificate, key, client_ca: None }
        }
    }

    impl Drop for Shelf {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Whether a client that trusts so shakes hands with that server.
    fn greets(server: Arc<ServerConfig>, trust: &TlsTrust) -> bool {
        let config = Arc::new(trust.client_config().unwrap());
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(config, name).unwrap();
        let mut server = ServerConnection::new(server).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut &*wire).unwrap();
            if server.process_new_packets().is_err() {
                return false;
            }
            wire.clear();
            server.write_tls(&mut wire).unwrap();
            client.read_tls(&mut &*wire).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        true
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_shown_without_a_restart() {
        let shelf = Shelf::new();
        let first = shelf.renew();
        let server = ServerTls::from_files(shelf.files()).unwrap();
        assert!(greets(server.current(), &first));
        let second = shelf.renew();
        tokio::time::advance(LOOK_EVERY).await;
        assert!(greets(server.current(), &second), "the new one is shown");
        assert!(!greets(server.current(), &first), "and the old one no more");
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_cannot_be_used_leave_the_old_certificate_in_place() {
        let shelf = Shelf::new();
        let first = shelf.renew();
        let server = ServerTls::from_files(shelf.files()).unwrap();
        shelf.replace("cert.pem", "half a certif");
        tokio::time::advance(LOOK_EVERY).await;
        assert!(greets(server.current(), &first));
        let third = shelf.renew();
        tokio::time::advance(LOOK_EVERY).await;
        assert!(greets(server.current(), &third), "mended later");
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_is_made_for_the_time_until_the_files_are_there() {
        let shelf = Shelf::new();
        let made = TlsIdentity::self_signed("server", &[]).unwrap();
        let server = ServerTls::until_files(shelf.files(), &made).unwrap();
        assert!(greets(server.current(), &TlsTrust::Thumbprint(made.thumbprint())));
        let first = shelf.renew();
        tokio::time::advance(LOOK_EVERY).await;
        assert!(greets(server.current(), &first));
    }

    #[test]
    fn a_certificate_is_for_its_hosts_and_no_others() {
        let made = TlsIdentity::self_signed("server", &["node-1", "10.0.0.7"]).unwrap();
        let is_for = ["node-1", "10.0.0.7", "node-2", "10.0.0.8", ""].map(|host| made.is_for(host));
        assert_eq!(is_for, [true, true, false, false, false]);
        let said = made.certificate().unwrap();
        assert!(said.not_before < said.not_after);
    }

    #[tokio::test]
    async fn a_file_that_is_missing_is_named() {
        let shelf = Shelf::new();
        let missing = ServerTls::from_files(shelf.files()).unwrap_err();
        assert_eq!(missing.part(), TlsPart::Certificate);
        assert!(missing.to_string().ends_with("cert.pem cannot be read"), "{missing}");
    }
}
