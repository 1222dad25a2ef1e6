use std::fmt::Debug;
use std::pin::Pin;

use roost_vim::Body;

/// Where ISOs come from. Dropping an answer gives the download up.
pub trait IsoSource: Debug + Send + Sync + 'static {
    /// Begins to read. `known` is the mark of what is known already: the server may say that it is the same.
    fn fetch<'a>(&'a self, url: &'a str, known: Option<&'a str>) -> Fetch<'a>;

    /// The same from a server whose certificate these authorities vouch for, as PEM. A source without TLS need not look at them.
    fn fetch_trusting<'a>(
        &'a self,
        url: &'a str,
        known: Option<&'a str>,
        _authorities: Option<&'a str>,
    ) -> Fetch<'a> {
        self.fetch(url, known)
    }
}

pub type Fetch<'a> = Pin<Box<dyn Future<Output = Result<Fetched, SourceError>> + Send + 'a>>;

#[expect(missing_debug_implementations, reason = "a body has none")]
pub enum Fetched {
    Unchanged,
    Content {
        /// As the server says; some do not.
        length: Option<u64>,
        /// What to ask with the next time.
        mark: Option<String>,
        body: Body,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("the server of the ISO answered with HTTP status {status}")]
    Status { status: u16 },
    #[error("downloading the ISO")]
    Download { source: Box<dyn std::error::Error + Send + Sync> },
}
