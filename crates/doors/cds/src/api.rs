use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderValue};
use http::{HeaderName, Request, StatusCode};
use roost_clock::Clock;
use tokio::time::{self, Instant};
use tracing::{debug, warn};
use url::Url;

use crate::transport::{Socket, SocketError, Transport};
use crate::{Answer, ApiError, Call, CallError, Secret, go_time};

const REMOTE_TIME: HeaderName = HeaderName::from_static("x-cds-remotetime");
/// In all, with [`PAUSE`] between two.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(250);
/// What a configured time-out of 0 means.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// A CDS API at an address: headers, retries and time-outs of single calls, without a session. For who brings a token along,
/// such as a worker; a hatchery has [`v1::Client`](crate::v1::Client) and [`v2::Client`](crate::v2::Client).
#[derive(Debug, Clone)]
pub struct Api {
    transport: Arc<dyn Transport>,
    base: String,
    timeout: Duration,
    clock: Arc<dyn Clock>,
}

impl Api {
    /// `timeout` bounds each attempt of a call; zero means 60 s.
    pub fn new(
        transport: Arc<dyn Transport>,
        url: &Url,
        timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let base = url.as_str().trim_end_matches('/').to_owned();
        let timeout = if timeout.is_zero() { DEFAULT_TIMEOUT } else { timeout };
        Self { transport, base, timeout, clock }
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Sends the call up to three times, until the answer is anything but a broken connection, 409 or 500 and above.
    pub async fn call(&self, call: &Call, token: Option<&Secret>) -> Result<Answer, CallError> {
        let deadline = call.budget.map(|budget| Instant::now() + budget);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match self.attempt(call, token, attempts, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let out_of_time = deadline.is_some_and(|deadline| Instant::now() + PAUSE >= deadline);
            if attempts == ATTEMPTS || out_of_time || !is_worth_another_attempt(&error) {
                return Err(error);
            }
            warn!(%call, attempts, "CDS call is tried again: {error}");
            time::sleep(PAUSE).await;
        }
    }

    async fn attempt(
        &self,
        call: &Call,
        token: Option<&Secret>,
        attempts: u32,
        deadline: Option<Instant>,
    ) -> Result<Answer, CallError> {
        let name = || call.to_string();
        let transport_error = |source: io::Error| CallError::Transport {
            call: name(),
            attempts,
            source: Arc::new(source),
        };
        let started = Instant::now();
        let request =
            self.request(call, token).map_err(io::Error::other).map_err(transport_error)?;
        let limit = deadline.map_or(self.timeout, |deadline| {
            self.timeout.min(deadline.saturating_duration_since(started))
        });
        let response = time::timeout(limit, self.transport.send(request))
            .await
            .map_err(|_| CallError::Timeout { call: name(), attempts, timeout: limit })?
            .map_err(transport_error)?;
        let (parts, body) = response.into_parts();
        debug!(
            %call,
            status = parts.status.as_u16(),
            millis = started.elapsed().as_millis(),
            "CDS answered"
        );
        if parts.status.is_success() {
            return Ok(Answer { call: name(), headers: parts.headers, body });
        }
        let source = ApiError::read(parts.status, &body, token.into_iter().chain(&call.secret));
        Err(CallError::Api { call: name(), attempts, source: Box::new(source) })
    }

    /// Opens a websocket. One attempt: who keeps it open also knows when to try again.
    pub async fn websocket(&self, path: &str, token: Option<&Secret>) -> Result<Socket, CallError> {
        let call = Call::get(path);
        let name = || call.to_string();
        let transport_error = |source: io::Error| CallError::Transport {
            call: name(),
            attempts: 1,
            source: Arc::new(source),
        };
        let request =
            self.request(&call, token).map_err(io::Error::other).map_err(transport_error)?;
        let opening = self.transport.websocket(request.map(|_| ()));
        match time::timeout(self.timeout, opening).await {
            Err(_) => Err(CallError::Timeout { call: name(), attempts: 1, timeout: self.timeout }),
            Ok(Err(SocketError::Io(error))) => Err(transport_error(error)),
            Ok(Err(SocketError::Refused(answer))) => {
                let source = ApiError::read(answer.status(), answer.body(), token);
                Err(CallError::Api { call: name(), attempts: 1, source: Box::new(source) })
            }
            Ok(Ok(socket)) => Ok(socket),
        }
    }

    fn request(&self, call: &Call, token: Option<&Secret>) -> Result<Request<Bytes>, http::Error> {
        let now = go_time::header(self.clock.now());
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", self.base, call.path_and_query()))
            .header(DATE, &now)
            .header(REMOTE_TIME, &now)
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(call.body.clone())
    }
}

fn is_worth_another_attempt(error: &CallError) -> bool {
    match error {
        CallError::Transport { .. } | CallError::Timeout { .. } => true,
        CallError::Api { source, .. } => {
            source.status == StatusCode::CONFLICT || source.status.is_server_error()
        }
        CallError::Answer { .. } | CallError::SignIn { .. } | CallError::Vanished { .. } => false,
    }
}
