use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body::Body as _;
use tokio::time::Instant;

use super::app::{App, ROUTES};
use crate::Answered;

/// Tells the source of every answer.
pub(super) async fn measure(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let matched = request.extensions().get::<MatchedPath>();
    let handler = matched
        .and_then(|matched| ROUTES.into_iter().find(|route| route.path == matched.as_str()))
        .map_or("other", |route| route.path);
    let request_bytes = request.body().size_hint().lower();
    let method = request.method().clone();
    let answer = next.run(request).await;
    let answered = Answered {
        handler,
        status: answer.status().as_u16(),
        request_bytes,
        response_bytes: answer.body().size_hint().exact().unwrap_or_default(),
        took: began.elapsed(),
    };
    let Answered { status, took, .. } = answered;
    tracing::debug!(%method, handler, status, ?took, "answered a request");
    app.source.http_answered(&answered);
    answer
}
