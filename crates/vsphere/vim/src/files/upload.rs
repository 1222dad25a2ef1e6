//! Uploading so that a half-written file is never taken for a whole one: to a temporary name beside the target, whose size is
//! looked at before it is moved into place and once more after. A crash on the way leaves the temporary file, which the next
//! upload of the same target overwrites. One uploader per target at a time.

use std::time::Duration;

use roost_supervise::Backoff;
use tokio::sync::watch;

use super::Datastore;
use super::browse::FileKind;
use super::error::{FileError, FileStep};
use super::path::DatastorePath;
use crate::transfer::{Peer, Transfer};
use crate::{Faulted, Remedy, TransferError, TransferProgress, UploadSource};

/// A transfer that fails on its way is sent again from its start, so often.
const TRIES: u32 = 3;
const PAUSE: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(10));

impl Datastore {
    /// Writes a file, in place of what is there, and makes its directory if need be.
    pub async fn upload(
        &self,
        source: &(impl UploadSource + ?Sized),
        path: &DatastorePath,
    ) -> Result<(), FileError> {
        let (progress, _) = watch::channel(TransferProgress::default());
        self.upload_with_progress(source, path, &progress).await
    }

    /// As [`Datastore::upload`], and tells how far it has come.
    pub async fn upload_with_progress(
        &self,
        source: &(impl UploadSource + ?Sized),
        path: &DatastorePath,
        progress: &watch::Sender<TransferProgress>,
    ) -> Result<(), FileError> {
        let temporary = path.with_file_name(&format!(".{}.partial", path.file_name()));
        if !path.parent().path().is_empty() {
            self.make_directory(&path.parent()).await?;
        }
        let moved = async {
            self.send_patiently(source, &temporary, path, progress).await?;
            self.verify(&temporary, source.length()).await?;
            self.move_into_place(&temporary, path, source.length()).await
        };
        if let Err(error) = moved.await {
            // Nobody waits for a file that did not come; if this fails too, the next upload overwrites it.
            if error.remedy() != Remedy::Retry
                && let Err(left) = self.delete(&temporary).await
            {
                tracing::debug!("{temporary} is left behind: {left}");
            }
            return Err(error);
        }
        self.verify(path, source.length()).await
    }

    async fn send_patiently(
        &self,
        source: &(impl UploadSource + ?Sized),
        temporary: &DatastorePath,
        path: &DatastorePath,
        progress: &watch::Sender<TransferProgress>,
    ) -> Result<(), FileError> {
        let failed =
            |source| FileError::Transfer { step: FileStep::Upload, path: path.to_string(), source };
        let uri = self.uri(temporary).map_err(failed)?;
        let transfer =
            Transfer { observer: &self.client, name: "PUT /folder", peer: Peer::Server, uri: &uri };
        let mut tries = 0;
        loop {
            let error = match transfer.put(source, progress).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            tries += 1;
            let is_passing = matches!(error.remedy(), Remedy::Retry | Remedy::Wait);
            if tries == TRIES || !is_passing || matches!(error, TransferError::Local { .. }) {
                return Err(failed(error));
            }
            tracing::warn!("uploading {path} once more: {error}");
            tokio::time::sleep(PAUSE.pause(tries)).await;
        }
    }

    /// A lost reply leaves open whether the file was or will be moved; once the temporary one is gone, it has been.
    async fn move_into_place(
        &self,
        temporary: &DatastorePath,
        path: &DatastorePath,
        length: u64,
    ) -> Result<(), FileError> {
        let mut tries = 0;
        loop {
            let error = match self.move_to(temporary, path).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            tries += 1;
            let is_open = error.fault().is_none() || error.is_fault("FileNotFound");
            if tries == TRIES || !is_open && !error.already_exists() {
                return Err(error);
            }
            if error.already_exists() {
                // A server that does not overwrite although it was asked to.
                self.delete(path).await?;
                continue;
            }
            tokio::time::sleep(PAUSE.pause(tries)).await;
            if !self.exists(temporary).await? {
                return self.verify(path, length).await;
            }
        }
    }

    async fn verify(&self, path: &DatastorePath, wanted: u64) -> Result<(), FileError> {
        match self.stat(path).await? {
            None => Err(FileError::Lost { path: path.to_string() }),
            Some(file) if file.kind == FileKind::Directory => {
                Err(FileError::IsDirectory { path: path.to_string() })
            }
            Some(file) => match file.bytes {
                Some(has) if has != wanted => {
                    Err(FileError::WrongSize { path: path.to_string(), has, wanted })
                }
                _ => Ok(()),
            },
        }
    }
}
