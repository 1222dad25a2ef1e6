use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::answer::text;
use super::app::App;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Of all doors and their core.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    text(StatusCode::OK, PROMETHEUS, app.house.metrics())
}
