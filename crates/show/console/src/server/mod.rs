//! The HTTP server.

mod access;
mod actions;
mod answer;
mod api;
mod app;
mod events;
mod meter;
mod metrics;
#[cfg(test)]
mod openapi;
mod pages;
mod probes;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use roost_door::House;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use self::access::Peer;
use self::app::App;
use crate::{ServerTls, Settings};

/// Operators, a Prometheus or two, and pages that are open; the rest waits in the backlog.
const MAX_CONNECTIONS: usize = 512;

/// Also how long a connection may stay open without a request.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);

/// Every answer is made from memory; what takes longer is a client that does not read.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Accepting fails only when the machine is short of something.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A running service, and who may look at it and steer it.
#[derive(Debug, Clone)]
pub struct Console {
    pub house: Arc<House>,
    pub settings: Settings,
}

impl Console {
    /// Serves what the house shows until `closing` ends: then no new connection is taken, streams of events end, requests under way are answered. Dropping
    /// it cuts all connections at once.
    pub async fn serve(self, listener: TcpListener, closing: impl Future<Output = ()>) {
        let (close, closes) = watch::channel(false);
        let tls = self.settings.tls.clone();
        let router = app::router(App::new(self.house, self.settings, closes));
        let service = TowerToHyperService::new(router);
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let mut closing = std::pin::pin!(closing);
        loop {
            tokio::select! {
                biased;
                () = &mut closing => break,
                Some(ended) = connections.join_next() => tell_if_panicked(ended),
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, peer)) => {
                        // Small answers and single events: waiting to fill a packet only costs time.
                        let _ = stream.set_nodelay(true);
                        let (service, watcher) = (service.clone(), graceful.watcher());
                        connections.spawn(greet(stream, peer, tls.clone(), service, watcher));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "accepting a connection");
                        sleep(ACCEPT_AGAIN).await;
                    }
                },
            }
        }
        drop(listener);
        let _ = close.send(true);
        if timeout(DRAIN_WITHIN, graceful.shutdown()).await.is_err() {
            tracing::warn!("{} connections were cut: their clients do not read", connections.len());
        }
    }
}

async fn greet(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<ServerTls>,
    service: TowerToHyperService<Router>,
    watcher: Watcher,
) {
    let Some(tls) = tls else {
        let plain = Peer { ip: peer.ip(), certificate: None };
        return answer(stream, plain, service, watcher).await;
    };
    match tls.accept(stream).await {
        Ok((stream, certificate)) => {
            answer(stream, Peer { ip: peer.ip(), certificate }, service, watcher).await;
        }
        Err(error) => tracing::debug!(%error, %peer, "a client could not be greeted"),
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    peer: Peer,
    service: TowerToHyperService<Router>,
    watcher: Watcher,
) {
    let ip = peer.ip;
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        service.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, %ip, "a connection ended early");
    }
}

fn tell_if_panicked(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "answering a request panicked");
    }
}
