use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use roost_cds::Secret;
use serde::Deserialize;
use serde_json::Value;

use super::target::Target;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A service answers from memory.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("setting up HTTP")]
    Setup { source: reqwest::Error },
    #[error(
        "no service can be reached at {url} (`roost run` starts one; --url, -c or ROOST_URL name another)"
    )]
    Unreachable { url: Url, source: reqwest::Error },
    #[error("the service at {url} did not finish its answer")]
    CutShort { url: Url, source: reqwest::Error },
    #[error("{url}: {words} (--token-file or ROOST_TOKEN)")]
    Denied { url: Url, words: String },
    /// What the service says about it stands alone: `job 42 is not known`.
    #[error("{words}")]
    Refused { words: String },
    #[error("{url} answered {status} and not as Roost does")]
    Foreign { url: Url, status: StatusCode },
    #[error("the service's answer is not of a form that this version of Roost knows")]
    Unreadable { source: serde_json::Error },
}

#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<Secret>,
}

#[derive(Deserialize)]
struct Fault {
    error: String,
}

impl Client {
    pub(super) fn new(target: Target) -> Result<Self, AskError> {
        let http = reqwest::Client::builder()
            .http1_only()
            // A token must not follow to where somebody else points.
            .redirect(Policy::none())
            // It is on this machine, or near.
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            .build()
            .map_err(|source| AskError::Setup { source })?;
        Ok(Self { http, base: target.url, token: target.token })
    }

    /// What is at `/api/v1` and the parts of a path below it, which may hold any text.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(&'static str, String)],
    ) -> Result<Value, AskError> {
        let url = self.url(path, query);
        let mut request = self.http.get(url.clone());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose());
        }
        let unreachable = |source: reqwest::Error| AskError::Unreachable {
            url: self.base.clone(),
            source: source.without_url(),
        };
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|source| AskError::CutShort {
            url: self.base.clone(),
            source: source.without_url(),
        })?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| AskError::Foreign { url, status });
        }
        let Ok(Fault { error: words }) = serde_json::from_slice(&body) else {
            return Err(AskError::Foreign { url, status });
        };
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                AskError::Denied { url: self.base.clone(), words }
            }
            _ => AskError::Refused { words },
        })
    }

    fn url(&self, path: &[&str], query: &[(&'static str, String)]) -> Url {
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
            let target = Target { url: base.parse().unwrap(), token: None };
            assert_eq!(Client::new(target).unwrap().url(&path, &[]).as_str(), url);
        }
    }
}
