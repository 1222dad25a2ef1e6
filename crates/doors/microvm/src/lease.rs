//! The addresses that the host's DHCP server gave out: a JSON file that it replaces at every change.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

const RELEASE_WITHIN: Duration = Duration::from_secs(5);

/// The lease file, read again only when it changed.
#[derive(Debug)]
pub struct Leases {
    path: PathBuf,
    cached: Mutex<Option<Cached>>,
}

#[derive(Debug)]
struct Cached {
    modified: SystemTime,
    size: u64,
    leases: Vec<Lease>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lease {
    mac: String,
    ip: IpAddr,
    expiry: Timestamp,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    mac: String,
    #[serde(default)]
    ip: String,
    #[serde(default)]
    expiry: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("reading the leases in {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the leases in {} are not a JSON list", path.display())]
    Parse { path: PathBuf, source: serde_json::Error },
    #[error("releasing the lease of {mac} over {}", socket.display())]
    Release { mac: String, socket: PathBuf, source: std::io::Error },
    #[error("the DHCP server answered the release of {mac} with {answer:?}")]
    Refused { mac: String, answer: String },
}

impl Leases {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), cached: Mutex::default() }
    }

    /// The address of a card. Of several leases the one that lasts longest; one that has run out counts for nothing.
    pub fn address(&self, mac: &str, now: Timestamp) -> Result<Option<IpAddr>, LeaseError> {
        let mac = mac.to_ascii_lowercase();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        self.refresh(&mut cached)?;
        let leases = cached.as_ref().map_or(&[][..], |cached| &cached.leases);
        let live = leases.iter().filter(|lease| lease.mac == mac && lease.expiry > now);
        Ok(live.max_by_key(|lease| lease.expiry).map(|lease| lease.ip))
    }

    fn refresh(&self, cached: &mut Option<Cached>) -> Result<(), LeaseError> {
        let read = |source| LeaseError::Read { path: self.path.clone(), source };
        let metadata = std::fs::metadata(&self.path).map_err(read)?;
        let (modified, size) = (metadata.modified().map_err(read)?, metadata.len());
        if cached.as_ref().is_some_and(|cached| cached.modified == modified && cached.size == size)
        {
            return Ok(());
        }
        let text = std::fs::read(&self.path).map_err(read)?;
        let leases =
            parse(&text).map_err(|source| LeaseError::Parse { path: self.path.clone(), source })?;
        *cached = Some(Cached { modified, size, leases });
        Ok(())
    }

    /// Tells the DHCP server that a card is gone, so that its address is free at once and not in a day.
    pub async fn release(socket: &Path, mac: &str) -> Result<(), LeaseError> {
        let failed =
            |source| LeaseError::Release { mac: mac.to_owned(), socket: socket.to_owned(), source };
        let answer = timeout(RELEASE_WITHIN, async {
            let mut stream = UnixStream::connect(socket).await?;
            let request = format!(
                "DELETE /v1/leases/{mac} HTTP/1.1\r\nHost: cocoon-net\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.take(4096).read_to_end(&mut answer).await?;
            Ok(answer)
        })
        .await
        .unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut)))
        .map_err(failed)?;
        let first = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
        if first.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) {
            Ok(())
        } else {
            Err(LeaseError::Refused { mac: mac.to_owned(), answer: first })
        }
    }
}

/// An empty store is written as `null`. A row that cannot be read costs itself.
fn parse(text: &[u8]) -> Result<Vec<Lease>, serde_json::Error> {
    let rows: Option<Vec<serde_json::Value>> = serde_json::from_slice(text)?;
    let rows = rows.unwrap_or_default().into_iter();
    let lease = |row: serde_json::Value| {
        let row: Row = serde_json::from_value(row).ok()?;
        Some(Lease {
            mac: row.mac.to_ascii_lowercase(),
            ip: row.ip.parse().ok()?,
            expiry: row.expiry.parse().ok()?,
        })
    };
    Ok(rows.filter_map(lease).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn file(name: &str, text: &str) -> (PathBuf, Leases) {
        let path = std::env::temp_dir().join(format!("roost-leases-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        (path.clone(), Leases::new(path))
    }

    #[test]
    fn the_newest_lease_that_still_holds_is_the_address() {
        let (path, leases) = file(
            "newest",
            r#"[{"mac":"aa:bb:cc:dd:ee:ff","ip":"172.20.0.9","expiry":"2026-05-01T09:00:00Z"},
                {"mac":"AA:BB:CC:DD:EE:FF","ip":"172.20.0.10","expiry":"2026-05-01T10:00:00Z"},
                {"mac":"aa:bb:cc:dd:ee:01","ip":"172.20.0.11","expiry":"soon"},
                "odd"]"#,
        );
        let now = at("2026-05-01T08:00:00Z");
        assert_eq!(
            leases.address("Aa:bb:cc:dd:ee:ff", now).unwrap(),
            Some("172.20.0.10".parse().unwrap())
        );
        assert_eq!(
            leases.address("aa:bb:cc:dd:ee:01", now).unwrap(),
            None,
            "its expiry cannot be read"
        );
        assert_eq!(
            leases.address("aa:bb:cc:dd:ee:ff", at("2026-05-01T11:00:00Z")).unwrap(),
            None,
            "expired"
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let (path, leases) = file("changed", "null");
        let now = at("2026-05-01T08:00:00Z");
        assert_eq!(leases.address("aa:bb:cc:dd:ee:ff", now).unwrap(), None);
        std::fs::write(
            &path,
            r#"[{"mac":"aa:bb:cc:dd:ee:ff","ip":"10.0.0.1","expiry":"2026-05-02T00:00:00Z"}]"#,
        )
        .unwrap();
        assert_eq!(
            leases.address("aa:bb:cc:dd:ee:ff", now).unwrap(),
            Some("10.0.0.1".parse().unwrap())
        );
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(leases.address("aa:bb:cc:dd:ee:ff", now), Err(LeaseError::Read { .. })));
    }
}
