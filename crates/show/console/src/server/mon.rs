//! What CDS's operators know from its services.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::Value;

use super::answer::text;
use super::app::App;
use crate::views::{LevelView, VersionView};

/// The names of CDS are those of the older format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn version(State(app): State<Arc<App>>) -> Json<VersionView> {
    Json(app.source.version())
}

pub(super) async fn status(State(app): State<Arc<App>>) -> Response {
    let status = app.source.status();
    let code = match status.level() {
        LevelView::Alert => StatusCode::SERVICE_UNAVAILABLE,
        LevelView::Ok | LevelView::Warn => StatusCode::OK,
    };
    (code, Json(status)).into_response()
}

pub(super) async fn workers(State(app): State<Arc<App>>) -> Json<Value> {
    Json(app.source.workers())
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    text(StatusCode::OK, PROMETHEUS, app.source.metrics())
}

pub(super) async fn metrics_described(State(app): State<Arc<App>>) -> Json<Value> {
    Json(app.source.metrics_described())
}
