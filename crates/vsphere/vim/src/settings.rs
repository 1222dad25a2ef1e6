use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::{CredentialSource, Deadlines, Hooks, NoHooks};

/// Why an address is not that of a vSphere server.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("{address:?} is not the address of a vSphere server")]
    Malformed { address: String, source: url::ParseError },
    #[error("{address:?} has the scheme {scheme}, only https and http are spoken")]
    Scheme { address: String, scheme: String },
    #[error("the address holds a user name or password; give them as credentials")]
    Secret,
    #[error("{address:?} names no host")]
    NoHost { address: String },
}

/// How to reach and treat one server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Scheme, host and port; calls go to `/sdk` on it.
    pub url: Url,
    pub credentials: Arc<dyn CredentialSource>,
    pub deadlines: Deadlines,
    /// Between two `CurrentTime` calls that keep the session from expiring, well inside the usual 30 minutes.
    pub keep_alive: Duration,
    /// After the first refused login; doubled after the second. vCenter locks an account after five bad logins in three
    /// minutes.
    pub login_pause: Duration,
    pub stream: StreamSettings,
    pub hooks: Arc<dyn Hooks>,
    /// Stands before the number in each `operationID`, by which the server's logs name our calls.
    pub operation_prefix: String,
    /// An answer that is not read page by page may be as large as this.
    pub max_answer_bytes: usize,
}

/// How the property stream waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    /// How long the server holds a wait without news. At rest this is the interval between two calls.
    pub max_wait: Duration,
    /// Upper bound of objects per page that we ask for; vCenter may use a lower one.
    pub max_object_updates: i32,
    /// First pause after a break that came with an error; doubled up to `max_pause`.
    pub first_pause: Duration,
    pub max_pause: Duration,
    /// A task that the stream has not announced by now is read once, and then again at growing intervals. Only servers
    /// that do not announce changes of a list view need it.
    pub task_announcement: Duration,
    /// Where the server answers reads but cannot be waited on, everything that is watched is read this often instead, until it can be. `None`: the stream
    /// only tries again, with growing pauses.
    pub read_instead: Option<Duration>,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            max_wait: Duration::from_mins(1),
            max_object_updates: 500,
            first_pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(30),
            task_announcement: Duration::from_secs(1),
            read_instead: None,
        }
    }
}

impl Settings {
    /// `address` is a host, a host with port, or a URL with or without `/sdk`; https unless it says otherwise.
    pub fn new(address: &str, credentials: impl CredentialSource) -> Result<Self, AddressError> {
        Ok(Self {
            url: parse_address(address)?,
            credentials: Arc::new(credentials),
            deadlines: Deadlines::default(),
            keep_alive: Duration::from_mins(5),
            login_pause: Duration::from_mins(1),
            stream: StreamSettings::default(),
            hooks: Arc::new(NoHooks),
            operation_prefix: "roost".into(),
            max_answer_bytes: 64 << 20,
        })
    }
}

fn parse_address(address: &str) -> Result<Url, AddressError> {
    let address = address.trim();
    let text =
        if address.contains("://") { address.to_owned() } else { format!("https://{address}") };
    // The address is not repeated in an error before it is known to hold no password.
    let named = || if text.contains('@') { "…".to_owned() } else { address.to_owned() };
    let mut url =
        Url::parse(&text).map_err(|source| AddressError::Malformed { address: named(), source })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Secret);
    }
    if !matches!(url.scheme(), "https" | "http") {
        return Err(AddressError::Scheme { address: named(), scheme: url.scheme().into() });
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(AddressError::NoHost { address: named() });
    }
    url.set_path("/");
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_or_a_url() {
        for (address, wanted) in [
            ("vc.example.org", "https://vc.example.org/"),
            ("vc.example.org:8989", "https://vc.example.org:8989/"),
            (" https://vc/sdk ", "https://vc/"),
            ("http://127.0.0.1:8989/sdk?x=1#y", "http://127.0.0.1:8989/"),
            ("[::1]:8989", "https://[::1]:8989/"),
        ] {
            assert_eq!(parse_address(address).unwrap().as_str(), wanted, "{address}");
        }
    }

    #[test]
    fn a_bad_address_is_one_clear_line_without_a_password() {
        for (address, part) in [
            ("ftp://vc", "scheme ftp"),
            ("", "is not the address"),
            ("vc:notaport", "vc:notaport"),
            ("https://roost:hunter2@vc/sdk", "credentials"),
            ("roost:hunter2@vc:notaport", "is not the address"),
        ] {
            let line = parse_address(address).unwrap_err().to_string();
            assert!(line.contains(part), "{address}: {line}");
            assert!(!line.contains("hunter2") && !line.contains('\n'), "{line}");
        }
    }
}
