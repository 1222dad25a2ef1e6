//! The serving side of a connection: streams that a client opens.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::decode::{Decoder, SpdyError};
use crate::encode::Encoder;
use crate::frame::{Frame, Headers, ResetCode, StreamId};

/// Two for each forwarded connection, and a browser opens a handful of those.
const MAX_STREAMS: usize = 1024;
/// Pieces that a stream holds before its connection is read no further.
const WAITING_PIECES: usize = 16;
/// Frames that wait to be sent.
const WAITING_FRAMES: usize = 16;
const READ: usize = 32 * 1024;

/// The connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection has ended")]
pub struct SessionEnded;

/// A connection on which a client opens streams. Dropping it ends the connection.
#[derive(Debug)]
pub struct Session {
    streams: mpsc::Receiver<Stream>,
    ended: watch::Receiver<bool>,
    writer: mpsc::Sender<Order>,
    tasks: JoinSet<()>,
}

/// One stream that the client opened.
#[derive(Debug)]
pub struct Stream {
    pub id: StreamId,
    pub headers: Headers,
    pub incoming: Incoming,
    pub outgoing: Outgoing,
}

/// What the client sends. It ends with `None` when the client is done, resets the stream or is gone.
#[derive(Debug)]
pub struct Incoming(mpsc::Receiver<Bytes>);

/// Where answers go.
#[derive(Debug, Clone)]
pub struct Outgoing {
    id: StreamId,
    writer: mpsc::Sender<Order>,
}

#[derive(Debug)]
enum Order {
    Send(Frame),
    /// Say goodbye, close, and tell when it is done.
    Close(oneshot::Sender<()>),
}

impl Incoming {
    pub async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await
    }
}

impl Outgoing {
    pub async fn send(&self, data: Bytes) -> Result<(), SessionEnded> {
        if data.is_empty() {
            return Ok(());
        }
        self.order(Frame::Data { id: self.id, fin: false, data }).await
    }

    /// Nothing more comes from this side.
    pub async fn finish(&self) -> Result<(), SessionEnded> {
        self.order(Frame::Data { id: self.id, fin: true, data: Bytes::new() }).await
    }

    pub async fn reset(&self, code: ResetCode) -> Result<(), SessionEnded> {
        self.order(Frame::Reset { id: self.id, code: code as u32 }).await
    }

    async fn order(&self, frame: Frame) -> Result<(), SessionEnded> {
        self.writer.send(Order::Send(frame)).await.map_err(|_| SessionEnded)
    }
}

impl Session {
    /// Takes a connection over.
    pub fn serve(connection: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (reads, writes) = tokio::io::split(connection);
        let (writer, orders) = mpsc::channel(WAITING_FRAMES);
        let (opened, streams) = mpsc::channel(WAITING_PIECES);
        let (ending, ended) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let reader = Reader { writer: writer.clone(), opened, streams: BTreeMap::new(), last: 0 };
        tasks.spawn(async move {
            if let Err(error) = reader.run(reads).await {
                tracing::debug!("a client is not understood: {error}");
            }
            ending.send_replace(true);
        });
        tasks.spawn(write(writes, orders));
        Self { streams, ended, writer, tasks }
    }

    /// The next stream; `None` when the connection is over.
    pub async fn accept(&mut self) -> Option<Stream> {
        self.streams.recv().await
    }

    /// Returns when the client is gone, or said that it goes.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            // An error means that the task is gone, which is the same.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    /// Sends what is still to be sent, says goodbye and closes.
    pub async fn close(mut self) {
        let (done, closed) = oneshot::channel();
        if self.writer.send(Order::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
        self.tasks.shutdown().await;
    }
}

struct Reader {
    writer: mpsc::Sender<Order>,
    opened: mpsc::Sender<Stream>,
    /// `None`: the client has ended its side, or nobody listens any more.
    streams: BTreeMap<StreamId, Option<mpsc::Sender<Bytes>>>,
    last: u32,
}

impl Reader {
    async fn run(mut self, mut from: impl AsyncRead + Unpin) -> Result<(), SpdyError> {
        let mut decoder = Decoder::default();
        loop {
            while let Some(frame) = decoder.next_frame()? {
                if matches!(frame, Frame::GoAway { .. }) || self.take(frame).await?.is_err() {
                    return Ok(());
                }
            }
            decoder.buffer().reserve(READ);
            match from.read_buf(decoder.buffer()).await {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
    }

    async fn take(&mut self, frame: Frame) -> Result<Result<(), SessionEnded>, SpdyError> {
        Ok(match frame {
            Frame::SynStream { id, fin, headers } => {
                if id.0.is_multiple_of(2) || id.0 <= self.last {
                    return Err(SpdyError::Stream(id));
                }
                self.last = id.0;
                self.open(id, fin, headers).await
            }
            Frame::Data { id, fin, data } => {
                if let Some(to) = self.streams.get(&id).and_then(Option::as_ref)
                    && !data.is_empty()
                {
                    // Whoever listened may have heard enough.
                    let _ = to.send(data).await;
                }
                if fin {
                    self.end(id);
                }
                Ok(())
            }
            Frame::Headers { id, fin: true, .. } | Frame::SynReply { id, fin: true, .. } => {
                self.end(id);
                Ok(())
            }
            Frame::Reset { id, .. } => {
                self.streams.remove(&id);
                Ok(())
            }
            // Odd ones are the client's; an even one answers a ping that was never sent.
            Frame::Ping { id } if id % 2 == 1 => self.say(Frame::Ping { id }).await,
            _ => Ok(()),
        })
    }

    fn end(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            *stream = None;
        }
    }

    async fn open(
        &mut self,
        id: StreamId,
        fin: bool,
        headers: Headers,
    ) -> Result<(), SessionEnded> {
        self.streams.retain(|_, stream| stream.as_ref().is_some_and(|to| !to.is_closed()));
        if self.streams.len() >= MAX_STREAMS {
            return self.say(Frame::Reset { id, code: ResetCode::RefusedStream as u32 }).await;
        }
        self.say(Frame::SynReply { id, fin: false, headers: Headers::new() }).await?;
        let (to, pieces) = mpsc::channel(WAITING_PIECES);
        self.streams.insert(id, (!fin).then_some(to));
        let outgoing = Outgoing { id, writer: self.writer.clone() };
        let stream = Stream { id, headers, incoming: Incoming(pieces), outgoing };
        self.opened.send(stream).await.map_err(|_| SessionEnded)
    }

    async fn say(&self, frame: Frame) -> Result<(), SessionEnded> {
        self.writer.send(Order::Send(frame)).await.map_err(|_| SessionEnded)
    }
}

async fn write(mut to: impl AsyncWrite + Unpin, mut orders: mpsc::Receiver<Order>) {
    let mut encoder = Encoder::default();
    while let Some(order) = orders.recv().await {
        let written = match order {
            Order::Send(frame) => {
                let written = to.write_all(&encoder.encode(&frame)).await;
                // What waits already goes out with it.
                if written.is_ok() && orders.is_empty() { to.flush().await } else { written }
            }
            Order::Close(done) => {
                let bye = Frame::GoAway { last: StreamId(0), status: 0 };
                // A client that is gone need not be told.
                let _ = to.write_all(&encoder.encode(&bye)).await;
                let _ = to.flush().await;
                let _ = to.shutdown().await;
                let _ = done.send(());
                return;
            }
        };
        if written.is_err() {
            return;
        }
    }
}
