//! The network side of [`Transport`].

use std::io;
use std::time::Duration;

use http_body_util::BodyExt;
use roost_supervise::Chain;
use roost_tls::{Pins, TrustError};

use crate::{Body, SendFuture, Thumbprint, TlsTrust, Transport};

/// Why no connection can be made from here.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("setting up HTTP")]
    Http { source: reqwest::Error },
}

/// HTTP/1.1 with kept connections, compression, and TLS by rustls. No redirects, no cookies, no time limits of its own.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    client: reqwest::Client,
    pins: Pins,
}

impl HttpTransport {
    pub fn new(trust: &TlsTrust) -> Result<Self, TransportError> {
        let pins = Pins::default();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(trust.client_config_with(pins.clone(), None)?)
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            // A peer that vanished without a word is noticed within minutes also while a wait is open.
            .tcp_keepalive(Duration::from_secs(30))
            .tcp_nodelay(true)
            .build()
            .map_err(|source| TransportError::Http { source })?;
        Ok(Self { client, pins })
    }

    /// Also believes the certificate with this thumbprint, on this host only.
    #[must_use]
    pub fn with_pin(self, host: &str, thumbprint: Thumbprint) -> Self {
        self.pins.add(host, thumbprint);
        self
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: http::Request<Body>) -> SendFuture {
        let client = self.client.clone();
        Box::pin(async move {
            let request =
                reqwest::Request::try_from(request.map(reqwest::Body::wrap)).map_err(to_io)?;
            let response = client.execute(request).await.map_err(to_io)?;
            let response: http::Response<reqwest::Body> = response.into();
            Ok(response.map(|body| body.map_err(to_io).boxed()))
        })
    }

    fn trust(&self, host: &str, thumbprint: Thumbprint) {
        self.pins.add(host, thumbprint);
    }
}

/// Keeps the kind that the contract of [`Transport`] promises, and the causes in one line without the URL: it can hold a ticket.
fn to_io(error: reqwest::Error) -> io::Error {
    let kind = if error.is_connect() || error.is_builder() {
        io::ErrorKind::ConnectionRefused
    } else if error.is_timeout() {
        io::ErrorKind::TimedOut
    } else {
        io::ErrorKind::ConnectionAborted
    };
    let error = error.without_url();
    io::Error::new(kind, Chain(&error).to_string())
}
