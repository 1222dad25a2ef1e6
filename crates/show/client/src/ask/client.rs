use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, HeaderName};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use roost_views::foreign::replaced;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;

use super::pick::NoSuchColumn;
use super::target::Target;
use super::trust::{self, TrustError};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A service answers from memory.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// A service says something every quarter of a minute, if only that it is there.
const SILENT_FOR: Duration = Duration::from_secs(40);

/// The time by the service's clock.
const NOW: HeaderName = HeaderName::from_static("roost-now");
/// All requests of a large service are a few megabytes.
const LARGEST_ANSWER: usize = 64 << 20;
/// A refusal is a sentence.
const LARGEST_FAULT: usize = 64 << 10;
const MOST_WORDS: usize = 500;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("setting up HTTP")]
    Setup { source: reqwest::Error },
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(
        "no service can be reached at {url} (`roost run` starts one; --url, -c or ROOST_URL name another)"
    )]
    Unreachable { url: Url, source: reqwest::Error },
    #[error("the service at {url} did not finish its answer")]
    CutShort { url: Url, source: reqwest::Error },
    #[error("the answer of {url} is larger than {most} bytes")]
    TooLarge { url: Url, most: usize },
    #[error("{url}: {words} (--token-file or ROOST_TOKEN)")]
    Denied { url: Url, words: String },
    #[error(
        "an action needs the service's token: give it with --token-file FILE, in ROOST_TOKEN, or with -c FILE that has http.token; over HTTPS a certificate in ROOST_CERT_FILE will do{}",
        trouble.as_ref().map(|trouble| format!(" ({trouble})")).unwrap_or_default()
    )]
    NoToken { trouble: Option<String> },
    /// What the service says about it stands alone: `vm web-1 is not known`.
    #[error("{words}")]
    Refused { words: String },
    #[error("{url} answered {status} and not as Roost does")]
    Foreign { url: Url, status: StatusCode },
    #[error(transparent)]
    Column(#[from] NoSuchColumn),
    #[error("the service's answer is not of a form that this version of Roost knows")]
    Unreadable { source: serde_json::Error },
}

/// An answer, and when it was given by the service's clock. An older service does not say.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) said: Value,
    now: Option<Timestamp>,
}

impl Told {
    pub(crate) fn now(&self) -> Timestamp {
        self.now.unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// Without a bound on how long an answer may be.
    streams: reqwest::Client,
    base: Url,
    token: Option<SecretString>,
    token_trouble: Option<String>,
    has_certificate: bool,
}

#[derive(Deserialize)]
struct Fault {
    error: String,
}

impl Client {
    pub(super) fn new(target: Target) -> Result<Self, AskError> {
        let basis = || {
            let builder = reqwest::Client::builder()
                .http1_only()
                // A token must not follow to where somebody else points.
                .redirect(Policy::none())
                // It is on this machine, or near.
                .no_proxy()
                .connect_timeout(CONNECT_WITHIN);
            trust::from_environment(builder)
        };
        let setup = |source| AskError::Setup { source };
        let Target { url: base, token, token_trouble } = target;
        Ok(Self {
            http: basis()?.timeout(ANSWER_WITHIN).build().map_err(setup)?,
            streams: basis()?.read_timeout(SILENT_FOR).build().map_err(setup)?,
            base,
            token,
            token_trouble,
            has_certificate: trust::has_certificate(),
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.base
    }

    /// Whether there is a token or a certificate, so that actions may be asked for; else how to give one.
    pub(crate) fn may_act(&self) -> Result<(), AskError> {
        match self.token {
            Some(_) => Ok(()),
            None if self.has_certificate => Ok(()),
            None => Err(AskError::NoToken { trouble: self.token_trouble.clone() }),
        }
    }

    /// What is at `/api/v1` and the parts of a path below it, which may hold any text.
    pub(crate) async fn get(
        &self,
        path: &[&str],
        query: &[(&'static str, String)],
    ) -> Result<Value, AskError> {
        Ok(self.get_at(path, query).await?.said)
    }

    /// The same, and what time it was there.
    pub(crate) async fn get_at(
        &self,
        path: &[&str],
        query: &[(&'static str, String)],
    ) -> Result<Told, AskError> {
        let url = self.place(path, query);
        self.read_whole(&url, self.http.get(url.clone())).await
    }

    /// Tells the service to do something.
    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, AskError> {
        self.may_act()?;
        let url = self.place(path, &[]);
        let request = self.http.post(url.clone()).body(body.to_string());
        Ok(self.read_whole(&url, request).await?.said)
    }

    /// Listens to what happens, from the decision after `seen` on.
    pub(crate) async fn listen(&self, seen: Option<u64>) -> Result<Listening, AskError> {
        let url = self.place(&["events"], &[]);
        let mut request = self.streams.get(url.clone()).header(ACCEPT, "text/event-stream");
        if let Some(seen) = seen {
            request = request.header(LAST_EVENT_ID, seen.to_string());
        }
        let answer = self.send(request).await?;
        if answer.status().is_success() {
            return Ok(Listening { answer, url: self.base.clone() });
        }
        Err(self.fault(&url, answer).await)
    }

    async fn send(&self, mut request: RequestBuilder) -> Result<Response, AskError> {
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        request.send().await.map_err(|source| AskError::Unreachable {
            url: self.base.clone(),
            source: source.without_url(),
        })
    }

    async fn read_whole(&self, url: &Url, request: RequestBuilder) -> Result<Told, AskError> {
        let answer = self.send(request).await?;
        let status = answer.status();
        if !status.is_success() {
            return Err(self.fault(url, answer).await);
        }
        let now = answer.headers().get(&NOW).and_then(|now| now.to_str().ok()?.parse().ok());
        let body = self.collect(answer, LARGEST_ANSWER).await?;
        let said = serde_json::from_slice(&body)
            .map_err(|_| AskError::Foreign { url: url.clone(), status })?;
        Ok(Told { said, now })
    }

    /// The whole answer, if it is not larger than that.
    async fn collect(&self, mut answer: Response, most: usize) -> Result<Vec<u8>, AskError> {
        let mut body = Vec::new();
        while let Some(piece) =
            answer.chunk().await.map_err(|source| cut_short(&self.base, source))?
        {
            if body.len() + piece.len() > most {
                return Err(AskError::TooLarge { url: self.base.clone(), most });
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    async fn fault(&self, url: &Url, answer: Response) -> AskError {
        let status = answer.status();
        let body = match self.collect(answer, LARGEST_FAULT).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        let Ok(Fault { error: words }) = serde_json::from_slice(&body) else {
            return AskError::Foreign { url: url.clone(), status };
        };
        // Whoever answers need not be the service: its words must not command the terminal.
        let words: String = replaced(&words).chars().take(MOST_WORDS).collect();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                AskError::Denied { url: self.base.clone(), words }
            }
            _ => AskError::Refused { words },
        }
    }

    fn place(&self, path: &[&str], query: &[(&'static str, String)]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

fn cut_short(url: &Url, source: reqwest::Error) -> AskError {
    AskError::CutShort { url: url.clone(), source: source.without_url() }
}

/// An answer that goes on.
#[derive(Debug)]
pub(crate) struct Listening {
    answer: Response,
    url: Url,
}

impl Listening {
    /// The next piece of it, cut anywhere; `None` when the service has ended it.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, AskError> {
        let piece = self.answer.chunk().await.map_err(|source| cut_short(&self.url, source))?;
        Ok(piece.map(Into::into))
    }
}

#[cfg(test)]
mod lying_service;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_a_part_of_the_path() {
        for (base, path, url) in [
            ("http://h:1", vec!["jobs", "42"], "http://h:1/api/v1/jobs/42"),
            ("http://h:1/", vec!["jobs", "a/b ?#%"], "http://h:1/api/v1/jobs/a%2Fb%20%3F%23%25"),
            ("http://h:1/below/", vec!["vms"], "http://h:1/below/api/v1/vms"),
        ] {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let url_of = base.parse().unwrap();
            let target = Target { url: url_of, token: None, token_trouble: None };
            assert_eq!(Client::new(target).unwrap().place(&path, &[]).as_str(), url);
        }
    }
}
