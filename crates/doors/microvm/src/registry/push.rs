//! From the runtime to the registry: each file of the archive goes up while it is read. Nothing is kept on disk.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use super::archive::{self, ENVELOPE, Envelope};
use super::blob::{Digest, Hash};
use super::client::Registry;
use super::manifest::{
    BASE_IMAGE, CREATED, Descriptor, Manifest, OCI_MANIFEST, Reference, SNAPSHOT, SNAPSHOT_CONFIG,
    TITLE, layer_type,
};
use super::stream::TransferError;
use super::tar;
use crate::runtime::Input;

/// Sent in one call and held until it is answered.
const PIECE: usize = 8 * 1024 * 1024;
/// The envelope is a small JSON file.
const LARGEST_ENVELOPE: u64 = 16 * 1024 * 1024;

impl Registry {
    /// Puts an exported snapshot under a tag. The tag appears last, when all that it names is there.
    pub async fn push_snapshot(
        &self,
        to: &Reference,
        base_image: Option<&str>,
        archive: Input,
        now: Timestamp,
    ) -> Result<Digest, TransferError> {
        let repository = &to.repository;
        let mut reader = tar::Reader::new(archive);
        let mut envelope = None;
        let mut layers = Vec::new();
        let mut files = BTreeMap::new();
        while let Some(entry) = reader.next().await.map_err(TransferError::Archive)? {
            if entry.name == ENVELOPE {
                envelope = Some(self.read_envelope(to, &entry, &mut reader).await?);
                continue;
            }
            files.insert(entry.name.clone(), archive::detail(&entry));
            let digest = self.push_file(repository, &mut reader).await?;
            layers.push(Descriptor {
                media_type: layer_type(&entry.name).to_owned(),
                digest,
                size: entry.size,
                annotations: [(TITLE.to_owned(), entry.name)].into(),
                platform: None,
            });
        }
        let missing =
            || TransferError::Archive(std::io::Error::other("the archive has no snapshot.json"));
        let envelope = envelope.ok_or_else(missing)?;
        let config = envelope
            .to_config(files, now.to_string())
            .and_then(|config| serde_json::to_vec(&config))
            .map_err(|source| unreadable(to, source))?;
        let size = config.len() as u64;
        let digest = self.put_small_blob(repository, config.into()).await?;
        let config = Descriptor {
            media_type: SNAPSHOT_CONFIG.to_owned(),
            digest,
            size,
            ..Descriptor::default()
        };
        let mut annotations = BTreeMap::from([(CREATED.to_owned(), now.to_string())]);
        if let Some(image) = base_image {
            annotations.insert(BASE_IMAGE.to_owned(), image.to_owned());
        }
        let manifest = Manifest {
            schema_version: 2,
            media_type: OCI_MANIFEST.to_owned(),
            artifact_type: SNAPSHOT.to_owned(),
            config: Some(config),
            layers,
            annotations,
            ..Manifest::default()
        };
        Ok(self.put_manifest(repository, &to.tag, &manifest).await?)
    }

    async fn read_envelope(
        &self,
        to: &Reference,
        entry: &tar::Entry,
        reader: &mut tar::Reader<Input>,
    ) -> Result<Envelope, TransferError> {
        if entry.size > LARGEST_ENVELOPE {
            return Err(TransferError::Archive(std::io::Error::other(
                "snapshot.json is too large",
            )));
        }
        let mut text = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = reader.read(&mut buffer).await.map_err(TransferError::Archive)?;
            if count == 0 {
                return serde_json::from_slice(&text).map_err(|source| unreadable(to, source));
            }
            text.extend_from_slice(&buffer[..count]);
        }
    }

    async fn push_file(
        &self,
        repository: &str,
        reader: &mut tar::Reader<Input>,
    ) -> Result<Digest, TransferError> {
        let mut hash = Hash::default();
        let mut upload = self.begin_upload(repository).await?;
        loop {
            let piece = fill(reader).await.map_err(TransferError::Archive)?;
            if piece.is_empty() {
                break;
            }
            let (from, length) = (hash.size, piece.len() as u64);
            hash.update(&piece);
            upload = upload.append(piece, from, length).await?;
            self.progress.add(length);
        }
        let digest = hash.finish();
        upload.finish(&digest).await?;
        Ok(digest)
    }
}

/// As much of the current file as one call sends.
async fn fill(reader: &mut tar::Reader<Input>) -> std::io::Result<Bytes> {
    let mut piece = BytesMut::zeroed(PIECE);
    let mut filled = 0;
    while filled < PIECE {
        let count = reader.read(&mut piece[filled..]).await?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    piece.truncate(filled);
    Ok(piece.freeze())
}

fn unreadable(to: &Reference, source: serde_json::Error) -> TransferError {
    TransferError::Config { repository: to.repository.clone(), tag: to.tag.clone(), source }
}
