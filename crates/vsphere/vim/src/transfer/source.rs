use std::io;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use futures_util::{TryStreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

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

fn chunks(file: File) -> impl futures_util::Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(file, |mut file| async move {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = file.read_buf(&mut chunk).await?;
        Ok((read > 0).then(|| (chunk.freeze(), file)))
    })
}
