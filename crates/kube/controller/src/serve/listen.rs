use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use roost_tls::ServerTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

/// API servers keep a connection each, and a Prometheus or two come by.
const MAX_CONNECTIONS: usize = 512;

/// Also how long a connection may stay open without a request.
const HEADERS_WITHIN: Duration = Duration::from_mins(2);

/// Longer than the API server waits for a webhook.
const DRAIN_WITHIN: Duration = Duration::from_secs(35);

const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How connections are protected. The certificate is asked for at each connection, so it can change.
#[derive(Clone)]
pub enum Tls {
    Off,
    On(Arc<dyn Fn() -> Option<ServerTls> + Send + Sync>),
}

impl From<ServerTls> for Tls {
    fn from(tls: ServerTls) -> Self {
        Self::On(Arc::new(move || Some(tls.clone())))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Off => "Off",
            Self::On(_) => "On",
        })
    }
}

/// Serves until `closing` returns: then no new connection is taken and requests under way are answered.
pub async fn serve(
    listener: TcpListener,
    tls: Tls,
    router: Router,
    closing: impl Future<Output = ()>,
) {
    let service = TowerToHyperService::new(router);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut closing = std::pin::pin!(closing);
    loop {
        tokio::select! {
            biased;
            () = &mut closing => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    let (tls, service, watcher) = (tls.clone(), service.clone(), graceful.watcher());
                    connections.spawn(greet(stream, tls, service, watcher));
                }
                Err(error) => {
                    warn!(%error, "accepting a connection");
                    sleep(ACCEPT_AGAIN).await;
                }
            },
        }
    }
    drop(listener);
    let _ = timeout(DRAIN_WITHIN, graceful.shutdown()).await;
}

async fn greet(
    stream: TcpStream,
    tls: Tls,
    service: TowerToHyperService<Router>,
    watcher: Watcher,
) {
    match tls {
        Tls::Off => answer(stream, service, watcher).await,
        Tls::On(current) => {
            // No certificate yet: the client tries again.
            let Some(tls) = current() else { return };
            match tls.accept(stream).await {
                Ok((stream, _)) => answer(stream, service, watcher).await,
                Err(error) => debug!(%error, "a client could not be greeted"),
            }
        }
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    service: TowerToHyperService<Router>,
    watcher: Watcher,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        debug!(%error, "a connection ended early");
    }
}
