use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use ring::digest::{Context as Digest, SHA256};
use roost_vim::Body;

/// What passed through, by now.
#[derive(Clone)]
pub(super) struct Seen(Arc<Mutex<(Digest, u64)>>);

impl Seen {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new((Digest::new(&SHA256), 0))))
    }

    pub(super) fn add(&self, chunk: &[u8]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0.update(chunk);
        seen.1 += chunk.len() as u64;
    }

    /// Digest and length.
    pub(super) fn finish(&self) -> (String, u64) {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (crate::names::hex(seen.0.clone().finish().as_ref()), seen.1)
    }
}

/// A body that is hashed on its way.
pub(super) struct Hashed {
    inner: Body,
    seen: Seen,
}

impl Hashed {
    pub(super) fn new(inner: Body, seen: Seen) -> Self {
        Self { inner, seen }
    }
}

impl HttpBody for Hashed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(chunk) = frame.data_ref()
        {
            self.seen.add(chunk);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }
}
