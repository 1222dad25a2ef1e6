//! The streams of one remote command, however they travel.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use roost_spdy::Session;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Chosen, Lane, Lanes, Socket, Source, Transport};
use crate::api::query::CommandQuery;

/// A client opens all its streams at once.
const OPEN_WITHIN: Duration = Duration::from_secs(30);
/// Clients are told the end and then leave; one that stays is left.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);
const WAITING: usize = 16;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;

/// What a remote command talks to.
pub(in crate::api) struct Channels {
    pub(in crate::api) stdin: Option<Source>,
    pub(in crate::api) stdout: Option<Lane>,
    pub(in crate::api) stderr: Option<Lane>,
    pub(in crate::api) error: Lane,
    pub(in crate::api) resize: Option<Source>,
    pub(in crate::api) chosen: Chosen,
    connection: Connection,
}

enum Connection {
    Spdy(Session),
    Socket(Socket),
}

impl Channels {
    /// `None` if the client did not open what it asked for.
    pub(in crate::api) async fn open<S>(
        connection: S,
        chosen: Chosen,
        query: &CommandQuery,
    ) -> Option<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match chosen.transport {
            Transport::Spdy => {
                let session = Session::serve(connection);
                let opened = timeout(OPEN_WITHIN, Self::of_spdy(session, chosen, query)).await;
                if opened.is_err() {
                    tracing::debug!("a client did not open its streams");
                }
                opened.ok().flatten()
            }
            Transport::WebSocket => Some(Self::of_socket(connection, chosen, query).await),
        }
    }

    async fn of_spdy(mut session: Session, chosen: Chosen, query: &CommandQuery) -> Option<Self> {
        let wants_resize = query.tty && chosen.has_resize();
        let (mut stdin, mut stdout, mut stderr, mut error, mut resize) =
            (None, None, None, None, None);
        loop {
            if error.is_some()
                && stdin.is_some() >= query.stdin
                && stdout.is_some() >= query.stdout
                && stderr.is_some() >= query.stderr
                && resize.is_some() >= wants_resize
            {
                break;
            }
            let stream = session.accept().await?;
            let (from, to) = (Source::Spdy(stream.incoming), Lane::Spdy(stream.outgoing));
            match stream.headers.get("streamtype").map(String::as_str) {
                Some("error") => error = Some(to),
                Some("stdin") => stdin = Some(from),
                Some("stdout") => stdout = Some(to),
                Some("stderr") => stderr = Some(to),
                Some("resize") => resize = Some(from),
                other => tracing::debug!("a stream of kind {other:?} is passed over"),
            }
        }
        let connection = Connection::Spdy(session);
        Some(Self { stdin, stdout, stderr, error: error?, resize, chosen, connection })
    }

    async fn of_socket<S>(connection: S, chosen: Chosen, query: &CommandQuery) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut lanes: Lanes = vec![None; usize::from(RESIZE) + 1];
        let mut source = |channel: u8, is_wanted: bool| {
            is_wanted.then(|| {
                let (to, from) = mpsc::channel(WAITING);
                lanes[usize::from(channel)] = Some(to);
                Source::Socket(from)
            })
        };
        let stdin = source(STDIN, query.stdin);
        let resize = source(RESIZE, query.tty);
        let socket = Socket::serve(connection, chosen, lanes).await;
        let lane = |channel: u8| Lane::Socket(socket.lane(channel));
        let channels = Self {
            stdin,
            stdout: query.stdout.then(|| lane(STDOUT)),
            stderr: query.stderr.then(|| lane(STDERR)),
            error: lane(ERROR),
            resize,
            chosen,
            connection: Connection::Socket(socket),
        };
        // The client learns that it is connected.
        let first = channels.stdout.as_ref().or(channels.stderr.as_ref());
        let _ = first.unwrap_or(&channels.error).send(Bytes::new()).await;
        channels
    }

    /// Returns when the client is gone.
    pub(in crate::api) fn ended(&self) -> BoxFuture<'static, ()> {
        match &self.connection {
            Connection::Spdy(session) => Box::pin(session.ended()),
            Connection::Socket(socket) => Box::pin(socket.ended()),
        }
    }

    /// Says how it ended, and closes.
    pub(in crate::api) async fn finish(self, end: Bytes) {
        let gone = self.ended();
        if !end.is_empty() {
            let _ = self.error.send(end).await;
        }
        let _ = self.error.finish().await;
        match self.connection {
            Connection::Spdy(session) => {
                // Closing at once could take the last words away from a slow reader.
                let _ = timeout(LEAVE_WITHIN, gone).await;
                session.close().await;
            }
            Connection::Socket(socket) => socket.close().await,
        }
    }
}
