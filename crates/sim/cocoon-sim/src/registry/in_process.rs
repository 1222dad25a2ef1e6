//! The registry without a network, on tokio's time.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use roost_microvm::RegistryTransport;

use super::EpochRegistry;
use super::routes::serve;

/// A request takes its time, so that whoever asks can die while it is under way.
const LATENCY: Duration = Duration::from_millis(50);

impl RegistryTransport for EpochRegistry {
    fn send(
        &self,
        request: reqwest::Request,
    ) -> BoxFuture<'_, Result<reqwest::Response, reqwest::Error>> {
        async move {
            tokio::time::sleep(LATENCY).await;
            let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
            let mut asked = http::Request::new(Body::from(body.to_vec()));
            *asked.method_mut() = request.method().clone();
            *asked.uri_mut() = request.url().as_str().parse().unwrap_or_default();
            *asked.headers_mut() = request.headers().clone();
            let (parts, body) = serve(State(self.clone()), asked).await.into_parts();
            let mut pieces = body.into_data_stream();
            let mut whole = Vec::new();
            // Where a connection would be cut, the answer just ends.
            while let Some(Ok(piece)) = pieces.next().await {
                whole.extend_from_slice(&piece);
            }
            Ok(http::Response::from_parts(parts, whole).into())
        }
        .boxed()
    }
}
