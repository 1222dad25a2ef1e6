//! The wire door: HTTPS on a port, and the kubeconfig that leads to it.

mod tls;

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

pub use tls::ServeError;

use crate::sim::KubeSim;
use crate::user::User;

/// Between two tries to accept; it fails only when the machine is short of something.
const RETRY: Duration = Duration::from_millis(100);

/// An embedded API server on a port.
pub struct Server {
    sim: KubeSim,
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    certificate_pem: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens with a certificate made now; port 0 takes a free one. Nothing is answered before
    /// [`run_until`](Self::run_until).
    pub async fn bind(sim: KubeSim, listen: SocketAddr) -> Result<Self, ServeError> {
        // Without any credentials kubectl asks for a name and a password.
        if sim.world().options.tokens.is_empty() {
            let token = sim.world().random.fork("token").uuid();
            sim.add_token(&token, User::admin());
        }
        let identity = tls::Identity::self_signed(&listen.ip().to_string())?;
        let failed = |source| ServeError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            sim,
            listener,
            address,
            certificate_pem: identity.pem.clone(),
            acceptor: identity.acceptor()?,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// What `kubectl --kubeconfig` and `kube::Config` read. With a token, if the server knows one.
    pub fn kubeconfig(&self) -> String {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.certificate_pem);
        let token = self.sim.world().options.tokens.keys().next().cloned();
        let user = token.map_or_else(|| "{}".to_owned(), |token| format!("{{token: {token:?}}}"));
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: kube-sim\nclusters:\n- name: kube-sim\n  cluster:\n    server: {}\n    certificate-authority-data: {authority}\nusers:\n- name: kube-sim\n  user: {user}\ncontexts:\n- name: kube-sim\n  context: {{cluster: kube-sim, user: kube-sim, namespace: default}}\n",
            self.url()
        )
    }

    /// Serves until `shutdown` completes, then drops every connection.
    pub async fn run_until(self, shutdown: impl Future) {
        tokio::select! {
            _ = shutdown => {}
            () = self.accept() => {}
        }
    }

    async fn accept(self) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve(self.sim.clone(), stream, self.acceptor.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "accepting a connection");
                        tokio::time::sleep(RETRY).await;
                    }
                },
            }
        }
    }
}

async fn serve(sim: KubeSim, stream: TcpStream, acceptor: TlsAcceptor) {
    let _ = stream.set_nodelay(true);
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "a TLS handshake failed"),
    };
    let service = service_fn(|request: http::Request<Incoming>| {
        let sim = sim.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            // An error here makes hyper drop the connection, which is what a cut connection is.
            sim.answer(http::Request::from_parts(parts, body)).await
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended");
    }
}
