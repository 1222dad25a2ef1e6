//! The seam between calls and the network.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::mpsc;

pub type SendFuture = Pin<Box<dyn Future<Output = io::Result<http::Response<Bytes>>> + Send>>;
pub type SocketFuture = Pin<Box<dyn Future<Output = Result<Socket, SocketError>> + Send>>;

/// Carries requests to a CDS API and opens websockets on it.
///
/// Deadlines are the caller's: a transport waits for as long as the future is polled, and dropping the future gives the
/// request up. It follows no redirects, keeps no cookies and decodes content encodings. An error means that no whole
/// answer came; whether the server acted on the request is then unknown.
pub trait Transport: Debug + Send + Sync + 'static {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture;

    /// `request` is a GET with the scheme `http` or `https`; the transport adds what the upgrade needs.
    fn websocket(&self, request: http::Request<()>) -> SocketFuture;
}

/// An open websocket as a pair of text messages. Dropping it closes it.
#[derive(Debug)]
pub struct Socket {
    /// Ends after the error that says how the socket closed, or with `None` if nobody can say.
    pub incoming: mpsc::Receiver<Result<String, SocketClosed>>,
    pub outgoing: mpsc::Sender<String>,
}

impl Socket {
    /// A socket and the other side of it.
    pub fn pair(capacity: usize) -> (Self, SocketPeer) {
        let (to_us, incoming) = mpsc::channel(capacity);
        let (outgoing, from_us) = mpsc::channel(capacity);
        (Self { incoming, outgoing }, SocketPeer { incoming: from_us, outgoing: to_us })
    }
}

/// What a transport holds of a [`Socket`].
#[derive(Debug)]
pub struct SocketPeer {
    /// Ends when the socket was dropped.
    pub incoming: mpsc::Receiver<String>,
    pub outgoing: mpsc::Sender<Result<String, SocketClosed>>,
}

/// How a websocket ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("websocket closed with code {code}{}{reason}", if reason.is_empty() { "" } else { ": " })]
pub struct SocketClosed {
    /// As in RFC 6455; [`SocketClosed::ABNORMAL`] when the connection broke.
    pub code: u16,
    pub reason: String,
}

impl SocketClosed {
    /// No closing frame came.
    pub const ABNORMAL: u16 = 1006;

    pub fn broken(reason: impl Into<String>) -> Self {
        Self { code: Self::ABNORMAL, reason: reason.into() }
    }
}

/// Why a websocket did not open.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("no whole answer")]
    Io(#[from] io::Error),
    #[error("HTTP status {}", .0.status())]
    Refused(http::Response<Bytes>),
}
