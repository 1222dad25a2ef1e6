//! Calls of vCenter's REST interface, under a session of their own: vim25's cookie is not taken there.
//!
//! The spelling is the one below `/rest/com/vmware`, which every server since 6.5 speaks; the newer one below `/api` came with 7.0.2.
//!
//! One session per client, opened by the first call and renewed when the server says that it is gone.

use base64::Engine as _;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::client_core::Core;
use crate::meter::Meter;
use crate::transport::{empty_body, full_body};
use crate::{Body, CallClass, CallError, Client, Observer, Outcome, Remedy};

/// No answer of this interface is larger that anybody here asks for.
const MAX_ANSWER: usize = 16 << 20;

const SESSION: &str = "vmware-api-session-id";

/// Why a REST call has no result.
#[derive(Debug, thiserror::Error)]
pub enum RestError {
    #[error("{what}")]
    Call { what: &'static str, source: CallError },
    #[error("{what}: the server refused with {status}, {kind}: {message}")]
    Refused { what: &'static str, status: StatusCode, kind: String, message: String },
    #[error("{what}: the answer cannot be read")]
    Answer { what: &'static str, source: serde_json::Error },
    #[error("{what}: {message}")]
    Failed { what: &'static str, message: String },
    #[error("{what}")]
    Transfer { what: &'static str, source: crate::TransferError },
}

impl RestError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Call { source, .. } => source.remedy(),
            Self::Refused { status, what, .. } => {
                CallError::Http { method: what, status: *status }.remedy()
            }
            Self::Transfer { source, .. } => source.remedy(),
            Self::Answer { .. } | Self::Failed { .. } => Remedy::GiveUp,
        }
    }

    /// Whether it may have been done although nothing says so.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Call { source, .. } => source.outcome_unknown(),
            Self::Refused { status, .. } => status.is_server_error(),
            Self::Answer { .. } => true,
            Self::Transfer { .. } | Self::Failed { .. } => false,
        }
    }

    /// Whether what was asked for is not there.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::NOT_FOUND, .. })
    }

    pub fn already_exists(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind.eq_ignore_ascii_case("already_exists"))
    }
}

/// The session of the REST interface, if there is one.
#[derive(Debug, Default)]
pub(crate) struct RestSlot(tokio::sync::Mutex<Option<HeaderValue>>);

/// One call.
pub(crate) struct RestCall<'a> {
    /// For metrics and errors, such as `deploying an OVF template`.
    pub(crate) what: &'static str,
    pub(crate) class: CallClass,
    pub(crate) method: Method,
    /// Behind `/rest/com/vmware/`, with its query.
    pub(crate) path: &'a str,
    pub(crate) body: Option<&'a Value>,
}

impl Observer {
    /// A call that changes nothing on the server but its own sessions.
    pub(crate) async fn rest(&self, call: RestCall<'_>) -> Result<Value, RestError> {
        self.core().rest(call).await
    }

    pub(crate) async fn rest_get(
        &self,
        what: &'static str,
        path: &str,
    ) -> Result<Value, RestError> {
        let class = CallClass::Read;
        self.rest(RestCall { what, class, method: Method::GET, path, body: None }).await
    }

    pub(crate) async fn rest_query(
        &self,
        what: &'static str,
        path: &str,
        body: &Value,
    ) -> Result<Value, RestError> {
        let class = CallClass::Read;
        self.rest(RestCall { what, class, method: Method::POST, path, body: Some(body) }).await
    }
}

impl Client {
    /// A change. Never repeated, but for a session that the server no longer knew.
    pub(crate) async fn rest_change(
        &self,
        what: &'static str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, RestError> {
        self.rest(RestCall { what, class: CallClass::Submit, method, path, body }).await
    }
}

impl Core {
    async fn rest(&self, call: RestCall<'_>) -> Result<Value, RestError> {
        let what = call.what;
        let deadline = Instant::now() + self.deadline(call.class);
        let mut renewed = false;
        loop {
            let session = self.rest_session(deadline).await?;
            let (status, bytes) = self.rest_once(&call, Some(&session), None, deadline).await?;
            if status == StatusCode::UNAUTHORIZED && !renewed {
                renewed = true;
                let mut slot = self.rest.0.lock().await;
                if slot.as_ref() == Some(&session) {
                    *slot = None;
                }
                continue;
            }
            return read(what, status, &bytes);
        }
    }

    /// The session that is open, or a new one. Callers that come together share the login.
    async fn rest_session(&self, deadline: Instant) -> Result<HeaderValue, RestError> {
        const WHAT: &str = "opening a REST session";
        let failed = |source| RestError::Call { what: WHAT, source };
        let mut slot = self.rest.0.lock().await;
        if let Some(session) = slot.as_ref() {
            return Ok(session.clone());
        }
        let read_credentials = self.settings.credentials.read();
        let credentials = read_credentials
            .map_err(|source| failed(CallError::Credentials { source: source.into() }))?;
        let pair = format!("{}:{}", credentials.user, credentials.password().0);
        let basic = base64::engine::general_purpose::STANDARD.encode(pair);
        let mut basic = HeaderValue::try_from(format!("Basic {basic}"))
            .map_err(|_| failed(CallError::NoCookie))?;
        basic.set_sensitive(true);
        let call = RestCall {
            what: WHAT,
            class: CallClass::Login,
            method: Method::POST,
            path: "cis/session",
            body: None,
        };
        let (status, bytes) = self.rest_once(&call, None, Some(&basic), deadline).await?;
        if status == StatusCode::UNAUTHORIZED {
            let user = credentials.user.clone();
            return Err(failed(CallError::BadCredentials { user, attempts: 1 }));
        }
        let answer = read(WHAT, status, &bytes)?;
        let token = answer.as_str().and_then(|token| HeaderValue::try_from(token).ok());
        let mut token = token.ok_or_else(|| failed(CallError::NoCookie))?;
        token.set_sensitive(true);
        *slot = Some(token.clone());
        Ok(token)
    }

    /// Ends the session of the REST interface, if there is one.
    pub(crate) async fn end_rest(&self) {
        let Some(session) = self.rest.0.lock().await.take() else { return };
        let call = RestCall {
            what: "ending a REST session",
            class: CallClass::Login,
            method: Method::DELETE,
            path: "cis/session",
            body: None,
        };
        let deadline = Instant::now() + self.deadline(CallClass::Read);
        if let Err(error) = self.rest_once(&call, Some(&session), None, deadline).await {
            tracing::debug!("the REST session is left to its idle limit: {error}");
        }
    }

    async fn rest_once(
        &self,
        call: &RestCall<'_>,
        session: Option<&HeaderValue>,
        basic: Option<&HeaderValue>,
        deadline: Instant,
    ) -> Result<(StatusCode, Vec<u8>), RestError> {
        let failed = |source| RestError::Call { what: call.what, source };
        let body = call.body.map(ToString::to_string);
        let mut meter = Meter::start(
            &self.settings.hooks,
            call.what,
            call.class,
            body.as_ref().map_or(0, String::len),
        );
        let mut request: Request<Body> = Request::new(match body {
            Some(body) => full_body(body),
            None => empty_body(),
        });
        *request.method_mut() = call.method.clone();
        *request.uri_mut() =
            format!("{}rest/com/vmware/{}", self.settings.url, call.path).parse().map_err(
                |_| RestError::Failed { what: call.what, message: "the address is none".into() },
            )?;
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if call.body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.extend(
            session.map(|session| (http::HeaderName::from_static(SESSION), session.clone())),
        );
        headers.extend(basic.map(|basic| (header::AUTHORIZATION, basic.clone())));
        let work = async {
            let response = self.send(call.what, request).await?;
            let status = response.status();
            let body = http_body_util::Limited::new(response.into_body(), MAX_ANSWER);
            let bytes = body.collect().await.map_err(|error| {
                CallError::connection(call.what, std::io::Error::other(error.to_string()))
            })?;
            Ok((status, bytes.to_bytes().to_vec()))
        };
        let after = deadline.saturating_duration_since(Instant::now());
        let late = CallError::Deadline { method: call.what, class: call.class, after };
        let result = timeout_at(deadline, work).await.unwrap_or(Err(late));
        match &result {
            Ok((status, bytes)) => {
                meter.received(bytes.len());
                meter.finish(if status.is_success() { Outcome::Done } else { Outcome::Fault });
            }
            Err(error) => self.finish(meter, call.what, Some(error)),
        }
        result.map_err(failed)
    }
}

fn read(what: &'static str, status: StatusCode, bytes: &[u8]) -> Result<Value, RestError> {
    if status.is_success() {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        let answer: Result<Value, _> = serde_json::from_slice(bytes);
        let mut answer = answer.map_err(|source| RestError::Answer { what, source })?;
        return Ok(answer["value"].take());
    }
    let answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = Some(text(&answer["error_type"])).filter(|kind| !kind.is_empty());
    // Some servers answer in the older form: `com.vmware.vapi.std.errors.not_found`.
    let kind = kind
        .unwrap_or_else(|| text(&answer["type"]).rsplit('.').next().unwrap_or_default().to_owned());
    let messages = answer.get("messages").or_else(|| answer.get("value")?.get("messages"));
    let message = messages.map(|all| text(&all[0]["default_message"])).unwrap_or_default();
    Err(RestError::Refused { what, status, kind, message })
}

/// An id as it stands in a path.
pub(crate) fn id(text: &str) -> String {
    format!("id:{}", escape(text))
}

/// Escapes what stands in a path or a query.
pub(crate) fn escape(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
