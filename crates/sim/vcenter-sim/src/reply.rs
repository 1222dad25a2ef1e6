//! HTTP answers.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};

use crate::door::Body;

pub(crate) fn body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

/// A status and nothing else.
pub(crate) fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    let note = match status {
        StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, HeaderValue::from_static("POST"))),
        StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, HeaderValue::from_static("5"))),
        _ => None,
    };
    response.headers_mut().extend(note);
    response
}

pub(crate) fn content(
    status: StatusCode,
    kind: &'static str,
    bytes: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(body(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    content(status, "application/json", value.to_string())
}

/// A SOAP answer, compressed if it has `gzip_from` bytes or more.
pub(crate) fn xml(status: StatusCode, bytes: Vec<u8>, gzip_from: Option<usize>) -> Response<Body> {
    const KIND: &str = "text/xml; charset=utf-8";
    if gzip_from.is_none_or(|from| bytes.len() < from) {
        return content(status, KIND, bytes);
    }
    let Some(small) = gzip(&bytes) else { return content(status, KIND, bytes) };
    let mut response = content(status, KIND, small);
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    // The fastest level: a page of VMs shrinks by a factor of thirty with it already.
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// The value of a parameter in a URI's query.
pub(crate) fn query(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
    let spaced = value.replace('+', " ");
    Some(percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
}
