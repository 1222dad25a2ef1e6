use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::manager::Status;
use crate::serve::Access;

/// The text form that Prometheus asks for.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/healthz` is fine while the process answers. `/readyz` is fine once all watches have read their first list, also on a replica
/// that stands by: it serves webhooks.
pub fn probe_router(status: Status) -> Router {
    let ready = move || {
        let is_ready = status.is_synced();
        async move {
            if is_ready {
                (StatusCode::OK, "ok")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "the first lists are not complete")
            }
        }
    };
    Router::new().route("/healthz", get(async || "ok")).route("/readyz", get(ready))
}

/// `/metrics`, to whom `access` allows it.
pub fn metrics_router(registry: Arc<Registry>, access: Access) -> Router {
    let show = async move |headers: HeaderMap| -> Response {
        let verdict = access.check(&headers, "/metrics").await;
        if verdict != StatusCode::OK {
            return verdict.into_response();
        }
        let mut text = String::new();
        if encode(&mut text, &registry).is_err() {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        let kind = HeaderValue::from_static(OPENMETRICS);
        ([(header::CONTENT_TYPE, kind)], text).into_response()
    };
    let show = Arc::new(show);
    Router::new().route(
        "/metrics",
        get(move |headers: HeaderMap| {
            let show = Arc::clone(&show);
            async move { show(headers).await }
        }),
    )
}
