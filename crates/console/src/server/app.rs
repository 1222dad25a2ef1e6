//! Which path is whose, and what holds for all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, StatusCode};
use tokio::sync::{Semaphore, watch};

use super::access::{self, Peer};
use super::answer::Fault;
use super::{api, events, meter, mon, probes};
use crate::{Settings, Source};

/// Each looks at the source a few times a second.
const MAX_LISTENERS: usize = 64;

/// What every handler can reach. It reads only.
#[derive(Debug)]
pub(super) struct App {
    pub(super) source: Arc<dyn Source>,
    pub(super) settings: Settings,
    /// One permit for each stream of events.
    pub(super) listeners: Arc<Semaphore>,
    /// Changes once, when streams of events must end.
    pub(super) closing: watch::Receiver<bool>,
}

impl App {
    pub(super) fn new(
        source: Arc<dyn Source>,
        settings: Settings,
        closing: watch::Receiver<bool>,
    ) -> Self {
        Self { source, settings, listeners: Arc::new(Semaphore::new(MAX_LISTENERS)), closing }
    }
}

macro_rules! routes {
    ($($path:literal => $handler:path;)+) => {
        /// A closed set, because they become metric labels.
        pub(super) const ROUTES: [&str; [$($path),+].len()] = [$($path),+];

        fn routes() -> Router<Arc<App>> {
            Router::new()$(.route($path, get($handler)))+
        }
    };
}

routes! {
    "/mon/version" => mon::version;
    "/mon/status" => mon::status;
    "/mon/workers" => mon::workers;
    "/mon/metrics" => mon::metrics;
    "/mon/metrics/all" => mon::metrics_described;
    "/metrics" => mon::metrics;
    "/livez" => probes::livez;
    "/readyz" => probes::readyz;
    "/api/v1/overview" => api::overview;
    "/api/v1/jobs" => api::jobs;
    "/api/v1/jobs/{id}" => api::job;
    "/api/v1/vms" => api::vms;
    "/api/v1/vms/{id}" => api::vm;
    "/api/v1/pools" => api::pools;
    "/api/v1/decisions" => api::decisions;
    "/api/v1/events" => events::events;
}

pub(super) fn router(app: App) -> Router {
    let app = Arc::new(app);
    routes()
        .fallback(async |request: Request| {
            Fault::not_found(format!("there is nothing at {}", request.uri().path()))
        })
        .method_not_allowed_fallback(async || {
            Fault::new(StatusCode::METHOD_NOT_ALLOWED, "this path can only be read")
        })
        // The last one added is the first to see a request.
        .layer(from_fn(share_with_pages))
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .layer(from_fn_with_state(Arc::clone(&app), meter::measure))
        .layer(from_fn(harden))
        .with_state(app)
}

async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !access::is_open(request.uri().path()) {
        let peer = request.extensions().get::<Peer>().copied();
        if let Err(denied) = access::check(&app.settings, peer, &request) {
            return denied.into_response();
        }
    }
    next.run(request).await
}

/// CDS lets any page in any browser read what is below `/mon`. Nothing else is shared so.
async fn share_with_pages(request: Request, next: Next) -> Response {
    let is_mon = request.uri().path().starts_with("/mon/");
    if !is_mon {
        return next.run(request).await;
    }
    let mut answer = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    answer
}

/// What is shown is of this moment, and is what its type says.
async fn harden(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
