//! Connections that turn from HTTP into streams: SPDY/3.1, WebSocket, and SPDY inside WebSocket.

mod channels;
mod socket;
mod upgrade;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use roost_spdy::{Outgoing, SessionEnded};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

pub(super) use self::channels::Channels;
pub(super) use self::socket::{Lanes, Socket, carry_spdy};
pub(super) use self::upgrade::{COMMAND, Chosen, FORWARD, Transport, Upgrade};

/// What goes on after a connection was turned over.
pub(super) type Work = BoxFuture<'static, ()>;

/// Bytes that wait between a program and its client.
const PIPE: usize = 64 * 1024;
const READ: usize = 32 * 1024;

/// One direction of one stream, towards the client.
#[derive(Debug, Clone)]
pub(super) enum Lane {
    Spdy(Outgoing),
    Socket(socket::Lane),
}

impl Lane {
    pub(super) async fn send(&self, data: Bytes) -> Result<(), SessionEnded> {
        match self {
            Self::Spdy(stream) => stream.send(data).await,
            Self::Socket(channel) => channel.send(data).await,
        }
    }

    pub(super) async fn finish(&self) -> Result<(), SessionEnded> {
        match self {
            Self::Spdy(stream) => stream.finish().await,
            // A channel of a WebSocket ends with its connection.
            Self::Socket(_) => Ok(()),
        }
    }
}

/// What the client sends on one stream; `None` when it is done.
#[derive(Debug)]
pub(super) enum Source {
    Spdy(roost_spdy::Incoming),
    Socket(tokio::sync::mpsc::Receiver<Bytes>),
}

impl Source {
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Spdy(stream) => stream.next().await,
            Self::Socket(channel) => channel.recv().await,
        }
    }

    /// Something to read from, and what fills it.
    pub(super) fn into_pipe(mut self) -> (DuplexStream, impl Future<Output = ()> + Send + 'static) {
        let (mut to, from) = tokio::io::duplex(PIPE);
        let fill = async move {
            while let Some(data) = self.next().await {
                if to.write_all(&data).await.is_err() {
                    return;
                }
            }
            let _ = to.shutdown().await;
        };
        (from, fill)
    }
}

impl Lane {
    /// Something to write to, and what sends it. The stream is finished when the writer is dropped.
    pub(super) fn into_pipe(self) -> (DuplexStream, impl Future<Output = ()> + Send + 'static) {
        let (to, mut from) = tokio::io::duplex(PIPE);
        let send = async move {
            let mut buffer = vec![0; READ];
            loop {
                match from.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => {
                        if self.send(Bytes::copy_from_slice(&buffer[..count])).await.is_err() {
                            return;
                        }
                    }
                }
            }
            let _ = self.finish().await;
        };
        (to, send)
    }
}
