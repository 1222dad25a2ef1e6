use std::io;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use roost_cds::{Socket, SocketClosed, SocketError};
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tracing::debug;

use crate::api::CdsApi;

/// Answers the handshake and leaves the connection to a task.
pub(super) async fn upgrade(
    api: &CdsApi,
    mut request: Request<Incoming>,
    ended: watch::Receiver<()>,
) -> io::Result<Response<Bytes>> {
    let connection = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let Some(key) = parts.headers.get(SEC_WEBSOCKET_KEY).cloned() else {
        let mut refused = Response::new(Bytes::from_static(b"no websocket key"));
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refused);
    };
    let socket = match api.websocket(Request::from_parts(parts, ())).await {
        Ok(socket) => socket,
        Err(SocketError::Refused(answer)) => return Ok(answer),
        Err(SocketError::Io(error)) => return Err(error),
    };
    tokio::spawn(carry(connection, socket, ended));
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes()))
        .body(Bytes::new())
        .map_err(io::Error::other)
}

/// Moves frames between the connection and the in-process websocket until either ends, or the server does.
async fn carry(connection: OnUpgrade, mut socket: Socket, mut ended: watch::Receiver<()>) {
    let stream: WebSocketStream<TokioIo<Upgraded>> = match connection.await {
        Ok(upgraded) => {
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await
        }
        Err(error) => return debug!("a websocket did not open: {error}"),
    };
    let (mut sink, mut frames) = stream.split();
    loop {
        tokio::select! {
            _ = ended.changed() => return,
            frame = frames.next() => match frame {
                Some(Ok(Message::Text(text))) => {
                    if socket.outgoing.send(text.as_str().to_owned()).await.is_err() {
                        return;
                    }
                }
                // Pings are answered by the library when the next frame is read or written.
                Some(Ok(Message::Ping(_))) => drop(sink.flush().await),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            text = socket.incoming.recv() => match text {
                Some(Ok(text)) => {
                    if sink.send(Message::text(text)).await.is_err() {
                        return;
                    }
                }
                // Leaving drops the connection without a closing frame.
                Some(Err(SocketClosed { code: SocketClosed::ABNORMAL, .. })) | None => return,
                Some(Err(SocketClosed { code, reason })) => {
                    let frame = CloseFrame { code: code.into(), reason: reason.into() };
                    drop(sink.send(Message::Close(Some(frame))).await);
                    return;
                }
            },
        }
    }
}
