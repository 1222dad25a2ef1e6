//! The seam between calls and the network.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};

use crate::Thumbprint;

/// A body in either direction.
pub type Body = BoxBody<Bytes, io::Error>;

pub type SendFuture = Pin<Box<dyn Future<Output = Result<http::Response<Body>, io::Error>> + Send>>;

/// Carries one HTTP request to the server and brings back status, headers and a body that is still arriving.
///
/// Deadlines are the caller's: a transport waits for as long as the future is polled, and dropping the future or the body
/// gives the request up. It follows no redirects and keeps no cookies. An error means that no whole answer came; whether
/// the server acted on the request is then unknown, except for [`io::ErrorKind::ConnectionRefused`], which says that
/// nothing was sent.
pub trait Transport: Debug + Send + Sync + 'static {
    fn send(&self, request: http::Request<Body>) -> SendFuture;

    /// From now on also trusts the certificate with this thumbprint, for this host only. For hosts that are met in answers of
    /// a server that is trusted already; a transport without TLS has nothing to do.
    fn trust(&self, host: &str, thumbprint: Thumbprint) {
        let _ = (host, thumbprint);
    }
}

pub(crate) fn full_body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

pub(crate) fn empty_body() -> Body {
    Empty::new().map_err(|never| match never {}).boxed()
}
