//! A session: a token that the API gave for a sign-in, renewed before it expires and whenever the API says 401.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::time::{self, Instant};
use tracing::{debug, info, warn};

use crate::jwt::{self, Lifetime};
use crate::{Answer, Api, Call, CallError, Protocol, PublicKey, Secret, Socket};

const PUBLIC_KEY_HEADER: &str = "x-api-pub-signing-key";
/// A token is renewed this long before it expires, so that no call meets the end of it; a tenth of shorter lifetimes.
const MARGIN: Duration = Duration::from_mins(1);
/// The first sign-in of a process: now, then at this interval, for at most [`PATIENCE`].
const SIGN_IN_INTERVAL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_mins(5);

/// How one protocol signs in. The whole payload is sent each time, so the API's record of the hatchery is fresh after it.
pub(crate) trait SignIn: Debug + Send + Sync + 'static {
    const PROTOCOL: Protocol;
    /// What the API says who we are.
    type Identity: Debug + Send + Sync;

    fn call(&self) -> Call;
    fn read(&self, answer: &Answer) -> Result<(Secret, Self::Identity), CallError>;
}

#[derive(Debug)]
pub(crate) struct SignedIn<I> {
    number: u64,
    token: Secret,
    renew_at: Option<Instant>,
    pub(crate) identity: I,
    pub(crate) api_key: Option<PublicKey>,
}

impl<I> SignedIn<I> {
    fn is_fresh(&self) -> bool {
        self.renew_at.is_none_or(|at| Instant::now() < at)
    }
}

#[derive(Debug)]
pub(crate) struct Session<S: SignIn> {
    api: Api,
    sign_in: S,
    current: Mutex<Option<Arc<SignedIn<S::Identity>>>>,
    /// Held during a sign-in: who comes meanwhile waits for its outcome, good or bad, instead of signing in as well.
    flight: tokio::sync::Mutex<Option<CallError>>,
    finished: AtomicU64,
}

impl<S: SignIn> Session<S> {
    pub(crate) fn new(api: Api, sign_in: S) -> Self {
        Self {
            api,
            sign_in,
            current: Mutex::default(),
            flight: tokio::sync::Mutex::default(),
            finished: AtomicU64::new(0),
        }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn sign_in(&self) -> &S {
        &self.sign_in
    }

    /// The session of the moment, signing in when there is none or it is about to expire.
    pub(crate) async fn current(&self) -> Result<Arc<SignedIn<S::Identity>>, CallError> {
        if let Some(current) = self.fresh() {
            return Ok(current);
        }
        let seen = self.finished.load(Ordering::Acquire);
        let mut outcome = self.flight.lock().await;
        if let Some(current) = self.fresh() {
            return Ok(current);
        }
        if self.finished.load(Ordering::Acquire) > seen
            && let Some(error) = &*outcome
        {
            return Err(error.clone());
        }
        let result = self.open().await;
        *outcome = result.as_ref().err().cloned();
        self.finished.fetch_add(1, Ordering::Release);
        result
    }

    fn fresh(&self) -> Option<Arc<SignedIn<S::Identity>>> {
        self.lock().as_ref().filter(|current| current.is_fresh()).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<SignedIn<S::Identity>>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self) -> Result<Arc<SignedIn<S::Identity>>, CallError> {
        let failed = |error| CallError::SignIn { protocol: S::PROTOCOL, source: Arc::new(error) };
        let answer = self.api.call(&self.sign_in.call(), None).await.map_err(failed)?;
        let (token, identity) = self.sign_in.read(&answer).map_err(failed)?;
        let opened = Arc::new(SignedIn {
            number: self.finished.load(Ordering::Acquire),
            renew_at: self.renew_at(&token),
            api_key: api_key(&answer),
            token,
            identity,
        });
        debug!(protocol = %S::PROTOCOL, "signed in to CDS");
        *self.lock() = Some(opened.clone());
        Ok(opened)
    }

    /// Measured from now by the token's own lifetime, so that a clock that differs from the server's does no harm.
    fn renew_at(&self, token: &Secret) -> Option<Instant> {
        let lifetime: Lifetime = jwt::read_unverified(token).unwrap_or_default();
        if lifetime.expires_secs == 0 {
            return None;
        }
        let issued = match lifetime.issued_secs {
            0 => self.api.clock().now().as_second(),
            secs => secs,
        };
        let secs = u64::try_from(lifetime.expires_secs.saturating_sub(issued)).unwrap_or(0);
        let length = Duration::from_secs(secs);
        Instant::now().checked_add(length.saturating_sub(MARGIN.min(length / 10)))
    }

    /// Forgets this session, unless another has replaced it already.
    pub(crate) fn forget(&self, session: &SignedIn<S::Identity>) {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|current| current.number == session.number) {
            *current = None;
        }
    }

    /// Sends a call. A 401 means that the session is over: the call is made once more in a new one.
    pub(crate) async fn call(
        &self,
        make: impl Fn(&S::Identity) -> Call,
    ) -> Result<Answer, CallError> {
        let session = self.current().await?;
        let error = match self.api.call(&make(&session.identity), Some(&session.token)).await {
            Err(error) if error.status() == Some(StatusCode::UNAUTHORIZED) => error,
            other => return other,
        };
        debug!(protocol = %S::PROTOCOL, "CDS session is over: {error}");
        self.forget(&session);
        let session = self.current().await?;
        let answer = self.api.call(&make(&session.identity), Some(&session.token)).await;
        if let Err(error) = &answer
            && error.status() == Some(StatusCode::UNAUTHORIZED)
        {
            self.forget(&session);
        }
        answer
    }

    /// As [`Session::call`], for a websocket.
    pub(crate) async fn websocket(&self, path: &str) -> Result<Socket, CallError> {
        let session = self.current().await?;
        match self.api.websocket(path, Some(&session.token)).await {
            Err(error) if error.status() == Some(StatusCode::UNAUTHORIZED) => self.forget(&session),
            other => return other,
        }
        let session = self.current().await?;
        self.api.websocket(path, Some(&session.token)).await
    }

    /// Signs in for the first time, with patience for an API that starts at the same time as we do.
    pub(crate) async fn sign_in_patiently(&self) -> Result<Arc<SignedIn<S::Identity>>, CallError> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match self.current().await {
                Ok(session) => {
                    info!(protocol = %S::PROTOCOL, "signed in to CDS {}", S::PROTOCOL);
                    return Ok(session);
                }
                Err(error) if Instant::now() + SIGN_IN_INTERVAL > give_up => return Err(error),
                Err(error) => {
                    let why = roost_supervise::Chain(&error);
                    warn!(protocol = %S::PROTOCOL, "sign-in is tried again in 10 s: {why}");
                    time::sleep(SIGN_IN_INTERVAL).await;
                }
            }
        }
    }

    /// Makes this last call of the session, if there is one.
    pub(crate) async fn close(&self, call: &Call) -> Result<(), CallError> {
        let session = self.lock().take();
        if let Some(session) = session {
            self.api.call(call, Some(&session.token)).await?;
        }
        Ok(())
    }
}

fn api_key(answer: &Answer) -> Option<PublicKey> {
    let text = answer.headers.get(PUBLIC_KEY_HEADER)?.to_str().ok()?;
    PublicKey::parse_base64(text)
        .inspect_err(|error| warn!("the API's public key is ignored: {error}"))
        .ok()
}
