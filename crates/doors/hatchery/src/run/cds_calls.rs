//! Counts requests to the CDS API by route and by how they ended.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use roost_cds::{SendFuture, SocketFuture, Transport};

use crate::metrics::OwnMetrics;

/// The transport with a counter at its door.
#[derive(Debug)]
pub(super) struct CountedCalls {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) metrics: OwnMetrics,
}

impl Transport for CountedCalls {
    fn send(&self, request: Request<Bytes>) -> SendFuture {
        let route = route(request.method(), request.uri().path());
        let (metrics, sent) = (self.metrics.clone(), self.transport.send(request));
        Box::pin(async move {
            let answer = sent.await;
            metrics.called_cds(
                route,
                match &answer {
                    Ok(answer) if answer.status().is_success() => "done",
                    Ok(answer) if answer.status().is_server_error() => "server-error",
                    Ok(_) => "refused",
                    Err(_) => "connection",
                },
            );
            answer
        })
    }

    fn websocket(&self, request: Request<()>) -> SocketFuture {
        let (metrics, opened) = (self.metrics.clone(), self.transport.websocket(request));
        Box::pin(async move {
            let socket = opened.await;
            metrics.called_cds("websocket", if socket.is_ok() { "done" } else { "connection" });
            socket
        })
    }
}

/// The route without ids: a closed set, because it becomes a metric label.
fn route(method: &Method, path: &str) -> &'static str {
    let path = path.strip_prefix("/v2").unwrap_or(path);
    let is = |end: &str| path.ends_with(end);
    match *method {
        _ if path.contains("/auth/") && is("/signin") => "sign-in",
        _ if path.contains("/auth/") => "sign-out",
        _ if is("/heartbeat") => "heartbeat",
        _ if path.starts_with("/config/") => "config",
        Method::DELETE if is("/book") || is("/take") => "release",
        _ if path.starts_with("/worker/model/") && is("/book") => "book-model",
        _ if is("/book") || is("/take") => "take",
        _ if is("/spawn/infos") || is("/info") => "message",
        _ if is("/result") => "fail",
        _ if is("/disable") => "disable-worker",
        _ if path.starts_with("/worker/model/") || path.contains("/workermodel/") => "models",
        _ if path == "/worker" => "workers",
        _ if path.contains("/job/") || is("/infos") => "job",
        _ if path.starts_with("/queue/") => "queue",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_a_hatchery_has_a_name_without_ids() {
        for (method, path, wanted) in [
            (Method::POST, "/auth/consumer/builtin/signin", "sign-in"),
            (Method::POST, "/v2/auth/consumer/hatchery/signin", "sign-in"),
            (Method::POST, "/auth/consumer/signout", "sign-out"),
            (Method::POST, "/v2/hatchery/heartbeat", "heartbeat"),
            (Method::GET, "/v2/config/cdn", "config"),
            (Method::GET, "/queue/workflows", "queue"),
            (Method::GET, "/v2/queue/default", "queue"),
            (Method::GET, "/queue/workflows/7/infos", "job"),
            (Method::GET, "/v2/queue/default/job/1-2-3", "job"),
            (Method::POST, "/queue/workflows/7/book", "take"),
            (Method::DELETE, "/queue/workflows/7/book", "release"),
            (Method::POST, "/v2/queue/default/job/1-2-3/hatchery/take", "take"),
            (Method::DELETE, "/v2/queue/default/job/1-2-3/hatchery/take", "release"),
            (Method::POST, "/v2/queue/default/job/1-2-3/info", "message"),
            (Method::POST, "/queue/workflows/7/spawn/infos", "message"),
            (Method::POST, "/queue/workflows/7/result", "fail"),
            (Method::GET, "/worker", "workers"),
            (Method::GET, "/v2/worker", "workers"),
            (Method::POST, "/worker/7/disable", "disable-worker"),
            (Method::GET, "/worker/model/enabled", "models"),
            (Method::PUT, "/worker/model/shared.infra/debian12/book", "book-model"),
            (Method::GET, "/v2/project/P/vcs/g/repository/o%2Fr/workermodel/m", "models"),
        ] {
            assert_eq!(route(&method, path), wanted, "{method} {path}");
        }
    }
}
