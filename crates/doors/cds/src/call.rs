use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use crate::{CallError, Secret, json};

/// What Go's `url.PathEscape` leaves as it is.
const PATH_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// One request to the API, before it has a server and a session.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    pub(crate) method: Method,
    path: String,
    query: String,
    pub(crate) body: Bytes,
    pub(crate) budget: Option<Duration>,
    /// What the body must not be quoted with.
    pub(crate) secret: Option<Secret>,
}

impl Call {
    /// `path` begins with a slash and is sent as it is; see [`Call::segment`] for names in it.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        let (query, body) = (String::new(), Bytes::new());
        Self { method, path: path.into(), query, body, budget: None, secret: None }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path)
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    #[must_use]
    pub fn json<T: Serialize + ?Sized>(mut self, body: &T) -> Self {
        self.body = json::encode(body).into();
        self
    }

    #[must_use]
    pub fn query(mut self, key: &str, value: &str) -> Self {
        let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        self.push_query(key, &value);
        self
    }

    /// As [`Call::query`] with the slashes left alone, which is how the API is asked for `osarch`.
    #[must_use]
    pub fn query_with_slashes(mut self, key: &str, value: &str) -> Self {
        let escaped: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        self.push_query(key, &escaped.replace("%2F", "/"));
        self
    }

    fn push_query(&mut self, key: &str, escaped: &str) {
        self.query.push(if self.query.is_empty() { '?' } else { '&' });
        self.query.push_str(key);
        self.query.push('=');
        self.query.push_str(escaped);
    }

    /// Gives the whole call this long, all attempts and pauses included.
    #[must_use]
    pub fn within(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Names the secret that the body carries, so that an answer that quotes it is cleaned of it.
    #[must_use]
    pub fn carrying(mut self, secret: &Secret) -> Self {
        self.secret = Some(secret.clone());
        self
    }

    /// One name as part of a path: `org/repo` becomes `org%2Frepo`.
    pub fn segment(name: &str) -> String {
        utf8_percent_encode(name, PATH_SEGMENT).to_string()
    }

    pub fn path_and_query(&self) -> String {
        format!("{}{}", self.path, self.query)
    }
}

/// Method and path, which is how logs and errors name a call.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// As `Display`: a body may carry a token.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A successful answer.
#[derive(Clone)]
pub struct Answer {
    pub(crate) call: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; nothing (204) reads as null.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        json::decode(&self.body)
            .map_err(|error| CallError::Answer { call: self.call.clone(), source: Arc::new(error) })
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("call", &self.call)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_escaped_as_go_escapes_them() {
        assert_eq!(Call::segment("org/my repo+x@y~z"), "org%2Fmy%20repo+x@y~z");
        let call = Call::get("/p").query("branch", "refs/heads/a b").query("region", "");
        assert_eq!(call.path_and_query(), "/p?branch=refs%2Fheads%2Fa+b&region=");
        let call = Call::get("/p").query_with_slashes("osarch", "linux/amd64&x");
        assert_eq!(call.path_and_query(), "/p?osarch=linux/amd64%26x");
    }

    #[test]
    fn a_call_prints_its_path_and_not_its_body() {
        let call = Call::post("/signin").query("q", "1").json("hunter2");
        assert_eq!(format!("{call} {call:?}"), "POST /signin POST /signin");
    }
}
