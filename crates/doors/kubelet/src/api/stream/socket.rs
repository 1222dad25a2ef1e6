//! Channels in a WebSocket: the first byte of a message names its channel.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use roost_spdy::SessionEnded;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::{Chosen, PIPE, READ};

/// Closes the channel that the next byte names.
const CLOSE: u8 = 255;
/// Clients send at most 32 KiB at once; base64 and other clients may need some more.
const MAX_MESSAGE: usize = 1 << 20;
const WAITING: usize = 16;

enum Order {
    Send(Message),
    Close(oneshot::Sender<()>),
}

/// A WebSocket that carries numbered channels.
#[derive(Debug)]
pub(in crate::api) struct Socket {
    to: mpsc::Sender<Order>,
    ended: watch::Receiver<bool>,
    base64: bool,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Send(_) => "Send",
            Self::Close(_) => "Close",
        })
    }
}

/// Where messages of the client's channels go, by number.
pub(in crate::api) type Lanes = Vec<Option<mpsc::Sender<Bytes>>>;

/// One channel towards the client.
#[derive(Debug, Clone)]
pub(in crate::api) struct Lane {
    channel: u8,
    base64: bool,
    to: mpsc::Sender<Order>,
}

impl Lane {
    /// An empty message is sent too: it tells that the channel is there.
    pub(super) async fn send(&self, data: Bytes) -> Result<(), SessionEnded> {
        let message = if self.base64 {
            Message::text(format!("{}{}", self.channel, STANDARD.encode(&data)))
        } else {
            let mut message = Vec::with_capacity(data.len() + 1);
            message.push(self.channel);
            message.extend_from_slice(&data);
            Message::binary(message)
        };
        self.to.send(Order::Send(message)).await.map_err(|_| SessionEnded)
    }
}

impl Socket {
    pub(in crate::api) async fn serve<S>(connection: S, chosen: Chosen, mut lanes: Lanes) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = open(connection).await;
        let (sink, mut messages) = stream.split();
        let (to, orders) = mpsc::channel(WAITING);
        let (ending, ended) = watch::channel(false);
        let base64 = chosen.is_base64();
        let mut tasks = JoinSet::new();
        tasks.spawn(write(sink, orders));
        tasks.spawn(async move {
            while let Some(message) = next(&mut messages).await {
                take(&message, base64, &mut lanes).await;
            }
            ending.send_replace(true);
        });
        Self { to, ended, base64, tasks }
    }

    pub(in crate::api) fn lane(&self, channel: u8) -> Lane {
        Lane { channel, base64: self.base64, to: self.to.clone() }
    }

    pub(in crate::api) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    /// Sends what is still to be sent, and closes.
    pub(in crate::api) async fn close(mut self) {
        let (done, closed) = oneshot::channel();
        if self.to.send(Order::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
        self.tasks.shutdown().await;
    }
}

async fn open<S: AsyncRead + AsyncWrite + Unpin>(connection: S) -> WebSocketStream<S> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

/// The next message with content. Pings are answered by the library when the next message is read.
async fn next<S>(messages: &mut SplitStream<WebSocketStream<S>>) -> Option<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match messages.next().await {
            Some(Ok(Message::Binary(data))) => return Some(data),
            Some(Ok(Message::Text(text))) => return Some(text.into()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            Some(Ok(_)) => {}
        }
    }
}

async fn take(message: &Bytes, base64: bool, lanes: &mut Lanes) {
    let Some((first, rest)) = message.split_first() else { return };
    let (channel, data) = if base64 {
        let Ok(data) = STANDARD.decode(rest) else { return };
        (first.wrapping_sub(b'0'), Bytes::from(data))
    } else {
        (*first, message.slice(1..))
    };
    if channel == CLOSE {
        if let Some(lane) = data.first().and_then(|closed| lanes.get_mut(usize::from(*closed))) {
            *lane = None;
        }
        return;
    }
    if let Some(lane) = lanes.get(usize::from(channel)).and_then(Option::as_ref)
        && !data.is_empty()
    {
        // Whoever listened may have heard enough.
        let _ = lane.send(data).await;
    }
}

async fn write<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut orders: mpsc::Receiver<Order>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(order) = orders.recv().await {
        match order {
            Order::Send(message) => {
                if sink.send(message).await.is_err() {
                    return;
                }
            }
            Order::Close(done) => {
                let frame = CloseFrame { code: 1000.into(), reason: "".into() };
                let _ = sink.send(Message::Close(Some(frame))).await;
                let _ = done.send(());
                return;
            }
        }
    }
}

/// A connection of SPDY whose bytes come and go in binary messages, cut anywhere, and what carries them.
pub(in crate::api) async fn carry_spdy<S>(
    connection: S,
) -> (DuplexStream, impl Future<Output = ()> + Send + 'static)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (near, far) = tokio::io::duplex(PIPE);
    let (mut sink, mut messages) = open(connection).await.split();
    let (mut reads, mut writes) = tokio::io::split(far);
    let carry = async move {
        let inward = async {
            // An empty message is no end: it is the body of an empty frame.
            while let Some(data) = next(&mut messages).await {
                if writes.write_all(&data).await.is_err() {
                    return;
                }
            }
            let _ = writes.shutdown().await;
        };
        let outward = async {
            let mut buffer = vec![0; READ];
            while let Ok(count @ 1..) = reads.read(&mut buffer).await {
                let data = Bytes::copy_from_slice(&buffer[..count]);
                if sink.send(Message::Binary(data)).await.is_err() {
                    return;
                }
            }
            let frame = CloseFrame { code: 1000.into(), reason: "".into() };
            let _ = sink.send(Message::Close(Some(frame))).await;
        };
        tokio::join!(inward, outward);
    };
    (near, carry)
}
