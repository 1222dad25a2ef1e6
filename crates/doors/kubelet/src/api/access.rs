//! Who asks, and may they? Nobody gets in without both answers.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use roost_tls::Certificate;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::answer::Refusal;

const TOKEN_COUNTS: Duration = Duration::from_mins(2);
const YES_COUNTS: Duration = Duration::from_mins(5);
/// Shorter, because somebody who was just given the right tries again soon.
const NO_COUNTS: Duration = Duration::from_secs(30);
/// Answers that are kept at most, of each kind.
const KEPT: usize = 1024;
/// A member of every user that was recognised.
const AUTHENTICATED: &str = "system:authenticated";

/// Somebody that a certificate or a token names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// As Kubernetes reads a client's certificate: the common name is the user, organisations are groups.
    pub(crate) fn of_certificate(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::read(der)?;
        let name = certificate.common_name.filter(|name| !name.is_empty())?;
        let mut groups = certificate.organisations;
        groups.push(AUTHENTICATED.to_owned());
        Some(Self { name, uid: None, groups, extra: BTreeMap::new() })
    }
}

/// What somebody wants to do to a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Deed {
    pub(crate) verb: &'static str,
    pub(crate) subresource: &'static str,
}

impl Deed {
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "get",
        };
        let is_below = |root: &str| {
            path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let subresource = match () {
            () if is_below("/stats") => "stats",
            () if is_below("/metrics") => "metrics",
            () if is_below("/logs") => "log",
            () => "proxy",
        };
        Self { verb, subresource }
    }
}

/// Where both questions are answered.
pub(crate) trait Reviews: Send + Sync {
    /// `None`: nobody.
    fn user_of_token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, kube::Result<Option<User>>>;
    fn may<'a>(&'a self, user: &'a User, deed: &'a Deed) -> BoxFuture<'a, kube::Result<bool>>;
}

/// The API server decides.
pub(crate) struct KubeReviews {
    pub(crate) client: Client,
    pub(crate) node: String,
}

impl Reviews for KubeReviews {
    fn user_of_token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, kube::Result<Option<User>>> {
        async move {
            let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
            let review = TokenReview { spec, ..TokenReview::default() };
            let api: Api<TokenReview> = Api::all(self.client.clone());
            let status =
                api.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
            let user = status.user.filter(|_| status.authenticated == Some(true));
            Ok(user.map(|user| User {
                name: user.username.unwrap_or_default(),
                uid: user.uid,
                groups: user.groups.unwrap_or_default(),
                extra: user.extra.unwrap_or_default(),
            }))
        }
        .boxed()
    }

    fn may<'a>(&'a self, user: &'a User, deed: &'a Deed) -> BoxFuture<'a, kube::Result<bool>> {
        async move {
            let attributes = ResourceAttributes {
                verb: Some(deed.verb.to_owned()),
                version: Some("v1".to_owned()),
                resource: Some("nodes".to_owned()),
                subresource: Some(deed.subresource.to_owned()),
                name: Some(self.node.clone()),
                ..ResourceAttributes::default()
            };
            let spec = SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                uid: user.uid.clone(),
                groups: Some(user.groups.clone()),
                extra: Some(user.extra.clone()),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
            let review = api.create(&PostParams::default(), &review).await?;
            Ok(review.status.is_some_and(|status| status.allowed))
        }
        .boxed()
    }
}

/// Lets those in who may do what they ask for. Answers count for a while.
pub(crate) struct Gate {
    reviews: Arc<dyn Reviews>,
    /// By the hash of the token: tokens are kept nowhere.
    tokens: Remembered<[u8; 32], User>,
    verdicts: Remembered<(User, Deed), bool>,
}

impl Gate {
    pub(crate) fn new(reviews: Arc<dyn Reviews>) -> Self {
        Self { reviews, tokens: Remembered::default(), verdicts: Remembered::default() }
    }

    /// `shown`: who the client's certificate names.
    pub(super) async fn check(
        &self,
        shown: Option<&User>,
        headers: &HeaderMap,
        deed: Deed,
    ) -> Result<(), Refusal> {
        let user = match shown {
            Some(user) => user.clone(),
            None => self.bearer(headers).await?,
        };
        let asked = (user, deed);
        let known = self.verdicts.get(&asked);
        let may = if let Some(may) = known { may } else { self.ask(&asked).await? };
        if may {
            return Ok(());
        }
        let (user, deed) = asked;
        let text = format!(
            "Forbidden (user={}, verb={}, resource=nodes, subresource={})",
            user.name, deed.verb, deed.subresource
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, text))
    }

    async fn ask(&self, asked: &(User, Deed)) -> Result<bool, Refusal> {
        let may = self.reviews.may(&asked.0, &asked.1).await.map_err(|error| {
            tracing::warn!("a right could not be reviewed: {error}");
            Refusal::failed("the API server could not be asked for your rights")
        })?;
        self.verdicts.keep(asked.clone(), may, if may { YES_COUNTS } else { NO_COUNTS });
        Ok(may)
    }

    async fn bearer(&self, headers: &HeaderMap) -> Result<User, Refusal> {
        let nobody = || Refusal::new(StatusCode::UNAUTHORIZED, "Unauthorized");
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = shown
            .and_then(|shown| shown.split_once(' '))
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .filter(|token| !token.is_empty())
            .ok_or_else(nobody)?;
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(user) = self.tokens.get(&hash) {
            return Ok(user);
        }
        let reviewed = self.reviews.user_of_token(token).await.map_err(|error| {
            tracing::warn!("a token could not be reviewed: {error}");
            Refusal::failed("the API server could not be asked who you are")
        })?;
        let user = reviewed.ok_or_else(nobody)?;
        self.tokens.keep(hash, user.clone(), TOKEN_COUNTS);
        Ok(user)
    }
}

struct Remembered<K, V>(Mutex<HashMap<K, (V, Instant)>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).filter(|(_, until)| Instant::now() < *until).map(|(value, _)| value.clone())
    }

    fn keep(&self, key: K, value: V, counts: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() >= KEPT {
            known.retain(|_, (_, until)| now < *until);
        }
        if known.len() < KEPT {
            known.insert(key, (value, now + counts));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Knows one token, and one user who may get things.
    #[derive(Default)]
    struct Office {
        asked: AtomicU32,
        is_closed: bool,
    }

    fn ada() -> User {
        User { name: "ada".into(), uid: None, groups: vec!["ops".into()], extra: BTreeMap::new() }
    }

    fn failure() -> kube::Error {
        kube::Error::Service("the API server is away".into())
    }

    impl Reviews for Office {
        fn user_of_token<'a>(
            &'a self,
            token: &'a str,
        ) -> BoxFuture<'a, kube::Result<Option<User>>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            async move {
                if self.is_closed { Err(failure()) } else { Ok((token == "secret").then(ada)) }
            }
            .boxed()
        }

        fn may<'a>(&'a self, user: &'a User, deed: &'a Deed) -> BoxFuture<'a, kube::Result<bool>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            async move {
                let may = *user == ada() && deed.verb == "get";
                if self.is_closed { Err(failure()) } else { Ok(may) }
            }
            .boxed()
        }
    }

    fn bearer(token: &str) -> HeaderMap {
        let value = format!("Bearer {token}").parse().unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    fn deed(method: &Method) -> Deed {
        Deed::of(method, "/pods")
    }

    async fn status(gate: &Gate, shown: Option<&User>, headers: &HeaderMap, deed: Deed) -> u16 {
        let checked = gate.check(shown, headers, deed).await;
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn deeds_are_named_as_kubernetes_names_them() {
        for (method, path, verb, subresource) in [
            (Method::GET, "/pods", "get", "proxy"),
            (Method::POST, "/exec/ns/pod/agent", "create", "proxy"),
            (Method::GET, "/stats/summary", "get", "stats"),
            (Method::GET, "/statistics", "get", "proxy"),
            (Method::GET, "/metrics/resource", "get", "metrics"),
            (Method::GET, "/metrics", "get", "metrics"),
            (Method::GET, "/logs/", "get", "log"),
            (Method::DELETE, "/pods", "delete", "proxy"),
        ] {
            assert_eq!(Deed::of(&method, path), Deed { verb, subresource }, "{method} {path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gets_in_without_a_name_and_a_right() {
        let gate = Gate::new(Arc::new(Office::default()));
        let none = HeaderMap::new();
        let eve = User { name: "eve".into(), ..ada() };
        assert_eq!(status(&gate, None, &none, deed(&Method::GET)).await, 401);
        assert_eq!(status(&gate, None, &bearer("guess"), deed(&Method::GET)).await, 401);
        assert_eq!(status(&gate, None, &bearer(""), deed(&Method::GET)).await, 401);
        assert_eq!(status(&gate, None, &bearer("secret"), deed(&Method::GET)).await, 200);
        assert_eq!(status(&gate, None, &bearer("secret"), deed(&Method::POST)).await, 403);
        assert_eq!(status(&gate, Some(&ada()), &none, deed(&Method::GET)).await, 200);
        assert_eq!(status(&gate, Some(&eve), &none, deed(&Method::GET)).await, 403);
        assert_eq!(
            status(&gate, Some(&eve), &bearer("secret"), deed(&Method::GET)).await,
            403,
            "the certificate counts, not the token beside it"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_office_that_is_closed_lets_nobody_in() {
        let gate = Gate::new(Arc::new(Office { is_closed: true, ..Office::default() }));
        assert_eq!(status(&gate, None, &bearer("secret"), deed(&Method::GET)).await, 500);
        assert_eq!(status(&gate, Some(&ada()), &HeaderMap::new(), deed(&Method::GET)).await, 500);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_count_for_a_while_and_refusals_shorter() {
        let office = Arc::new(Office::default());
        let gate = Gate::new(office.clone());
        let asks = async |method: &Method| {
            let before = office.asked.load(Ordering::Relaxed);
            status(&gate, None, &bearer("secret"), deed(method)).await;
            office.asked.load(Ordering::Relaxed) - before
        };
        assert_eq!(asks(&Method::GET).await, 2, "who, and whether");
        assert_eq!(asks(&Method::GET).await, 0);
        assert_eq!(asks(&Method::POST).await, 1);
        tokio::time::advance(NO_COUNTS).await;
        assert_eq!(asks(&Method::POST).await, 1, "a refusal is asked again");
        tokio::time::advance(TOKEN_COUNTS).await;
        assert_eq!(asks(&Method::GET).await, 1, "only the token is old");
        tokio::time::advance(YES_COUNTS).await;
        assert_eq!(asks(&Method::GET).await, 2);
    }
}
