use std::convert::Infallible;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use roost_tls::ServerTls;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::KubeletApi;
use super::access::User;

/// Each exec, log and forwarding of a pod is one; a node has a few hundred pods at most.
const MAX_CONNECTIONS: usize = 2048;
const HEADERS_WITHIN: Duration = Duration::from_mins(2);
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

impl KubeletApi {
    /// Serves until `closing` returns. Streams that are open then are cut.
    pub async fn serve(
        self,
        listener: TcpListener,
        tls: ServerTls,
        closing: impl Future<Output = ()>,
    ) {
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
                        connections.spawn(self.clone().greet(stream, tls.clone()));
                    }
                    Err(error) => {
                        tracing::warn!("accepting a connection: {error}");
                        sleep(ACCEPT_AGAIN).await;
                    }
                },
            }
        }
        connections.shutdown().await;
    }

    async fn greet(self, stream: TcpStream, tls: ServerTls) {
        let stream = match tls.accept(stream).await {
            Ok((stream, _)) => stream,
            Err(error) => return tracing::debug!("a client could not be greeted: {error}"),
        };
        // The handshake has verified it; here it is only read.
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let user = shown.and_then(|certificate| User::of_certificate(certificate));
        // What a request turned its connection into goes on here, and ends with this task.
        let (sender, mut streams) = tokio::sync::mpsc::channel(1);
        let service = service_fn(|request| {
            let (api, user, sender) = (self.clone(), user.clone(), sender.clone());
            async move { Ok::<_, Infallible>(api.answer(user.as_ref(), request, &sender).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended early: {error}");
        }
        if let Ok(stream) = streams.try_recv() {
            let stream: super::stream::Work = stream;
            stream.await;
        }
    }
}
