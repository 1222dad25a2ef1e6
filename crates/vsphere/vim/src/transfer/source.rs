use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use futures_util::{TryStreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Body;
use crate::transport::full_body;

/// Something that can be sent as often as it takes: each try begins at the start.
pub trait UploadSource: Send + Sync {
    /// In bytes. What is sent must have exactly so many.
    fn length(&self) -> u64;

    /// The content from its start.
    fn open(&self) -> Body;
}

impl UploadSource for Bytes {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn open(&self) -> Body {
        full_body(self.clone())
    }
}

/// A file on this machine.
#[derive(Debug, Clone)]
pub struct FileSource {
    path: PathBuf,
    length: u64,
}

/// What is read at once: large enough for a fast disk, small enough to show progress.
const CHUNK: usize = 256 << 10;

impl FileSource {
    /// Reads the size; the file is opened when it is sent.
    pub async fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let length = tokio::fs::metadata(&path).await?.len();
        Ok(Self { path, length })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl UploadSource for FileSource {
    fn length(&self) -> u64 {
        self.length
    }

    fn open(&self) -> Body {
        let path = self.path.clone();
        let chunks =
            stream::once(async move { File::open(path).await }).map_ok(chunks).try_flatten();
        StreamBody::new(chunks.map_ok(Frame::data)).boxed()
    }
}

/// Anything that can be read from its start again and again, such as a file of another server that is passed on. No more than a
/// chunk of it is in memory at a time.
pub struct ReaderSource<F> {
    length: u64,
    open: F,
}

impl<F> ReaderSource<F> {
    /// `open` begins at the start each time it is called; it is called once per try.
    pub fn new<O, R>(length: u64, open: F) -> Self
    where
        F: Fn() -> O + Send + Sync,
        O: Future<Output = io::Result<R>> + Send + Sync + 'static,
        R: AsyncRead + Send + Sync + Unpin + 'static,
    {
        Self { length, open }
    }
}

impl<F> fmt::Debug for ReaderSource<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderSource").field("length", &self.length).finish_non_exhaustive()
    }
}

impl<F, O, R> UploadSource for ReaderSource<F>
where
    F: Fn() -> O + Send + Sync,
    O: Future<Output = io::Result<R>> + Send + Sync + 'static,
    R: AsyncRead + Send + Sync + Unpin + 'static,
{
    fn length(&self) -> u64 {
        self.length
    }

    fn open(&self) -> Body {
        let chunks = stream::once((self.open)()).map_ok(chunks).try_flatten();
        StreamBody::new(chunks.map_ok(Frame::data)).boxed()
    }
}

fn chunks<R: AsyncRead + Unpin>(reader: R) -> impl futures_util::Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(reader, |mut reader| async move {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = reader.read_buf(&mut chunk).await?;
        Ok((read > 0).then(|| (chunk.freeze(), reader)))
    })
}
