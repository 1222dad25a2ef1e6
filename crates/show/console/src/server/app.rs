//! Which path is whose, and what holds for all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use roost_door::{House, Person, Route};
use tokio::sync::{Semaphore, watch};

use super::access::{self, Peer};
use super::answer::Fault;
use super::refusals::Refusals;
use super::{actions, api, events, meter, metrics, pages, probes};
use crate::Settings;

/// Whatever a name manages to become in a page, it cannot run, load or send anything.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Each looks at the house a few times a second.
const MAX_LISTENERS: usize = 64;

/// The time by the service's clock, so that nobody has to ask for the overview to say how long ago something was.
const NOW: HeaderName = HeaderName::from_static("roost-now");

/// An order is a few words.
const MAX_BODY: usize = 16 * 1_024;

/// What every handler can reach.
#[derive(Debug)]
pub(super) struct App {
    pub(super) house: Arc<House>,
    /// Paths that doors answer by themselves.
    pub(super) own: Vec<Own>,
    pub(super) settings: Settings,
    pub(super) refusals: Refusals,
    /// One permit for each stream of events.
    pub(super) listeners: Arc<Semaphore>,
    /// Changes once, when streams of events must end.
    pub(super) closing: watch::Receiver<bool>,
}

impl App {
    pub(super) fn new(
        house: Arc<House>,
        settings: Settings,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let listeners = Arc::new(Semaphore::new(MAX_LISTENERS));
        Self { house, own: Vec::new(), settings, refusals: Refusals::default(), listeners, closing }
    }
}

/// A path that a door answers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) path: &'static str,
    is_open: bool,
}

impl App {
    fn is_own_and_open(&self, request: &Request) -> bool {
        let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        self.own.iter().any(|own| own.is_open && Some(own.path) == matched)
    }
}

macro_rules! routes {
    ($($method:ident $path:literal => $handler:path;)+) => {
        /// A closed set, because they become metric labels.
        pub(super) const ROUTES: [Common; [$($path),+].len()] =
            [$(Common { method: stringify!($method), path: $path }),+];

        fn routes() -> Router<Arc<App>> {
            Router::new()$(.route($path, $method($handler)))+
        }
    };
}

/// One that the console answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Common {
    /// In small letters.
    pub(super) method: &'static str,
    pub(super) path: &'static str,
}

routes! {
    get "/metrics" => metrics::metrics;
    get "/livez" => probes::livez;
    get "/readyz" => probes::readyz;
    get "/api/v1/overview" => api::overview;
    get "/api/v1/requests" => api::all_requests;
    get "/api/v1/requests/{door}/{id}" => api::request_of_door;
    post "/api/v1/requests/{door}/{id}/recheck" => actions::recheck_of_door;
    post "/api/v1/requests/{door}/{id}/pause" => actions::pause_of_door;
    post "/api/v1/requests/{door}/{id}/resume" => actions::resume_of_door;
    get "/api/v1/{nouns}" => api::requests;
    get "/api/v1/{nouns}/{id}" => api::request;
    post "/api/v1/{nouns}/{id}/recheck" => actions::recheck;
    post "/api/v1/{nouns}/{id}/pause" => actions::pause;
    post "/api/v1/{nouns}/{id}/resume" => actions::resume;
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
    get "/api/v1/history" => api::history;
    get "/api/v1/search" => api::search;
    post "/api/v1/demo/{id}" => actions::demo;
    get "/api/v1/openapi.json" => api::openapi;
    get "/" => pages::overview;
    get "/{nouns}" => pages::requests;
    get "/{nouns}/{id}" => pages::request;
    get "/vms" => pages::vms;
    get "/vms/{id}" => pages::vm;
    get "/decisions" => pages::decisions;
    get "/deletions" => pages::deletions;
    get "/link" => pages::link;
    get "/search" => pages::search;
    get "/live/" => pages::live_overview;
    get "/live/{nouns}" => pages::live_requests;
    get "/live/{nouns}/{id}" => pages::live_request;
    get "/live/vms" => pages::live_vms;
    get "/live/vms/{id}" => pages::live_vm;
    get "/live/decisions" => pages::live_decisions;
    get "/live/deletions" => pages::live_deletions;
    get "/live/link" => pages::live_link;
    get "/live/search" => pages::live_search;
    get "/assets/roost.css" => pages::style;
    get "/assets/roost.js" => pages::script;
}

pub(super) fn router(mut app: App) -> Router {
    let of_doors = app.house.doors.iter().flat_map(|door| Arc::clone(door).routes());
    let mut own = Router::<()>::new();
    for Route { path, methods, is_open } in of_doors {
        app.own.push(Own { path, is_open });
        own = own.route(path, methods);
    }
    let app = Arc::new(app);
    routes()
        .merge(own.with_state(()))
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
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .layer(from_fn_with_state(Arc::clone(&app), meter::measure))
        .layer(from_fn_with_state(Arc::clone(&app), harden))
        .with_state(app)
}

/// Lets through who may, and says with the request who that is, if they have shown it.
async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if !access::is_open(request.uri().path()) && !app.is_own_and_open(&request) {
        let peer = request.extensions().get::<Peer>();
        match access::check(&app.settings, peer, &request) {
            Ok(shown) => {
                let by = shown.zip(peer.map(|peer| peer.ip));
                let by = by.map(|(shown, from)| Person { shown, from });
                if let Some(by) = by {
                    request.extensions_mut().insert(by);
                }
            }
            Err(denied) => {
                if denied == access::Denied::WrongToken {
                    app.refusals.wrong_token(peer.map(|peer| peer.ip));
                }
                if wants_page(&request) {
                    return pages::turned_away(denied);
                }
                return denied.into_response();
            }
        }
    }
    next.run(request).await
}

/// Whether a person in a browser asks for something to look at.
pub(super) fn wants_page(request: &Request) -> bool {
    let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let path = request.uri().path();
    *request.method() == Method::GET
        && accepts.is_some_and(|accepts| accepts.contains("text/html"))
        && !path.starts_with("/api/")
        && !path.starts_with("/live/")
}

/// What is shown is of this moment, and is what its type says.
async fn harden(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let mut answer = safe(next.run(request).await);
    if is_api && let Ok(now) = HeaderValue::try_from(app.house.now().to_string()) {
        answer.headers_mut().insert(NOW, now);
    }
    answer
}

/// Whatever is answered.
pub(super) fn safe(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}
