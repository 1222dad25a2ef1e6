//! What is answered while the service starts: that it lives, and what it waits for.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{HeaderName, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use roost_clock::Clock;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::answer::{Fault, text};
use super::{app, pages};

/// Browsers ask again by themselves.
const REFRESH: HeaderName = HeaderName::from_static("refresh");
const PLAIN: &str = "text/plain; charset=utf-8";

/// Who starts, for the lines of `/mon/status`.
#[derive(Debug, Clone)]
pub struct Starter {
    pub service: String,
    pub service_type: String,
    pub hostname: String,
    pub clock: Arc<dyn Clock>,
}

pub(super) fn router(starter: Starter, waits_for: watch::Receiver<String>) -> Router {
    let answer = move |request: Request| {
        let words = format!("starting: waits for {}", *waits_for.borrow());
        let answer = answer(&starter, &words, &request);
        async move { answer }
    };
    Router::new()
        .route("/assets/roost.css", get(pages::style))
        .route("/assets/roost.js", get(pages::script))
        .fallback(answer)
        .layer(from_fn(async |request: Request, next: Next| app::safe(next.run(request).await)))
}

fn answer(starter: &Starter, words: &str, request: &Request) -> Response {
    let not_yet = StatusCode::SERVICE_UNAVAILABLE;
    match request.uri().path() {
        "/livez" => text(StatusCode::OK, PLAIN, "ok\n".to_owned()),
        "/readyz" => {
            text(not_yet, PLAIN, format!("[-]start failed: {words}\nreadyz check failed\n"))
        }
        "/mon/status" => Json(status(starter, words)).into_response(),
        _ => {
            let mut answer = if app::wants_page(request) {
                pages::not_yet(words)
            } else {
                Fault::new(not_yet, words).into_response()
            };
            let soon = HeaderValue::from_static("2");
            answer.headers_mut().insert(RETRY_AFTER, soon.clone());
            answer.headers_mut().insert(REFRESH, soon);
            answer
        }
    }
}

/// In the form in which the doors of this house say theirs.
fn status(starter: &Starter, words: &str) -> Value {
    let Starter { service, service_type, hostname, clock } = starter;
    json!({
        "now": clock.now(),
        "lines": [{
            "status": "WARN",
            "component": "Global/Status",
            "value": words,
            "type": service_type,
            "service": service,
            "hostname": hostname,
        }],
    })
}
