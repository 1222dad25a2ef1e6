//! The pair on disk, and the key of a request that nobody has signed yet.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use roost_tls::TlsIdentity;

use crate::settings::Settings;

/// A certificate and its key.
#[derive(Debug)]
pub(crate) struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Pair {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self { certificate: settings.tls_cert.clone(), key: settings.tls_key.clone() }
    }

    /// `None` if it is not there, not whole, or the key is another's.
    pub(crate) fn read(&self) -> Option<TlsIdentity> {
        let read = || {
            let (chain, key) = (fs::read(&self.certificate).ok()?, fs::read(&self.key).ok()?);
            TlsIdentity::from_pem(&chain, &key).ok()
        };
        read()?.server_config().ok()?;
        read()
    }

    /// The key first: whoever reads between the two sees that they do not belong together, and reads again.
    pub(super) fn write(&self, certificate: &[u8], key: &str) -> io::Result<()> {
        replace(&self.key, key.as_bytes(), 0o600)?;
        replace(&self.certificate, certificate, 0o644)?;
        match fs::remove_file(self.requested()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The key that is waiting for its certificate.
    pub(super) fn requested_key(&self) -> Option<String> {
        fs::read_to_string(self.requested()).ok()
    }

    pub(super) fn keep_requested(&self, key: &str) -> io::Result<()> {
        replace(&self.requested(), key.as_bytes(), 0o600)
    }

    pub(super) fn drop_requested(&self) {
        let _ = fs::remove_file(self.requested());
    }

    fn requested(&self) -> PathBuf {
        beside(&self.key, "requested")
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Whole or not at all.
fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = beside(path, "new");
    let _ = fs::remove_file(&new);
    let mut file = File::options().write(true).create_new(true).mode(mode).open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)
}
