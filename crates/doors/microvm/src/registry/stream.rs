//! A stream of bytes between two tasks. Unlike a pipe it can end with an error, so that half of something is never taken for the whole.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

use super::client::RegistryError;
use super::manifest::ManifestError;

/// Pieces on their way: a few, so that memory stays small and both sides keep moving.
const PIECES: usize = 8;

/// Why a snapshot or image did not arrive whole.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("asking the registry")]
    Registry(#[from] RegistryError),
    #[error("the manifest of {repository}:{tag} cannot be used")]
    Manifest { repository: String, tag: String, source: ManifestError },
    #[error("the configuration of {repository}:{tag} is not JSON")]
    Config { repository: String, tag: String, source: serde_json::Error },
    #[error("{file} arrived with digest {got}, {wanted} was promised")]
    Digest { file: String, wanted: String, got: String },
    #[error("{file} has {got} bytes, {wanted} were promised")]
    Size { file: String, wanted: u64, got: u64 },
    #[error("the snapshot's archive cannot be read")]
    Archive(#[source] io::Error),
    #[error("whoever took the stream went away")]
    Abandoned,
}

pub(super) fn channel() -> (Sender, Reader) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (Sender(sender), Reader { receiver, current: Bytes::new(), is_whole: false })
}

/// The writing end. Dropping it without [`finish`](Sender::finish) makes the reader fail.
#[derive(Debug)]
pub(super) struct Sender(mpsc::Sender<Piece>);

#[derive(Debug)]
enum Piece {
    Bytes(Bytes),
    End,
    Failed(io::Error),
}

impl Sender {
    pub(super) async fn send(&self, bytes: Bytes) -> Result<(), TransferError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.0.send(Piece::Bytes(bytes)).await.map_err(|_| TransferError::Abandoned)
    }

    pub(super) async fn finish(self, result: Result<(), TransferError>) {
        let piece = match result {
            Ok(()) => Piece::End,
            Err(error) => Piece::Failed(io::Error::other(error)),
        };
        // Nobody reads any more: then nobody needs to know.
        let _ = self.0.send(piece).await;
    }
}

/// The reading end.
#[derive(Debug)]
pub(super) struct Reader {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    is_whole: bool,
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.current.is_empty() {
            if self.is_whole {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.receiver.poll_recv(cx)) {
                Some(Piece::Bytes(bytes)) => self.current = bytes,
                Some(Piece::End) => self.is_whole = true,
                Some(Piece::Failed(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let count = self.current.len().min(to.remaining());
        to.put_slice(&self.current[..count]);
        self.current.advance(count);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_stream_ends_well_or_with_an_error_and_never_just_ends() {
        let (sender, mut reader) = channel();
        sender.send(Bytes::from_static(b"whole")).await.unwrap();
        sender.finish(Ok(())).await;
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "whole");

        let (sender, mut reader) = channel();
        sender.send(Bytes::from_static(b"half")).await.unwrap();
        drop(sender);
        let error = reader.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);

        let (sender, mut reader) = channel();
        sender.finish(Err(TransferError::Abandoned)).await;
        assert!(reader.read_to_end(&mut Vec::new()).await.is_err());
    }
}
