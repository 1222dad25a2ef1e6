use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Response, header};
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;

use super::TransferError;
use crate::Body;

/// A file on its way to us.
#[derive(Debug)]
pub struct Download {
    length: Option<u64>,
    got: u64,
    body: Body,
    silence: Duration,
}

impl Download {
    pub(super) fn new(response: Response<Body>, silence: Duration) -> Self {
        let length = response.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        Self { length, got: 0, body: response.into_body(), silence }
    }

    /// As far as the server told.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The next piece; `None` at the end, which is an error if it comes too early.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, TransferError> {
        loop {
            let frame = tokio::time::timeout(self.silence, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| TransferError::Silent { after: self.silence })?
            else {
                return match self.length {
                    Some(wanted) if wanted != self.got => {
                        Err(TransferError::Short { got: self.got, wanted })
                    }
                    _ => Ok(None),
                };
            };
            let frame = frame.map_err(|source| TransferError::Connection { source })?;
            if let Ok(data) = frame.into_data() {
                self.got += data.len() as u64;
                return Ok(Some(data));
            }
        }
    }

    /// All of it in memory, if it has no more than `limit` bytes.
    pub async fn bytes(mut self, limit: u64) -> Result<Bytes, TransferError> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if self.got > limit {
                return Err(TransferError::TooLarge { limit });
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// All of it in a local file, which is replaced. Returns the number of bytes.
    pub async fn save(mut self, path: impl AsRef<Path>) -> Result<u64, TransferError> {
        let local = |source| TransferError::Local { source };
        let mut file = tokio::fs::File::create(path).await.map_err(local)?;
        while let Some(chunk) = self.chunk().await? {
            file.write_all(&chunk).await.map_err(local)?;
        }
        file.flush().await.map_err(local)?;
        Ok(self.got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UploadSource;

    fn download(content: &'static str, length: Option<u64>) -> Download {
        let mut response = Response::new(Bytes::from_static(content.as_bytes()).open());
        if let Some(length) = length {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        Download::new(response, Duration::from_mins(1))
    }

    #[tokio::test]
    async fn a_download_that_ends_early_is_no_download() {
        let error = download("1234", Some(9)).bytes(100).await.unwrap_err();
        assert!(matches!(error, TransferError::Short { got: 4, wanted: 9 }));
        assert_eq!(download("1234", Some(4)).bytes(100).await.unwrap(), "1234");
        assert_eq!(download("1234", None).bytes(100).await.unwrap(), "1234");
    }

    #[tokio::test]
    async fn what_is_larger_than_allowed_is_refused() {
        let error = download("1234", None).bytes(3).await.unwrap_err();
        assert!(matches!(error, TransferError::TooLarge { limit: 3 }));
    }
}
