//! One request and its answer on the wire, metered and within a deadline. No retries, no login: see `call.rs` for those.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method as HttpMethod, Request, Response, StatusCode, Uri, header,
};
use http_body_util::BodyExt;
use roost_vim_wire::methods::Service;
use roost_vim_wire::{
    Item, LocalizedMethodFault, Method, PageDecoder, Reply, WireError, decode_reply,
    encode_request, encode_request_in,
};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::client_core::Core;
use crate::meter::Meter;
use crate::remedy::fault_kind;
use crate::transport::{empty_body, full_body};
use crate::{Body, CallClass, CallError, Outcome};

const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("roost/", env!("CARGO_PKG_VERSION")));
const TEXT_XML: HeaderValue = HeaderValue::from_static("text/xml; charset=\"utf-8\"");

/// Servers since 6.7 take this version.
const POLICY_ACTION: HeaderValue = HeaderValue::from_static("urn:pbm/2.0");

/// The value of a cookie, without its name and quotes.
fn cookie_value(cookie: &HeaderValue) -> Option<String> {
    let (_, value) = cookie.to_str().ok()?.split_once('=')?;
    Some(value.trim_matches('"').to_owned())
}

/// How long a page may take: until it begins, and then between any two pieces of it. A large page on a slow line is fine as
/// long as it keeps coming.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) first: Duration,
    pub(crate) silence: Duration,
}

impl Core {
    /// Sends one call and reads its whole answer.
    pub(crate) async fn exchange<M: Method>(
        &self,
        class: CallClass,
        call: &M,
        cookie: Option<&HeaderValue>,
        deadline: Instant,
    ) -> Result<(M::Output, HeaderMap), CallError> {
        let operation = self.next_operation();
        let span =
            tracing::debug_span!("vim_call", method = M::NAME, class = class.as_str(), %operation);
        let body = match M::SERVICE {
            Service::Vim => encode_request(call, Some(&operation)),
            Service::Policy | Service::Disks => {
                encode_request_in(call, Some(&operation), cookie.and_then(cookie_value).as_deref())
            }
        };
        let mut meter = Meter::start(&self.settings.hooks, M::NAME, class, body.len());
        let work = async {
            let mut request = self.soap_request(body, cookie);
            if let Some(path) = M::SERVICE.path() {
                *request.uri_mut() = self.service_uri(M::NAME, path)?;
                request.headers_mut().insert("SOAPAction", POLICY_ACTION);
            }
            let response = self.send(M::NAME, request).await?;
            let (parts, body) = response.into_parts();
            let status = soap_status(M::NAME, parts.status)?;
            let bytes = self.collect(M::NAME, body, &mut meter).await?;
            match decode_reply::<M>(&bytes) {
                Ok(Reply::Output(output)) => Ok((output, parts.headers)),
                Ok(Reply::Fault(fault)) => Err(CallError::of_fault(M::NAME, fault)),
                // A proxy's page, not the server's answer.
                Err(_) if status != StatusCode::OK => {
                    Err(CallError::Http { method: M::NAME, status })
                }
                Err(source) => Err(CallError::Answer { method: M::NAME, source }),
            }
        };
        let after = deadline.saturating_duration_since(Instant::now());
        let result = timeout_at(deadline, work.instrument(span.clone())).await;
        let result = result.unwrap_or(Err(CallError::Deadline { method: M::NAME, class, after }));
        span.in_scope(|| self.finish(meter, M::NAME, result.as_ref().err()));
        result
    }

    /// Sends one call whose answer comes in pages, and hands out each item as it arrives.
    pub(crate) async fn exchange_page<M: Method>(
        &self,
        call: &M,
        cookie: &HeaderValue,
        patience: Patience,
        found: impl FnMut(Item) + Send,
    ) -> Result<(), CallError> {
        let operation = self.next_operation();
        let span = tracing::debug_span!("vim_call", method = M::NAME, class = CallClass::Read.as_str(), %operation);
        let body = encode_request(call, Some(&operation));
        let mut meter = Meter::start(&self.settings.hooks, M::NAME, CallClass::Read, body.len());
        let request = self.soap_request(body, Some(cookie));
        let result = self
            .read_page(M::NAME, request, patience, &mut meter, found)
            .instrument(span.clone())
            .await;
        span.in_scope(|| self.finish(meter, M::NAME, result.as_ref().err()));
        result
    }

    async fn read_page(
        &self,
        method: &'static str,
        request: Request<Body>,
        patience: Patience,
        meter: &mut Meter<'_>,
        mut found: impl FnMut(Item) + Send,
    ) -> Result<(), CallError> {
        let late = |after| CallError::Deadline { method, class: CallClass::Read, after };
        let begin = Instant::now() + patience.first;
        let response = timeout_at(begin, self.send(method, request))
            .await
            .map_err(|_| late(patience.first))??;
        let status = soap_status(method, response.status())?;
        let (mut body, mut decoder, mut fault) = (response.into_body(), PageDecoder::new(), None);
        let mut sort = |item| match item {
            Item::Fault(found) => fault = Some(found),
            item => found(item),
        };
        let answer = |source| match source {
            _ if status != StatusCode::OK => CallError::Http { method, status },
            source => CallError::Answer { method, source },
        };
        loop {
            let next = timeout_at(Instant::now() + patience.silence, body.frame());
            let Some(frame) = next.await.map_err(|_| late(patience.silence))? else { break };
            let frame = frame.map_err(|source| CallError::connection(method, source))?;
            if let Ok(chunk) = frame.into_data() {
                meter.received(chunk.len());
                decoder.feed(&chunk, &mut sort).map_err(answer)?;
            }
        }
        decoder.finish(&mut sort).map_err(answer)?;
        fault.map_or(Ok(()), |fault| Err(CallError::of_fault(method, fault)))
    }

    /// The list of versions, or `None` if the server has none.
    pub(crate) async fn fetch_versions(&self) -> Result<Option<Bytes>, CallError> {
        const METHOD: &str = "vimServiceVersions";
        let uri = format!("{}/vimServiceVersions.xml", self.sdk);
        let uri = Uri::try_from(uri).map_err(|error| {
            CallError::connection(METHOD, io::Error::new(io::ErrorKind::InvalidInput, error))
        })?;
        let mut request = Request::new(empty_body());
        *request.uri_mut() = uri;
        request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
        let mut meter = Meter::start(&self.settings.hooks, METHOD, CallClass::Read, 0);
        let after = self.deadline(CallClass::Read);
        let work = async {
            let response = self.send(METHOD, request).await?;
            if response.status() != StatusCode::OK {
                return Ok(None);
            }
            self.collect(METHOD, response.into_body(), &mut meter).await.map(Some)
        };
        let result = timeout_at(Instant::now() + after, work).await;
        let result = result.unwrap_or(Err(CallError::Deadline {
            method: METHOD,
            class: CallClass::Read,
            after,
        }));
        self.finish(meter, METHOD, result.as_ref().err());
        result
    }

    pub(crate) async fn send(
        &self,
        method: &'static str,
        request: Request<Body>,
    ) -> Result<Response<Body>, CallError> {
        self.transport.send(request).await.map_err(|source| CallError::connection(method, source))
    }

    async fn collect(
        &self,
        method: &'static str,
        mut body: Body,
        meter: &mut Meter<'_>,
    ) -> Result<Bytes, CallError> {
        let limit = self.settings.max_answer_bytes;
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(chunk) =
                frame.map_err(|source| CallError::connection(method, source))?.into_data()
            else {
                continue;
            };
            meter.received(chunk.len());
            if whole.len() + chunk.len() > limit {
                return Err(CallError::Answer { method, source: WireError::TooLarge { limit } });
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.into())
    }

    fn soap_request(&self, body: Vec<u8>, cookie: Option<&HeaderValue>) -> Request<Body> {
        let length = HeaderValue::from(body.len());
        let mut request = Request::new(full_body(body));
        *request.method_mut() = HttpMethod::POST;
        *request.uri_mut() = self.sdk.clone();
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, TEXT_XML);
        headers.insert(header::CONTENT_LENGTH, length);
        headers.insert(header::USER_AGENT, USER_AGENT);
        headers.insert("SOAPAction", self.soap_action());
        if let Some(cookie) = cookie {
            headers.insert(header::COOKIE, cookie.clone());
        }
        request
    }

    fn service_uri(&self, method: &'static str, path: &str) -> Result<Uri, CallError> {
        Uri::try_from(format!("{}{path}", self.settings.url)).map_err(|error| {
            CallError::connection(method, io::Error::new(io::ErrorKind::InvalidInput, error))
        })
    }

    fn next_operation(&self) -> String {
        format!(
            "{}-{}",
            self.settings.operation_prefix,
            self.operations.fetch_add(1, Ordering::Relaxed) + 1
        )
    }

    /// Closes the books on one request.
    pub(crate) fn finish(&self, meter: Meter<'_>, method: &'static str, error: Option<&CallError>) {
        let outcome = match error {
            None => Outcome::Done,
            Some(CallError::Fault { fault, .. }) if is_expected(method, fault) => Outcome::Done,
            Some(CallError::Fault { fault, .. }) => {
                self.settings.hooks.fault(method, fault_kind(&fault.fault));
                Outcome::Fault
            }
            Some(CallError::Deadline { .. }) => Outcome::Deadline,
            Some(CallError::Connection { .. }) => Outcome::Connection,
            Some(_) => Outcome::BadAnswer,
        };
        match error.filter(|_| outcome != Outcome::Done) {
            None => tracing::trace!("answered"),
            Some(error) => tracing::debug!("{error}"),
        }
        meter.finish(outcome);
    }
}

/// The way in which the stream interrupts its own wait.
fn is_expected(method: &str, fault: &LocalizedMethodFault) -> bool {
    method == "WaitForUpdatesEx" && fault.fault.is("RequestCanceled")
}

/// 200 is an answer and 500 a fault; nothing else has a vim25 message in it.
fn soap_status(method: &'static str, status: StatusCode) -> Result<StatusCode, CallError> {
    match status {
        StatusCode::OK | StatusCode::INTERNAL_SERVER_ERROR => Ok(status),
        _ => Err(CallError::Http { method, status }),
    }
}
