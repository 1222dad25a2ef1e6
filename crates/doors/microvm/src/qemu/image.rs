//! Images: what VMs start from. A disk is fetched or streamed in; a kernel is put there by whoever runs the host.

use std::fs;
use std::path::Path;

use futures_util::TryStreamExt;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Inner;
use super::qmp::pipe;
use super::store::{KERNEL, disk_in};
use crate::error::RuntimeError;
use crate::record::ImageRecord;
use crate::runtime::Input;

const DRAFT: &str = "disk";
const QCOW2: [u8; 4] = *b"QFI\xfb";

impl Inner {
    pub(super) async fn ensure_image(&self, image: &str, force: bool) -> Result<(), RuntimeError> {
        let is_url = image.starts_with("http://") || image.starts_with("https://");
        if self.image(image).is_some() && !(force && is_url) {
            return Ok(());
        }
        let http = self.settings.http.as_ref().filter(|_| is_url);
        let missing = || RuntimeError::ImageNotFound { image: image.to_owned() };
        let http = http.ok_or_else(missing)?;
        let failed = |error: reqwest::Error| RuntimeError::Failed {
            command: format!("fetching {image}"),
            detail: error.without_url().to_string(),
        };
        let answer = http.get(image).send().await.map_err(failed)?;
        let mut body = answer.error_for_status().map_err(failed)?.bytes_stream();
        let draft = self.store.draft(&self.new_id()).map_err(|source| pipe("image", source))?;
        let fresh = draft.folder.join(DRAFT);
        let mut file = File::create(&fresh).await.map_err(|source| pipe("image", source))?;
        while let Some(piece) = body.try_next().await.map_err(failed)? {
            file.write_all(&piece).await.map_err(|source| pipe("image", source))?;
        }
        self.keep_disk(image, &fresh, file).await.map_err(|source| pipe("image", source))
    }

    pub(super) fn image(&self, image: &str) -> Option<ImageRecord> {
        let folder = self.store.image_folder(image);
        let disk = disk_in(&folder).map(|(path, _)| path);
        let file = disk.or_else(|| Some(folder.join(KERNEL)).filter(|path| path.exists()))?;
        let kind = if folder.join(KERNEL).exists() { "kernel" } else { "cloudimg" };
        Some(ImageRecord {
            name: image.to_owned(),
            kind: kind.to_owned(),
            size: fs::metadata(file).ok()?.len(),
            ..ImageRecord::default()
        })
    }

    /// Appears whole or not at all. VMs that run from an older one keep it.
    pub(super) async fn import_image(
        &self,
        image: &str,
        mut disk: Input,
    ) -> Result<(), RuntimeError> {
        let draft = self.store.draft(&self.new_id()).map_err(|source| pipe("image", source))?;
        let fresh = draft.folder.join(DRAFT);
        let written = async {
            let mut file = File::create(&fresh).await?;
            tokio::io::copy(&mut disk, &mut file).await?;
            self.keep_disk(image, &fresh, file).await
        };
        written.await.map_err(|source| pipe("image", source))
    }

    async fn keep_disk(&self, image: &str, fresh: &Path, mut file: File) -> std::io::Result<()> {
        file.flush().await?;
        file.sync_all().await?;
        let mut magic = [0; 4];
        let is_qcow2 =
            File::open(fresh).await?.read_exact(&mut magic).await.is_ok() && magic == QCOW2;
        self.put_disk(image, fresh, if is_qcow2 { "disk.qcow2" } else { "disk.raw" })
    }

    fn put_disk(&self, image: &str, fresh: &Path, name: &str) -> std::io::Result<()> {
        let folder = self.store.image_folder(image);
        fs::create_dir_all(&folder)?;
        for other in ["disk.qcow2", "disk.raw"].into_iter().filter(|other| *other != name) {
            let _ = fs::remove_file(folder.join(other));
        }
        fs::rename(fresh, folder.join(name))
    }
}
