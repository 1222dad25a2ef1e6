//! The wire door: HTTP/1.1 with websocket upgrades, into the in-process door.

mod websocket;

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, UPGRADE, USER_AGENT};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tracing::debug;

use crate::api::CdsApi;

/// Smaller answers do not gain by it.
const LEAST_COMPRESSED: usize = 1400;

/// A simulated API on a port. Dropping it closes the port and all connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: AbortHandle,
}

impl Server {
    /// Serves the API until the handle is dropped.
    pub fn start(api: CdsApi, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept(api, listener)).abort_handle();
        Ok(Self { address, task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(api: CdsApi, listener: TcpListener) -> Infallible {
    // Both end with this task: connections are aborted with their set, websockets see the sender go.
    let mut connections = JoinSet::new();
    let (_running, ended) = watch::channel(());
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(api.clone(), stream, ended.clone()));
                }
                Err(error) => {
                    debug!("accepting a connection failed: {error}");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
        }
    }
}

async fn serve(api: CdsApi, stream: TcpStream, ended: watch::Receiver<()>) {
    let service = service_fn(move |request| answer(api.clone(), request, ended.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        debug!("a connection ended: {error}");
    }
}

async fn answer(
    api: CdsApi,
    request: Request<Incoming>,
    ended: watch::Receiver<()>,
) -> io::Result<Response<Full<Bytes>>> {
    if request.headers().contains_key(UPGRADE) {
        return websocket::upgrade(&api, request, ended)
            .await
            .map(|response| response.map(Full::new));
    }
    let accepts_gzip = accepts_gzip(&request);
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let response = api.handle(Request::from_parts(parts, body)).await?;
    Ok(if accepts_gzip { compress(response)? } else { response }.map(Full::new))
}

fn accepts_gzip(request: &Request<Incoming>) -> bool {
    let has = |name, text| {
        let value = request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        value.is_some_and(|value| value.contains(text))
    };
    has(ACCEPT_ENCODING, "gzip") && !has(USER_AGENT, "Prometheus")
}

fn compress(response: Response<Bytes>) -> io::Result<Response<Bytes>> {
    if response.body().len() < LEAST_COMPRESSED {
        return Ok(response);
    }
    let (mut parts, body) = response.into_parts();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&body)?;
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(Response::from_parts(parts, encoder.finish()?.into()))
}
