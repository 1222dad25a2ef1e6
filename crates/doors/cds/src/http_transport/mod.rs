//! The real side of [`Transport`]: HTTP/1.1 by reqwest, websockets as upgrades of the same connections.
//!
//! One client carries both, so proxies from the environment, certificates and `insecure` hold for websockets as well.
//! Unlike the Go client, requests do not say `Connection: close`: the header is for the next hop only, and without it a
//! call in the path of a spawn saves a TCP and a TLS handshake.

mod websocket;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::redirect::Policy;
use roost_tls::{TlsTrust, TrustError};

use crate::{SendFuture, SocketFuture, Transport};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Shorter than what servers and load balancers usually allow, so that we are the ones to close.
const IDLE_TIMEOUT: Duration = Duration::from_secs(25);
/// A queue of thousands of jobs has a few megabytes.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// As the API's logs and the embedded one's counters know it.
const USER_AGENT: &str = concat!("roost/", env!("CARGO_PKG_VERSION"));

/// How to reach the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// Believes any certificate.
    pub insecure: bool,
    /// PEM certificates to believe in place of the system's.
    pub ca_file: Option<PathBuf>,
}

impl HttpSettings {
    /// Whose certificates are believed.
    pub fn trust(&self) -> TlsTrust {
        match &self.ca_file {
            _ if self.insecure => TlsTrust::Insecure,
            Some(path) => TlsTrust::CaFile(path.clone()),
            None => TlsTrust::System,
        }
    }
}

/// Why there is no transport.
#[derive(Debug, thiserror::Error)]
pub enum HttpSetupError {
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("setting up HTTP")]
    Client { source: reqwest::Error },
}

/// Carries calls over the network.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    client: reqwest::Client,
}

impl HttpTransport {
    pub fn new(settings: &HttpSettings) -> Result<Self, HttpSetupError> {
        if settings.insecure {
            tracing::warn!("the certificate of the CDS API is not verified");
        }
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(settings.trust().client_config()?)
            .http1_only()
            .user_agent(USER_AGENT)
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()
            .map_err(|source| HttpSetupError::Client { source })?;
        Ok(Self { client })
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture {
        let client = self.client.clone();
        Box::pin(async move {
            let request = reqwest::Request::try_from(request).map_err(as_io)?;
            read(client.execute(request).await.map_err(as_io)?).await
        })
    }

    fn websocket(&self, request: http::Request<()>) -> SocketFuture {
        Box::pin(websocket::open(self.client.clone(), request))
    }
}

async fn read(mut answer: reqwest::Response) -> io::Result<http::Response<Bytes>> {
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await.map_err(as_io)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::other("the answer is larger than 32 MiB"));
        }
        body.extend_from_slice(&chunk);
    }
    let mut response = http::Response::new(body.freeze());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    Ok(response)
}

fn as_io(error: reqwest::Error) -> io::Error {
    let kind = if error.is_timeout() {
        io::ErrorKind::TimedOut
    } else if error.is_connect() {
        io::ErrorKind::ConnectionRefused
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, error.without_url())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that sends without end, or garbage for a list, must not fill the memory.
    #[tokio::test]
    async fn an_answer_is_read_up_to_what_a_full_queue_needs() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/queue/workflows", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.unwrap();
            let mut sent = 0;
            while stream.write_all(&[b' '; 1 << 13]).await.is_ok() {
                sent += 1 << 13;
            }
            sent
        });
        let transport = HttpTransport::new(&HttpSettings::default()).unwrap();
        let request = http::Request::get(url).body(Bytes::new()).unwrap();
        let refused = transport.send(request).await.unwrap_err();
        assert_eq!(refused.to_string(), "the answer is larger than 32 MiB");
        drop(transport);
        let sent = server.await.unwrap();
        assert!(sent < 2 * MAX_ANSWER_BYTES, "it is not read to its end: {sent}");
    }
}
