//! Accepting connections and serving requests on them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::Server;
use crate::door::{Peer, Vcenter};

/// Between two tries to accept or to listen again; both fail only when the machine is short of something.
const RETRY: Duration = Duration::from_millis(100);

/// govc reads a file once more after its last byte is sent, and panics if the upload has been answered by then. No
/// real server is as quick.
const UPLOAD_SETTLES: Duration = Duration::from_millis(10);

/// Accepts until it is dropped, and with it every connection.
pub(super) async fn accept(server: Server) {
    let Server { vcenter, listener, address, tls } = server;
    let acceptor = tls.map(|tls| tls.acceptor);
    let mut connections = JoinSet::new();
    let mut restarts = vcenter.handle.availability.restarts();
    let mut listener = Some(listener);
    loop {
        let Some(open) = &listener else {
            wait_until_up(&vcenter).await;
            listener = listen_again(address).await;
            continue;
        };
        tokio::select! {
            _ = restarts.changed() => {
                // The connections notice by themselves; a closed port is what refuses new ones.
                if vcenter.handle.availability.down().is_some_and(|down| down.refuses) {
                    listener = None;
                }
            }
            Some(_) = connections.join_next() => {}
            accepted = open.accept() => match accepted {
                Ok((stream, peer)) => {
                    let serve = serve(vcenter.clone(), stream, peer, acceptor.clone());
                    connections.spawn(serve);
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection");
                    tokio::time::sleep(RETRY).await;
                }
            },
        }
    }
}

async fn wait_until_up(vcenter: &Vcenter) {
    while let Some(down) = vcenter.handle.availability.down() {
        tokio::time::sleep_until(down.until).await;
    }
}

async fn listen_again(address: SocketAddr) -> Option<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::warn!(%error, %address, "listening again after an outage");
            tokio::time::sleep(RETRY).await;
            None
        }
    }
}

async fn serve(
    vcenter: Vcenter,
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
) {
    let mut restarts = vcenter.handle.availability.restarts();
    // Small answers to small calls: waiting to fill a packet only costs time.
    let _ = stream.set_nodelay(true);
    let peer = Peer { ip: peer.ip().to_string(), is_secure: acceptor.is_some() };
    let serve = async {
        match acceptor {
            None => serve_http(vcenter, TokioIo::new(stream), peer).await,
            Some(acceptor) => match acceptor.accept(stream).await {
                Ok(stream) => serve_http(vcenter, TokioIo::new(stream), peer).await,
                Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
            },
        }
    };
    tokio::select! {
        () = serve => {}
        _ = restarts.changed() => {}
    }
}

async fn serve_http<I>(vcenter: Vcenter, io: I, peer: Peer)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let service = service_fn(|request: http::Request<Incoming>| {
        let (vcenter, peer) = (vcenter.clone(), peer.clone());
        async move {
            let mut request = request.map(|body| body.map_err(io::Error::other).boxed());
            request.extensions_mut().insert(peer);
            let is_upload = request.method() == http::Method::PUT;
            let answer = vcenter.handle(request).await;
            if is_upload {
                tokio::time::sleep(UPLOAD_SETTLES).await;
            }
            // An error here makes hyper drop the connection, which is what a cut connection is.
            answer
        }
    });
    let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(io, service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended");
    }
}
