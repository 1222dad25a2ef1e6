use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body::Body as _;
use roost_door::Answered;
use tokio::time::Instant;

use super::app::{App, ROUTES};

/// Tells the doors of every answer.
pub(super) async fn measure(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let known = ROUTES.iter().map(|route| route.path).chain(app.own.iter().map(|own| own.path));
    let handler = known.into_iter().find(|path| Some(*path) == matched).unwrap_or("other");
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
    app.house.http_answered(&answered);
    answer
}
