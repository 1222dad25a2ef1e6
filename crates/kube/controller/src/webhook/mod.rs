//! Admission and conversion webhooks.

mod certificate;
mod review;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use futures_util::future::BoxFuture;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use certificate::{CertificateError, SelfMade};
pub use review::{Denial, Operation, Review, User, Verdict};

type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Value> + Send + Sync>;

/// The API server's own limit for an object is 3 MiB; a review holds two.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// The webhooks of a process, by path.
#[derive(Clone, Default)]
pub struct Webhooks {
    handlers: BTreeMap<String, Handler>,
}

impl Webhooks {
    /// Says yes or no to an object.
    #[must_use]
    pub fn validate<K, F>(
        mut self,
        path: &str,
        decide: impl Fn(Review<K>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        K: Resource + DeserializeOwned + Send + 'static,
        F: Future<Output = Result<Verdict, Denial>> + Send + 'static,
    {
        let decide = Arc::new(decide);
        let handler = move |body| -> BoxFuture<'static, Value> {
            let decide = Arc::clone(&decide);
            Box::pin(async move { review::validate(body, decide.as_ref()).await })
        };
        self.handlers.insert(path.to_owned(), Arc::new(handler));
        self
    }

    /// Changes an object: returns it as it should be. Fields that the type does not know stay as they are.
    #[must_use]
    pub fn mutate<K, F>(
        mut self,
        path: &str,
        change: impl Fn(Review<K>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        K: Resource + DeserializeOwned + Serialize + Clone + Send + 'static,
        F: Future<Output = Result<(K, Verdict), Denial>> + Send + 'static,
    {
        let change = Arc::new(change);
        let handler = move |body| -> BoxFuture<'static, Value> {
            let change = Arc::clone(&change);
            Box::pin(async move { review::mutate(body, change.as_ref()).await })
        };
        self.handlers.insert(path.to_owned(), Arc::new(handler));
        self
    }

    /// Turns an object into the form of another version: `convert(object, wanted api version)`.
    #[must_use]
    pub fn convert(
        mut self,
        path: &str,
        convert: impl Fn(Value, &str) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        let convert = Arc::new(convert);
        let handler = move |body| -> BoxFuture<'static, Value> {
            let convert = Arc::clone(&convert);
            Box::pin(async move { review::convert(body, convert.as_ref()) })
        };
        self.handlers.insert(path.to_owned(), Arc::new(handler));
        self
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.handlers.keys().map(String::as_str)
    }

    /// What one webhook answers to a review: for servers in process.
    pub async fn answer(&self, path: &str, review: Value) -> Option<Value> {
        let handler = self.handlers.get(path)?;
        Some(handler(review).await)
    }

    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for (path, handler) in &self.handlers {
            let handler = Arc::clone(handler);
            router = router.route(
                path,
                post(move |axum::Json(body): axum::Json<Value>| {
                    let handler = Arc::clone(&handler);
                    async move { axum::Json(handler(body).await) }
                }),
            );
        }
        router.layer(DefaultBodyLimit::max(MAX_BODY))
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.paths()).finish()
    }
}
