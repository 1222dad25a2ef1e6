//! Which path is whose, and what holds for all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL,
    CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, StatusCode};
use tokio::sync::{Semaphore, watch};

use super::access::{self, Peer};
use super::answer::Fault;
use super::{actions, api, events, meter, mon, pages, probes};
use crate::{Person, Settings, Source, Steer};

/// Whatever a name manages to become in a page, it cannot run, load or send anything.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Each looks at the source a few times a second.
const MAX_LISTENERS: usize = 64;

/// An order is a few words.
const MAX_BODY: usize = 16 * 1_024;

/// What every handler can reach.
#[derive(Debug)]
pub(super) struct App {
    pub(super) source: Arc<dyn Source>,
    /// `None`: it can only be looked at.
    pub(super) steer: Option<Arc<dyn Steer>>,
    pub(super) settings: Settings,
    /// One permit for each stream of events.
    pub(super) listeners: Arc<Semaphore>,
    /// Changes once, when streams of events must end.
    pub(super) closing: watch::Receiver<bool>,
}

impl App {
    pub(super) fn new(
        source: Arc<dyn Source>,
        steer: Option<Arc<dyn Steer>>,
        settings: Settings,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let listeners = Arc::new(Semaphore::new(MAX_LISTENERS));
        Self { source, steer, settings, listeners, closing }
    }
}

macro_rules! routes {
    ($($method:ident $path:literal => $handler:path;)+) => {
        /// A closed set, because they become metric labels.
        pub(super) const ROUTES: [Route; [$($path),+].len()] =
            [$(Route { method: stringify!($method), path: $path }),+];

        fn routes() -> Router<Arc<App>> {
            Router::new()$(.route($path, $method($handler)))+
        }
    };
}

/// One that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    /// In small letters.
    pub(super) method: &'static str,
    pub(super) path: &'static str,
}

routes! {
    get "/mon/version" => mon::version;
    get "/mon/status" => mon::status;
    get "/mon/workers" => mon::workers;
    get "/mon/metrics" => mon::metrics;
    get "/mon/metrics/all" => mon::metrics_described;
    get "/metrics" => mon::metrics;
    get "/livez" => probes::livez;
    get "/readyz" => probes::readyz;
    get "/api/v1/overview" => api::overview;
    get "/api/v1/jobs" => api::jobs;
    get "/api/v1/jobs/{id}" => api::job;
    post "/api/v1/jobs/{id}/recheck" => actions::recheck_job;
    get "/api/v1/vms" => api::vms;
    get "/api/v1/vms/{id}" => api::vm;
    post "/api/v1/vms/{id}/delete" => actions::delete_vm;
    get "/api/v1/pools" => api::pools;
    post "/api/v1/pools/{id}/refill" => actions::refill_pool;
    get "/api/v1/addresses" => api::addresses;
    get "/api/v1/deletions" => api::deletions;
    get "/api/v1/link" => api::link;
    get "/api/v1/steering" => api::steering;
    post "/api/v1/actions/{id}" => actions::service_wide;
    get "/api/v1/config" => api::config;
    get "/api/v1/decisions" => api::decisions;
    get "/api/v1/events" => events::events;
    get "/api/v1/openapi.json" => api::openapi;
    get "/" => pages::overview;
    get "/jobs" => pages::jobs;
    get "/jobs/{id}" => pages::job;
    get "/vms" => pages::vms;
    get "/vms/{id}" => pages::vm;
    get "/decisions" => pages::decisions;
    get "/deletions" => pages::deletions;
    get "/link" => pages::link;
    get "/live/" => pages::live_overview;
    get "/live/jobs" => pages::live_jobs;
    get "/live/jobs/{id}" => pages::live_job;
    get "/live/vms" => pages::live_vms;
    get "/live/vms/{id}" => pages::live_vm;
    get "/live/decisions" => pages::live_decisions;
    get "/live/deletions" => pages::live_deletions;
    get "/live/link" => pages::live_link;
    get "/assets/roost.css" => pages::style;
    get "/assets/roost.js" => pages::script;
}

pub(super) fn router(app: App) -> Router {
    let app = Arc::new(app);
    routes()
        .fallback(async |request: Request| {
            Fault::not_found(format!("there is nothing at {}", request.uri().path()))
        })
        .method_not_allowed_fallback(async |request: Request| {
            let reads = matches!(*request.method(), Method::GET | Method::HEAD);
            let words =
                if reads { "this path takes orders: POST" } else { "this path can only be read" };
            Fault::new(StatusCode::METHOD_NOT_ALLOWED, words)
        })
        .layer(DefaultBodyLimit::max(MAX_BODY))
        // The last one added is the first to see a request.
        .layer(from_fn(share_with_pages))
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .layer(from_fn_with_state(Arc::clone(&app), meter::measure))
        .layer(from_fn(harden))
        .with_state(app)
}

/// Lets through who may, and says with the request who that is, if they have shown it.
async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if !access::is_open(request.uri().path()) {
        let peer = request.extensions().get::<Peer>();
        match access::check(&app.settings, peer, &request) {
            Ok(shown) => {
                let by = shown.zip(peer.map(|peer| peer.ip));
                let by = by.map(|(shown, from)| Person { shown, from });
                if let Some(by) = by {
                    request.extensions_mut().insert(by);
                }
            }
            Err(denied) if wants_page(&request) => return pages::turned_away(denied),
            Err(denied) => return denied.into_response(),
        }
    }
    next.run(request).await
}

/// Whether a person in a browser asks for something to look at.
fn wants_page(request: &Request) -> bool {
    let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let path = request.uri().path();
    *request.method() == Method::GET
        && accepts.is_some_and(|accepts| accepts.contains("text/html"))
        && !path.starts_with("/api/")
        && !path.starts_with("/live/")
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
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}
