//! From the registry to the runtime: streamed, verified while it passes, resumed where it broke.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{sleep, timeout};

use super::archive::{self, ENVELOPE, Envelope};
use super::blob::{Digest, Hash};
use super::client::Registry;
use super::manifest::{
    ArtifactKind, Descriptor, Manifest, ManifestError, Reference, SNAPSHOT_CONFIG, SnapshotConfig,
    is_known_layer,
};
use super::stream::{Sender, TransferError, channel};
use super::tar;
use crate::runtime::Input;

/// A connection that delivers nothing for this long is taken for dead and resumed.
const SILENCE: Duration = Duration::from_mins(1);
/// Times that one blob may break without a byte of progress.
const BREAKS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// What the description of a snapshot begins with that was pulled, so that it can be pulled again.
const PULLED: &str = "pulled from";

impl Registry {
    /// The snapshot as an archive for `snapshot import`. The stream fails where something is missing, cut or wrong, so an importer that
    /// sees its end has the whole of it.
    pub fn pull_snapshot(&self, from: Reference, local_name: String) -> Input {
        let registry = self.clone();
        let (sender, reader) = channel();
        tokio::spawn(async move {
            let sent = registry.send_snapshot(&from, &local_name, &sender).await;
            sender.finish(sent).await;
        });
        Box::new(reader)
    }

    /// The disk of a cloud image, its parts one after the other.
    pub fn pull_disk(&self, from: Reference) -> Input {
        let registry = self.clone();
        let (sender, reader) = channel();
        tokio::spawn(async move {
            let sent = registry.send_disk(&from, &sender).await;
            sender.finish(sent).await;
        });
        Box::new(reader)
    }

    /// What a reference is; `None` if the registry does not have it. An index is followed to this machine's child.
    pub async fn kind_of(&self, from: &Reference) -> Result<Option<ArtifactKind>, TransferError> {
        Ok(self.resolve(from).await?.map(|manifest| manifest.kind()))
    }

    async fn resolve(&self, from: &Reference) -> Result<Option<Manifest>, TransferError> {
        let Some(manifest) = self.manifest(&from.repository, &from.tag).await? else {
            return Ok(None);
        };
        if manifest.kind() != ArtifactKind::Index {
            return Ok(Some(manifest));
        }
        let child = manifest.child().map_err(|source| unusable(from, source))?;
        Ok(self.manifest(&from.repository, child.digest.as_str()).await?)
    }

    async fn found(&self, from: &Reference) -> Result<Manifest, TransferError> {
        let missing = || super::RegistryError::NotFound {
            method: reqwest::Method::GET,
            url: format!("{}:{}", from.repository, from.tag),
        };
        Ok(self.resolve(from).await?.ok_or_else(missing)?)
    }

    async fn send_snapshot(
        &self,
        from: &Reference,
        name: &str,
        to: &Sender,
    ) -> Result<(), TransferError> {
        let unusable = |source| unusable(from, source);
        let manifest = self.found(from).await?;
        if manifest.kind() != ArtifactKind::Snapshot {
            return Err(unusable(ManifestError::NotASnapshot(manifest.kind())));
        }
        let config = manifest.config.clone().unwrap_or_default();
        if config.media_type != SNAPSHOT_CONFIG {
            return Err(unusable(ManifestError::UnknownConfig(config.media_type)));
        }
        // Everything that can be refused is refused before the first byte.
        for layer in &manifest.layers {
            let file = layer.title().ok_or_else(|| unusable(ManifestError::NoTitle))?;
            if !is_known_layer(&layer.media_type) {
                let (file, media_type) = (file.to_owned(), layer.media_type.clone());
                return Err(unusable(ManifestError::UnknownLayer { file, media_type }));
            }
        }
        let text = self.small_blob(&from.repository, &config.digest).await?;
        check("the configuration", &config, &Digest::of(&text), text.len() as u64)?;
        let unreadable = |source| TransferError::Config {
            repository: from.repository.clone(),
            tag: from.tag.clone(),
            source,
        };
        let config: SnapshotConfig = serde_json::from_slice(&text).map_err(unreadable)?;
        let described = format!("{PULLED} {}:{}", from.repository, from.tag);
        let envelope = Envelope::from_config(&config, name)
            .map(|envelope| envelope.described(&described))
            .and_then(|envelope| envelope.to_text())
            .map_err(unreadable)?;
        send_file(ENVELOPE, envelope.into(), to).await?;
        self.progress.expect(manifest.layers.iter().map(|layer| layer.size).sum());
        for layer in &manifest.layers {
            let file = layer.title().unwrap_or_default();
            let entry =
                archive::entry(file, layer.size, config.files.get(file)).map_err(unusable)?;
            to.send(tar::header(&entry).into()).await?;
            self.send_blob(&from.repository, file, layer, to).await?;
            to.send(zeros(tar::padding(layer.size))).await?;
        }
        to.send(tar::end().into()).await
    }

    async fn send_disk(&self, from: &Reference, to: &Sender) -> Result<(), TransferError> {
        let manifest = self.found(from).await?;
        let layers = manifest.disk_layers().map_err(|source| unusable(from, source))?;
        self.progress.expect(layers.iter().map(|layer| layer.size).sum());
        for layer in layers {
            let file = layer.title().unwrap_or("disk");
            self.send_blob(&from.repository, file, layer, to).await?;
        }
        Ok(())
    }

    /// One blob, resumed where it breaks, with its size and digest checked at the end.
    async fn send_blob(
        &self,
        repository: &str,
        file: &str,
        layer: &Descriptor,
        to: &Sender,
    ) -> Result<(), TransferError> {
        let mut hash = Hash::default();
        let mut breaks = 0;
        while hash.size < layer.size {
            let before = hash.size;
            match self.send_from(repository, layer, &mut hash, to).await {
                Ok(()) if hash.size == layer.size => break,
                Err(TransferError::Registry(error)) => {
                    tracing::warn!(
                        file,
                        at = hash.size,
                        "a download broke and is resumed: {error}"
                    );
                }
                // The server ended the answer early and said nothing.
                Ok(()) => {
                    tracing::warn!(file, at = hash.size, "a download ended early and is resumed");
                }
                Err(error) => return Err(error),
            }
            breaks = if hash.size > before { 0 } else { breaks + 1 };
            if breaks >= BREAKS {
                return Err(TransferError::Size {
                    file: file.to_owned(),
                    wanted: layer.size,
                    got: hash.size,
                });
            }
            sleep(PAUSE * (breaks + 1)).await;
        }
        let size = hash.size;
        check(file, layer, &hash.finish(), size)
    }

    async fn send_from(
        &self,
        repository: &str,
        layer: &Descriptor,
        hash: &mut Hash,
        to: &Sender,
    ) -> Result<(), TransferError> {
        let (mut source, is_partial) = self.blob(repository, &layer.digest, hash.size).await?;
        // A registry without ranges begins anew; what was sent already is read over.
        let mut skip = if is_partial { 0 } else { hash.size };
        let broken = |source: reqwest::Error| super::RegistryError::Http {
            method: reqwest::Method::GET,
            url: layer.digest.to_string(),
            source: source.without_url(),
        };
        loop {
            let silent = || super::RegistryError::Silent {
                method: reqwest::Method::GET,
                url: layer.digest.to_string(),
                after: SILENCE,
            };
            let piece = timeout(SILENCE, source.piece()).await.map_err(|_| silent())?;
            let Some(mut piece) = piece.map_err(broken)? else { return Ok(()) };
            let over = usize::try_from(skip).unwrap_or(usize::MAX).min(piece.len());
            skip -= over as u64;
            let piece = piece.split_off(over);
            let room = layer.size - hash.size;
            if piece.len() as u64 > room {
                let got = hash.size + piece.len() as u64;
                return Err(TransferError::Size {
                    file: layer.digest.to_string(),
                    wanted: layer.size,
                    got,
                });
            }
            hash.update(&piece);
            self.progress.add(piece.len() as u64);
            to.send(piece).await?;
        }
    }
}

fn unusable(from: &Reference, source: ManifestError) -> TransferError {
    TransferError::Manifest { repository: from.repository.clone(), tag: from.tag.clone(), source }
}

fn check(
    file: &str,
    promised: &Descriptor,
    digest: &Digest,
    size: u64,
) -> Result<(), TransferError> {
    if size != promised.size {
        return Err(TransferError::Size {
            file: file.to_owned(),
            wanted: promised.size,
            got: size,
        });
    }
    if *digest != promised.digest {
        let (wanted, got) = (promised.digest.to_string(), digest.to_string());
        return Err(TransferError::Digest { file: file.to_owned(), wanted, got });
    }
    Ok(())
}

async fn send_file(name: &str, content: Bytes, to: &Sender) -> Result<(), TransferError> {
    let size = content.len() as u64;
    let entry = tar::Entry { name: name.to_owned(), size, mode: 0o644, ..tar::Entry::default() };
    to.send(tar::header(&entry).into()).await?;
    to.send(content).await?;
    to.send(zeros(tar::padding(size))).await
}

fn zeros(count: u64) -> Bytes {
    Bytes::from(vec![0; usize::try_from(count).unwrap_or_default()])
}
