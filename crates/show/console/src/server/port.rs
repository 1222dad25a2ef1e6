//! The port: it answers from the moment it is open, and nobody who holds a connection keeps others out.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
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
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::Console;
use super::access::Peer;
use super::app::{self, App};
use super::connections::{Activity, Connections, Limits};
use super::guarded::Guarded;
use super::starting::{self, Starter};
use crate::ServerTls;

/// Also how long a connection may stay open without a request.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);

/// Every answer is made from memory; what takes longer is a client that does not read.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Accepting fails only when the machine is short of something.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Between two looks at what curves are drawn from: the clock of a demo is quicker than ours.
const LOOK: Duration = Duration::from_secs(1);

/// How often it is told that connections were ended to make room.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// A port that is listened on. It says that the service starts until [`Port::show`] is called. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Port {
    listener: Arc<TcpListener>,
    tls: Option<ServerTls>,
    /// What requests are given to.
    router: watch::Sender<Router>,
    waits_for: watch::Sender<String>,
    /// What is shown, if it is there yet.
    house: watch::Sender<Option<Weak<House>>>,
    close: watch::Sender<bool>,
}

impl Port {
    pub fn new(listener: TcpListener, tls: Option<ServerTls>, starter: Starter) -> Self {
        let waits_for = watch::Sender::new("its turn".to_owned());
        let router = starting::router(starter, waits_for.subscribe());
        Self::answering(listener, tls, router, waits_for)
    }

    fn answering(
        listener: TcpListener,
        tls: Option<ServerTls>,
        router: Router,
        waits_for: watch::Sender<String>,
    ) -> Self {
        let (router, close) = (watch::Sender::new(router), watch::Sender::new(false));
        let (listener, house) = (Arc::new(listener), watch::Sender::new(None));
        Self { listener, tls, router, waits_for, house, close }
    }

    /// What the service waits for while it starts.
    pub fn waits_for(&self, what: &str) {
        self.waits_for.send_replace(what.to_owned());
    }

    /// From now on the service itself is shown, also on connections that are open.
    pub fn show(&self, console: Console) {
        let Console { house, settings } = console;
        self.house.send_replace(Some(Arc::downgrade(&house)));
        let app = App::new(house, settings, self.close.subscribe());
        drop(self.router.send_replace(app::router(app)));
    }

    /// Answers until `closing` ends: then no new connection is taken, streams of events end, requests under way are answered. Dropping
    /// it cuts all connections at once. It can be called again after it panicked.
    pub async fn serve(&self, closing: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let mut tasks = JoinSet::new();
        let mut connections = Connections::new(Limits::of_this_process());
        let (began, mut told) = (Instant::now(), None::<Instant>);
        let mut closing = std::pin::pin!(closing);
        loop {
            tokio::select! {
                biased;
                () = &mut closing => break,
                Some(ended) = tasks.join_next_with_id() => connections.remove(ended_task(ended)),
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        // Small answers and single events: waiting to fill a packet only costs time.
                        let _ = stream.set_nodelay(true);
                        connections.make_room(peer.ip());
                        // One that was ended holds its descriptor until its task is gone.
                        while tasks.len() > connections.len() && let Some(ended) = tasks.join_next_with_id().await {
                            connections.remove(ended_task(ended));
                        }
                        let activity = Activity::new(began);
                        let answering =
                            self.clone().greet(stream, peer, Arc::clone(&activity), graceful.watcher());
                        connections.add(peer.ip(), activity, tasks.spawn(answering));
                        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                            let ended = connections.take_ended();
                            if ended > 0 {
                                told = Some(Instant::now());
                                let open = connections.len();
                                tracing::warn!(%peer, ended, open, "too many connections: the longest idle ones were ended");
                            }
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "accepting a connection");
                        sleep(ACCEPT_AGAIN).await;
                    }
                },
            }
        }
        self.close.send_replace(true);
        if timeout(DRAIN_WITHIN, graceful.shutdown()).await.is_err() {
            tracing::warn!("{} connections were cut: their clients do not read", connections.len());
        }
    }

    /// Keeps what curves are drawn from, beside [`Port::serve`], until the port closes or what it shows is gone. It can be called again after it
    /// panicked, which what it looks at may do.
    pub async fn keep_history(&self) {
        let (mut shown, mut closing) = (self.house.subscribe(), self.close.subscribe());
        let keeping = async {
            let Ok(shown) = shown.wait_for(Option::is_some).await.map(|house| house.clone()) else {
                return;
            };
            while let Some(house) = shown.as_ref().and_then(Weak::upgrade) {
                house.history.watch(&house);
                house.history.keep(&house);
                drop(house);
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => {}
            () = keeping => {}
        }
    }

    async fn greet(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        activity: Arc<Activity>,
        watcher: Watcher,
    ) {
        let Some(tls) = &self.tls else {
            let plain = Peer { ip: peer.ip(), certificate: None };
            return self.answer(stream, plain, activity, watcher).await;
        };
        match tls.accept(stream).await {
            Ok((stream, certificate)) => {
                let peer = Peer { ip: peer.ip(), certificate };
                self.answer(stream, peer, activity, watcher).await;
            }
            Err(error) => tracing::debug!(%error, %peer, "a client could not be greeted"),
        }
    }

    async fn answer(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        peer: Peer,
        activity: Arc<Activity>,
        watcher: Watcher,
    ) {
        let ip = peer.ip;
        let router = self.router.subscribe();
        let at_work = Arc::clone(&activity);
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            let router = TowerToHyperService::new(router.borrow().clone());
            let at_work = at_work.at_work();
            async move {
                let answered = router.call(request).await;
                drop(at_work);
                answered
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .serve_connection(TokioIo::new(Guarded::new(stream, activity)), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, %ip, "a connection ended early");
        }
    }
}

impl Console {
    /// Serves what the service shows, from now until `closing` ends; see [`Port::serve`].
    pub async fn serve(self, listener: TcpListener, closing: impl Future<Output = ()>) {
        let (tls, waits_for) = (self.settings.tls.clone(), watch::Sender::default());
        let port = Port::answering(listener, tls, Router::new(), waits_for);
        port.show(self);
        tokio::join!(port.serve(closing), port.keep_history());
    }
}

fn ended_task(ended: Result<(Id, ()), JoinError>) -> Id {
    match ended {
        Ok((id, ())) => id,
        Err(error) => {
            if error.is_panic() {
                tracing::error!(%error, "answering a request panicked");
            }
            error.id()
        }
    }
}
