//! Calls to the registry, each with a deadline and repeated where that is safe.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RANGE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{sleep, timeout};

use super::blob::{BlobSource, Digest};
use super::manifest::{DOCKER_LIST, DOCKER_MANIFEST, Manifest, OCI_INDEX, OCI_MANIFEST};
use super::progress::Progress;

/// Until an answer begins. Contents may take longer than that.
const ANSWER: Duration = Duration::from_mins(1);
/// Attempts at a call that may be repeated.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A manifest is small; one that is not is not read.
const LARGEST_DOCUMENT: usize = 64 * 1024 * 1024;

/// Where the registry is, and as whom it is asked. `http` carries trust and proxies.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    pub url: String,
    pub token: Option<SecretString>,
    pub http: reqwest::Client,
}

/// How requests reach a registry: over the network, or a stand-in in the same process.
pub trait RegistryTransport: Send + Sync + fmt::Debug {
    fn send(&self, request: reqwest::Request) -> BoxFuture<'_, Result<Response, reqwest::Error>>;
}

impl RegistryTransport for reqwest::Client {
    fn send(&self, request: reqwest::Request) -> BoxFuture<'_, Result<Response, reqwest::Error>> {
        self.execute(request).boxed()
    }
}

/// A client of one registry.
#[derive(Debug, Clone)]
pub struct Registry {
    base: String,
    token: Option<SecretString>,
    http: reqwest::Client,
    transport: Arc<dyn RegistryTransport>,
    /// Where bytes of snapshots and images are counted.
    pub(super) progress: Progress,
}

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("{method} {url}: not found")]
    NotFound { method: Method, url: String },
    #[error("{method} {url}: {status} {body}")]
    Status { method: Method, url: String, status: StatusCode, body: String },
    #[error("{method} {url}")]
    Http { method: Method, url: String, source: reqwest::Error },
    #[error("{method} {url} was not answered within {after:?}")]
    Silent { method: Method, url: String, after: Duration },
    #[error("{method} {url} was answered with more than {LARGEST_DOCUMENT} bytes")]
    TooLarge { method: Method, url: String },
    #[error("the manifest at {url} is not JSON")]
    Unreadable { url: String, source: serde_json::Error },
    #[error("the registry answered an upload without saying where it goes on")]
    NoLocation,
}

impl RegistryError {
    /// Whether asking again may help.
    fn may_pass(&self) -> bool {
        match self {
            Self::Http { .. } | Self::Silent { .. } => true,
            Self::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::NotFound { .. }
            | Self::TooLarge { .. }
            | Self::Unreadable { .. }
            | Self::NoLocation => false,
        }
    }
}

impl Registry {
    pub fn new(settings: RegistrySettings) -> Self {
        let transport = Arc::new(settings.http.clone());
        Self::through(settings, transport)
    }

    /// One that is reached in another way than by its settings' client.
    pub fn through(settings: RegistrySettings, transport: Arc<dyn RegistryTransport>) -> Self {
        let base = settings.url.trim_end_matches('/').to_owned();
        let progress = Progress::default();
        Self { base, token: settings.token, http: settings.http, transport, progress }
    }

    /// The same registry, whose transfers are counted in `progress`.
    #[must_use]
    pub fn counting(&self, progress: &Progress) -> Self {
        Self { progress: progress.clone(), ..self.clone() }
    }

    /// The manifest of a tag or digest; `None` if there is none.
    pub async fn manifest(
        &self,
        repository: &str,
        reference: &str,
    ) -> Result<Option<Manifest>, RegistryError> {
        let url = self.url(repository, "manifests", reference);
        let accept = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST].join(", ");
        let ask = || self.call(Method::GET, &url, |request| request.header(ACCEPT, &accept));
        let response = match repeat(ask).await {
            Err(RegistryError::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let text = document(&url, response).await?;
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|source| RegistryError::Unreadable { url, source })
    }

    /// Whether a tag exists. A registry that does not answer is an error, never a no.
    pub async fn has_manifest(&self, repository: &str, tag: &str) -> Result<bool, RegistryError> {
        Ok(self.manifest(repository, tag).await?.is_some())
    }

    pub async fn put_manifest(
        &self,
        repository: &str,
        tag: &str,
        manifest: &Manifest,
    ) -> Result<Digest, RegistryError> {
        let url = self.url(repository, "manifests", tag);
        let body = serde_json::to_vec_pretty(manifest)
            .map_err(|source| RegistryError::Unreadable { url: url.clone(), source })?;
        let body = Bytes::from(body);
        let digest = Digest::of(&body);
        let put = || {
            self.call(Method::PUT, &url, |request| {
                request.header(CONTENT_TYPE, OCI_MANIFEST).body(body.clone())
            })
        };
        repeat(put).await.map(|_| digest)
    }

    /// A tag that is gone already is success.
    pub async fn delete_manifest(&self, repository: &str, tag: &str) -> Result<(), RegistryError> {
        let url = self.url(repository, "manifests", tag);
        match repeat(|| self.call(Method::DELETE, &url, |request| request)).await {
            Ok(_) | Err(RegistryError::NotFound { .. }) => Ok(()),
            // Docker's registry deletes by digest only, and says so in one of these ways.
            Err(RegistryError::Status {
                status: StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED,
                ..
            }) => self.delete_by_digest(repository, tag).await,
            Err(error) => Err(error),
        }
    }

    async fn delete_by_digest(&self, repository: &str, tag: &str) -> Result<(), RegistryError> {
        let url = self.url(repository, "manifests", tag);
        let accept = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST].join(", ");
        let ask = || self.call(Method::GET, &url, |request| request.header(ACCEPT, &accept));
        let response = match repeat(ask).await {
            Err(RegistryError::NotFound { .. }) => return Ok(()),
            other => other?,
        };
        let digest = Digest::of(&document(&url, response).await?);
        let url = self.url(repository, "manifests", digest.as_str());
        match repeat(|| self.call(Method::DELETE, &url, |request| request)).await {
            Ok(_) | Err(RegistryError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, RegistryError> {
        let url = self.url(repository, "blobs", digest.as_str());
        match repeat(|| self.call(Method::HEAD, &url, |request| request)).await {
            Ok(_) => Ok(true),
            Err(RegistryError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A small blob, whole.
    pub(super) async fn small_blob(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<Bytes, RegistryError> {
        let url = self.url(repository, "blobs", digest.as_str());
        let response = repeat(|| self.call(Method::GET, &url, |request| request)).await?;
        document(&url, response).await
    }

    /// A blob from this offset on. Says whether the registry honoured the offset.
    pub(super) async fn blob(
        &self,
        repository: &str,
        digest: &Digest,
        from: u64,
    ) -> Result<(BlobSource, bool), RegistryError> {
        let url = self.url(repository, "blobs", digest.as_str());
        let ask = || {
            self.call(Method::GET, &url, |request| {
                if from > 0 { request.header(RANGE, format!("bytes={from}-")) } else { request }
            })
        };
        let response = repeat(ask).await?;
        let is_partial = response.status() == StatusCode::PARTIAL_CONTENT;
        Ok((BlobSource { response }, is_partial))
    }

    pub(super) async fn put_small_blob(
        &self,
        repository: &str,
        content: Bytes,
    ) -> Result<Digest, RegistryError> {
        let digest = Digest::of(&content);
        if !self.has_blob(repository, &digest).await? {
            let upload = self.begin_upload(repository).await?;
            let length = content.len() as u64;
            let upload = upload.append(content, 0, length).await?;
            upload.finish(&digest).await?;
        }
        Ok(digest)
    }

    pub(super) async fn begin_upload(&self, repository: &str) -> Result<Upload<'_>, RegistryError> {
        let url = format!("{}/v2/{repository}/blobs/uploads/", self.base);
        let post = || self.call(Method::POST, &url, |request| request.header(CONTENT_LENGTH, 0));
        let response = repeat(post).await?;
        let at = self.location(&response)?;
        Ok(Upload { registry: self, repository: repository.to_owned(), at })
    }

    fn url(&self, repository: &str, kind: &str, reference: &str) -> String {
        format!("{}/v2/{repository}/{kind}/{reference}", self.base)
    }

    fn location(&self, response: &Response) -> Result<String, RegistryError> {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or(RegistryError::NoLocation)?;
        Ok(if location.starts_with('/') {
            format!("{}{location}", self.base)
        } else {
            location.to_owned()
        })
    }

    async fn call(
        &self,
        method: Method,
        url: &str,
        build: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, RegistryError> {
        let mut request = build(self.http.request(method.clone(), url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        let url = without_query(url);
        let sent = async { self.transport.send(request.build()?).await };
        let response = match timeout(ANSWER, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(source)) => {
                return Err(RegistryError::Http { method, url, source: source.without_url() });
            }
            Err(_) => return Err(RegistryError::Silent { method, url, after: ANSWER }),
        };
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::NOT_FOUND => Err(RegistryError::NotFound { method, url }),
            status => {
                let body = response.text().await.unwrap_or_default();
                let body = body.chars().filter(|c| !c.is_control()).take(512).collect();
                Err(RegistryError::Status { method, url, status, body })
            }
        }
    }
}

/// An upload may carry its secret state in its query.
fn without_query(url: &str) -> String {
    url.split('?').next().unwrap_or_default().to_owned()
}

async fn document(url: &str, mut response: Response) -> Result<Bytes, RegistryError> {
    let failed = |source: reqwest::Error| RegistryError::Http {
        method: Method::GET,
        url: without_query(url),
        source: source.without_url(),
    };
    let mut text = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        text.extend_from_slice(&piece);
        if text.len() > LARGEST_DOCUMENT {
            return Err(RegistryError::TooLarge { method: Method::GET, url: without_query(url) });
        }
    }
    Ok(text.into())
}

async fn repeat<T, F>(mut call: impl FnMut() -> F) -> Result<T, RegistryError>
where
    F: Future<Output = Result<T, RegistryError>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match call().await {
            Err(error) if error.may_pass() => {
                tracing::warn!("the registry is asked again in {pause:?}: {error}");
                sleep(pause).await;
                pause *= 2;
            }
            other => return other,
        }
    }
    call().await
}

/// A blob on its way up, piece by piece: its digest need not be known before its end, and a lost piece costs itself.
#[derive(Debug)]
pub(super) struct Upload<'a> {
    registry: &'a Registry,
    repository: String,
    at: String,
}

impl Upload<'_> {
    /// Appends a piece that begins at `from`. A piece whose answer was lost is sent again only if the registry does not have it.
    pub(super) async fn append(
        self,
        piece: Bytes,
        from: u64,
        length: u64,
    ) -> Result<Self, RegistryError> {
        if piece.is_empty() {
            return Ok(self);
        }
        let mut at = self.at;
        let mut pause = FIRST_PAUSE;
        let range = format!("{from}-{}", from + length - 1);
        for attempt in 1.. {
            let sent = self
                .registry
                .call(Method::PATCH, &at, |request| {
                    request
                        .header(CONTENT_TYPE, "application/octet-stream")
                        .header("content-range", &range)
                        .body(piece.clone())
                })
                .await;
            match sent {
                Ok(response) => {
                    at = self.registry.location(&response).unwrap_or(at);
                    break;
                }
                Err(error) if attempt < ATTEMPTS && error.may_pass() => {
                    sleep(pause).await;
                    pause *= 2;
                    if self.registry.received(&at).await? >= from + length {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self { registry: self.registry, repository: self.repository, at })
    }

    /// An end whose answer was lost is told by the blob, which is there then; the upload is not any more.
    pub(super) async fn finish(self, digest: &Digest) -> Result<(), RegistryError> {
        let separator = if self.at.contains('?') { '&' } else { '?' };
        let url = format!("{}{separator}digest={digest}", self.at);
        let mut pause = FIRST_PAUSE;
        for _ in 1..ATTEMPTS {
            match self.end(&url).await {
                Err(error) if error.may_pass() => {
                    tracing::warn!("the end of an upload is told again in {pause:?}: {error}");
                    sleep(pause).await;
                    pause *= 2;
                    if self.registry.has_blob(&self.repository, digest).await? {
                        return Ok(());
                    }
                }
                other => return other,
            }
        }
        self.end(&url).await
    }

    async fn end(&self, url: &str) -> Result<(), RegistryError> {
        let put = self.registry.call(Method::PUT, url, |request| request.header(CONTENT_LENGTH, 0));
        put.await.map(drop)
    }
}

impl Registry {
    /// How much of an upload the registry has.
    async fn received(&self, at: &str) -> Result<u64, RegistryError> {
        let response = match repeat(|| self.call(Method::GET, at, |request| request)).await {
            // A registry that does not tell is believed to have nothing of it, and will refuse a piece that it has.
            Err(RegistryError::NotFound { .. } | RegistryError::Status { .. }) => return Ok(0),
            other => other?,
        };
        let range = response.headers().get(RANGE).and_then(|value| value.to_str().ok());
        let last: Option<u64> = range.and_then(|range| range.rsplit('-').next()?.parse().ok());
        Ok(last.map_or(0, |last| last + 1))
    }
}
