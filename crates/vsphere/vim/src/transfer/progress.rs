use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::watch;

use crate::Body;

/// How far a transfer has come. It starts over when the transfer does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferProgress {
    pub moved: u64,
    pub total: Option<u64>,
}

/// Why the local side of a transfer failed, for whoever only sees that the body broke off.
#[derive(Debug, Clone, Default)]
pub(super) struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: &io::Error) {
        let copy = io::Error::new(error.kind(), error.to_string());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
    }
}

/// A body that tells how much of it has been taken, and that is as long as it said.
#[derive(Debug)]
pub(super) struct CountedBody {
    inner: Body,
    moved: u64,
    total: u64,
    progress: watch::Sender<TransferProgress>,
    failure: Failure,
}

impl CountedBody {
    pub(super) fn new(
        inner: Body,
        total: u64,
        progress: watch::Sender<TransferProgress>,
        failure: Failure,
    ) -> Self {
        Self { inner, moved: 0, total, progress, failure }
    }

    fn fail(&self, error: io::Error) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.failure.set(&error);
        Poll::Ready(Some(Err(error)))
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(frame) => frame,
        };
        match frame {
            Some(Ok(frame)) => {
                self.moved += frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.moved > self.total {
                    return self
                        .fail(io::Error::other("the file has grown since its size was read"));
                }
                let now = TransferProgress { moved: self.moved, total: Some(self.total) };
                self.progress.send_replace(now);
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => self.fail(error),
            None if self.moved < self.total => self.fail(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file has shrunk since its size was read",
            )),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.moved == self.total && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.total - self.moved)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::UploadSource;

    fn counted(
        content: &'static str,
        total: u64,
    ) -> (CountedBody, watch::Receiver<TransferProgress>, Failure) {
        let (sender, receiver) = watch::channel(TransferProgress::default());
        let failure = Failure::default();
        let body = Bytes::from_static(content.as_bytes()).open();
        (CountedBody::new(body, total, sender, failure.clone()), receiver, failure)
    }

    #[tokio::test]
    async fn what_is_taken_is_counted() {
        let (body, progress, _) = counted("123456789", 9);
        assert_eq!(body.size_hint().exact(), Some(9));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "123456789");
        assert_eq!(*progress.borrow(), TransferProgress { moved: 9, total: Some(9) });
    }

    #[tokio::test]
    async fn a_file_that_changed_its_size_breaks_off_and_says_why() {
        for (total, why) in [(8, "grown"), (10, "shrunk")] {
            let (body, _progress, failure) = counted("123456789", total);
            assert!(body.collect().await.is_err());
            assert!(failure.take().unwrap().to_string().contains(why));
        }
    }
}
