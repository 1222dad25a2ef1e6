//! File contents on their way out, without holding them whole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;

use crate::door::Body;

const CHUNK: usize = 64 << 10;

/// A part of a file's content: `length` bytes after `offset`.
#[derive(Debug)]
pub(crate) struct FileBody {
    source: Source,
    left: u64,
}

#[derive(Debug)]
enum Source {
    Zeros,
    Chunks(std::vec::IntoIter<Bytes>),
    File(File),
}

impl FileBody {
    pub(crate) fn zeros(length: u64) -> Self {
        Self { source: Source::Zeros, left: length }
    }

    pub(crate) fn of_chunks(chunks: &[Bytes], offset: u64, length: u64) -> Self {
        let mut skip = offset;
        let mut rest = Vec::new();
        for chunk in chunks {
            let size = chunk.len() as u64;
            if skip >= size {
                skip -= size;
            } else {
                rest.push(chunk.slice(usize::try_from(skip).unwrap_or(chunk.len())..));
                skip = 0;
            }
        }
        Self { source: Source::Chunks(rest.into_iter()), left: length }
    }

    pub(crate) fn of_file(path: &Path, offset: u64, length: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { source: Source::File(file), left: length })
    }

    pub(crate) fn boxed(self) -> Body {
        BodyExt::boxed(self)
    }

    fn next(&mut self) -> io::Result<Option<Bytes>> {
        static ZEROS: [u8; CHUNK] = [0; CHUNK];
        if self.left == 0 {
            return Ok(None);
        }
        let most = usize::try_from(self.left).unwrap_or(CHUNK).min(CHUNK);
        let chunk = match &mut self.source {
            Source::Zeros => Bytes::from_static(&ZEROS[..most]),
            Source::Chunks(chunks) => {
                let Some(chunk) = chunks.next() else { return Ok(None) };
                let keep = usize::try_from(self.left).unwrap_or(chunk.len()).min(chunk.len());
                chunk.slice(..keep)
            }
            Source::File(file) => {
                let mut buffer = vec![0; most];
                let read = file.read(&mut buffer)?;
                buffer.truncate(read);
                Bytes::from(buffer)
            }
        };
        if chunk.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file has become shorter",
            ));
        }
        self.left -= chunk.len() as u64;
        Ok(Some(chunk))
    }
}

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.next().map(|chunk| chunk.map(Frame::data)).transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.left)
    }
}
