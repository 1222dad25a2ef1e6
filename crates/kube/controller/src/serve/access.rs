use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;
use tracing::debug;

/// How long an answer of the API server counts.
const REMEMBERED: Duration = Duration::from_mins(1);

/// Tokens that are remembered at most.
const TOKENS: usize = 64;

/// Who may read the metrics.
#[derive(Clone)]
pub enum Access {
    /// Everyone.
    Open,
    /// Whoever shows a token of somebody who may `get` the path, as the API server says.
    Reviewed(Reviewer),
}

impl Access {
    pub fn reviewed(client: Client) -> Self {
        Self::Reviewed(Reviewer { client, known: Arc::default() })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Open => "Open",
            Self::Reviewed(_) => "Reviewed",
        })
    }
}

#[derive(Clone)]
pub struct Reviewer {
    client: Client,
    known: Arc<Mutex<HashMap<String, (StatusCode, Instant)>>>,
}

impl fmt::Debug for Reviewer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Reviewer")
    }
}

impl Access {
    /// `OK`, or why not.
    pub(crate) async fn check(&self, headers: &HeaderMap, path: &str) -> StatusCode {
        let Self::Reviewed(reviewer) = self else { return StatusCode::OK };
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(token) = shown.and_then(|shown| shown.strip_prefix("Bearer ")) else {
            return StatusCode::UNAUTHORIZED;
        };
        if let Some(known) = reviewer.known(token) {
            return known;
        }
        match reviewer.ask(token, path).await {
            Ok(verdict) => {
                reviewer.remember(token, verdict);
                verdict
            }
            Err(error) => {
                debug!(%error, "a token could not be reviewed");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl Reviewer {
    fn known(&self, token: &str) -> Option<StatusCode> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, since) = known.get(token)?;
        (since.elapsed() < REMEMBERED).then_some(*verdict)
    }

    fn remember(&self, token: &str, verdict: StatusCode) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (_, since)| since.elapsed() < REMEMBERED);
        if known.len() < TOKENS {
            known.insert(token.to_owned(), (verdict, Instant::now()));
        }
    }

    async fn ask(&self, token: &str, path: &str) -> kube::Result<StatusCode> {
        let params = PostParams::default();
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review = Api::<TokenReview>::all(self.client.clone()).create(&params, &review).await?;
        let status = review.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(StatusCode::UNAUTHORIZED);
        };
        let attributes =
            NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let review =
            Api::<SubjectAccessReview>::all(self.client.clone()).create(&params, &review).await?;
        let is_allowed = review.status.is_some_and(|status| status.allowed);
        Ok(if is_allowed { StatusCode::OK } else { StatusCode::FORBIDDEN })
    }
}
