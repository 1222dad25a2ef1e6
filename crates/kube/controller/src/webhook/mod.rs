//! Admission and conversion webhooks.

mod certificate;
mod metrics;
mod review;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::error;

use crate::metrics::Metrics;
use crate::worker::panic_message;

pub use certificate::{CertificateError, SelfMade};
pub(crate) use metrics::WebhookMetrics;
pub use review::{Denial, Operation, Review, User, Verdict};

type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Value> + Send + Sync>;

/// The API server's own limit for an object is 3 MiB; a review holds two.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// The webhooks of a process, by path.
#[derive(Clone, Default)]
pub struct Webhooks {
    handlers: BTreeMap<String, Handler>,
    metrics: WebhookMetrics,
}

impl Webhooks {
    /// Counted among these metrics, under the names of controller-runtime.
    #[must_use]
    pub fn measured(mut self, metrics: &Metrics) -> Self {
        self.metrics = metrics.webhooks.clone();
        self.paths().for_each(|path| self.metrics.announce(path));
        self
    }

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
        Some(ask(&self.metrics, path, handler, review).await)
    }

    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for (path, handler) in &self.handlers {
            let (hook, path) = ((Arc::clone(handler), self.metrics.clone()), path.clone());
            let served = path.clone();
            let serve = move |body: Result<axum::Json<Value>, JsonRejection>| {
                let ((handler, metrics), path) = (hook.clone(), path.clone());
                async move { serve(&metrics, &path, &handler, body).await }
            };
            router = router.route(&served, post(serve));
        }
        router.layer(DefaultBodyLimit::max(MAX_BODY))
    }
}

async fn serve(
    metrics: &WebhookMetrics,
    path: &str,
    handler: &Handler,
    body: Result<axum::Json<Value>, JsonRejection>,
) -> Response {
    match body {
        Ok(axum::Json(body)) => axum::Json(ask(metrics, path, handler, body).await).into_response(),
        Err(rejection) => {
            metrics.count(path, rejection.status().as_u16());
            rejection.into_response()
        }
    }
}

/// What a webhook answers. One that panics says no, as controller-runtime's do: the API server need not wait for its timeout.
async fn ask(metrics: &WebhookMetrics, path: &str, handler: &Handler, body: Value) -> Value {
    let _in_flight = metrics.begin(path);
    let no = review::panicked(&body);
    let answer = AssertUnwindSafe(async { handler(body).await }).catch_unwind().await;
    metrics.count(path, 200);
    answer.unwrap_or_else(|panic| {
        metrics.panicked();
        error!(webhook = path, "webhook {path} panicked: {}", panic_message(panic.as_ref()));
        no
    })
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.paths()).finish()
    }
}
