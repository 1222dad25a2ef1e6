use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{Request, StatusCode};
use tokio::time::{self, Instant, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{as_io, read};
use crate::{Socket, SocketClosed, SocketError, SocketPeer};

/// Frames that may wait for the other side of the channel.
const CAPACITY: usize = 64;
/// A connection whose other end vanished says nothing by itself, so it is asked.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Three pings without any frame in return.
const SILENCE: Duration = Duration::from_secs(90);
/// An event that names a job has a few hundred bytes.
const MAX_EVENT_BYTES: usize = 4 << 20;
/// No code in a closing frame, in the numbers of RFC 6455.
const NO_CODE: u16 = 1005;

pub(super) async fn open(
    client: reqwest::Client,
    mut request: Request<()>,
) -> Result<Socket, SocketError> {
    let key = generate_key();
    let headers = request.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    let value = HeaderValue::try_from(&key).map_err(io::Error::other)?;
    headers.insert(SEC_WEBSOCKET_KEY, value);
    let request = reqwest::Request::try_from(request.map(|()| Bytes::new())).map_err(as_io)?;
    let answer = client.execute(request).await.map_err(as_io)?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(SocketError::Refused(read(answer).await?));
    }
    let accepted = answer.headers().get(SEC_WEBSOCKET_ACCEPT);
    if accepted
        .is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err(io::Error::other("the server's websocket handshake is wrong").into());
    }
    let upgraded = answer.upgrade().await.map_err(as_io)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_EVENT_BYTES))
        .max_frame_size(Some(MAX_EVENT_BYTES));
    let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    let (socket, peer) = Socket::pair(CAPACITY);
    tokio::spawn(pump(stream, peer));
    Ok(socket)
}

/// Moves frames between the connection and the channels until either ends.
async fn pump(mut stream: WebSocketStream<reqwest::Upgraded>, mut peer: SocketPeer) {
    let mut pings = time::interval(PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings.reset();
    let mut heard = Instant::now();
    let closed = loop {
        tokio::select! {
            frame = stream.next() => {
                heard = Instant::now();
                match frame {
                    Some(Ok(Message::Text(text))) => {
                        if peer.outgoing.send(Ok(text.as_str().to_owned())).await.is_err() {
                            break None;
                        }
                    }
                    Some(Ok(Message::Close(frame))) => break Some(frame.map_or(
                        SocketClosed { code: NO_CODE, reason: String::new() },
                        |frame| SocketClosed { code: frame.code.into(), reason: frame.reason.as_str().to_owned() },
                    )),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break Some(broken(&error)),
                    None => break Some(SocketClosed::broken("the connection ended")),
                }
            }
            text = peer.incoming.recv() => match text {
                Some(text) => {
                    if let Err(error) = stream.send(Message::text(text)).await {
                        break Some(broken(&error));
                    }
                }
                None => break None,
            },
            _ = pings.tick() => {
                if heard.elapsed() >= SILENCE {
                    break Some(SocketClosed::broken("the server does not answer pings"));
                }
                if let Err(error) = stream.send(Message::Ping(Bytes::new())).await {
                    break Some(broken(&error));
                }
            }
            () = peer.outgoing.closed() => break None,
        }
    };
    match closed {
        // Whoever held the socket may have gone meanwhile.
        Some(closed) => drop(peer.outgoing.send(Err(closed)).await),
        None => drop(stream.close(None).await),
    }
}

fn broken(error: &Error) -> SocketClosed {
    match error {
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) | Error::ConnectionClosed => {
            SocketClosed::broken("the connection ended without a closing frame")
        }
        error => SocketClosed::broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{HttpSettings, HttpTransport, Transport as _};

    /// Answers the handshake, then sends one text of so many bytes. Says how many of them were taken.
    async fn send_text(mut stream: TcpStream, length: usize) -> usize {
        let mut asked = vec![0; 4096];
        let read = stream.read(&mut asked).await.unwrap();
        let asked = str::from_utf8(&asked[..read]).unwrap();
        let key = asked
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
            .unwrap()
            .1;
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            derive_accept_key(key.as_bytes())
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        // A whole text frame whose length has eight bytes.
        stream.write_all(&[0x81, 127]).await.unwrap();
        stream.write_all(&(length as u64).to_be_bytes()).await.unwrap();
        let mut sent = 0;
        while sent < length && stream.write_all(&[b' '; 1 << 13]).await.is_ok() {
            sent += 1 << 13;
        }
        sent
    }

    /// A server that announces an endless event must not fill the memory.
    #[tokio::test]
    async fn an_event_is_read_up_to_a_few_megabytes() {
        for (length, is_taken) in [(MAX_EVENT_BYTES, true), (60 << 20, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/ws", listener.local_addr().unwrap());
            let server = tokio::spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                send_text(stream, length).await
            });
            let transport = HttpTransport::new(&HttpSettings::default()).unwrap();
            let request = Request::get(url).body(()).unwrap();
            let mut socket = transport.websocket(request).await.unwrap();
            match socket.incoming.recv().await.unwrap() {
                Ok(text) => assert!(is_taken && text.len() == length, "{}", text.len()),
                Err(closed) => {
                    assert!(!is_taken && closed.reason.contains("too long"), "{closed:?}");
                }
            }
            drop(socket);
            let sent = server.await.unwrap();
            assert!(is_taken || sent < length, "it is not read to its end: {sent}");
        }
    }
}
