//! Manifests: what an artifact is made of, and what kind of thing it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::blob::Digest;

pub(super) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(super) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub(super) const SNAPSHOT: &str = "application/vnd.cocoonstack.snapshot.v1+json";
const SNAPSHOT_V2: &str = "application/vnd.cocoonstack.snapshot.v2+json";
pub(super) const SNAPSHOT_CONFIG: &str = "application/vnd.cocoonstack.snapshot.config.v1+json";
const OS_IMAGE: &str = "application/vnd.cocoonstack.os-image.v1+json";
const WINDOWS_IMAGE: &str = "application/vnd.cocoonstack.windows-image.v1+json";
const CONTAINER_CONFIGS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];

pub(super) const TITLE: &str = "org.opencontainers.image.title";
pub(super) const CREATED: &str = "org.opencontainers.image.created";
pub(super) const BASE_IMAGE: &str = "cocoonstack.snapshot.baseimage";

/// `repo[:tag]`, split at the first colon. Only names of the configured registry are meant: a host with a port is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub repository: String,
    pub tag: String,
}

impl Reference {
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((repository, tag)) if !repository.is_empty() && !tag.is_empty() => {
                Self { repository: repository.to_owned(), tag: tag.to_owned() }
            }
            Some((repository, _)) if !repository.is_empty() => Self::latest(repository),
            _ => Self::latest(text),
        }
    }

    fn latest(repository: &str) -> Self {
        Self { repository: repository.to_owned(), tag: "latest".to_owned() }
    }

    /// What the snapshot is called on the host.
    pub fn local_name(&self) -> String {
        if self.tag == "latest" {
            self.repository.clone()
        } else {
            format!("{}:{}", self.repository, self.tag)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    pub schema_version: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub artifact_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Descriptor>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Descriptor>,
    /// The children of an index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<Descriptor>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    pub size: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Platform {
    pub architecture: String,
    pub os: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactKind {
    CloudImage,
    Snapshot,
    ContainerImage,
    Index,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("the index names no manifest for linux/amd64 or any other known platform")]
    NoChild,
    #[error("it is {0:?}, not a snapshot")]
    NotASnapshot(ArtifactKind),
    #[error("it is {0:?}, not a cloud image")]
    NotACloudImage(ArtifactKind),
    #[error("its configuration is of type {0:?}, which this version does not know")]
    UnknownConfig(String),
    #[error("a layer has no file name")]
    NoTitle,
    #[error("layer {file} is of type {media_type:?}, which this version does not know")]
    UnknownLayer { file: String, media_type: String },
    #[error("file {0} has a sparse map and no real size, or one that does not fit")]
    BadSparseMap(String),
    #[error("it has no disk")]
    NoDisk,
}

impl Manifest {
    pub fn kind(&self) -> ArtifactKind {
        let config = self.config.as_ref().map_or("", |config| config.media_type.as_str());
        match self.artifact_type.as_str() {
            OS_IMAGE | WINDOWS_IMAGE => ArtifactKind::CloudImage,
            SNAPSHOT | SNAPSHOT_V2 => ArtifactKind::Snapshot,
            _ if CONTAINER_CONFIGS.contains(&config) => ArtifactKind::ContainerImage,
            _ if [OCI_INDEX, DOCKER_LIST].contains(&self.media_type.as_str()) => {
                ArtifactKind::Index
            }
            _ => ArtifactKind::Unknown,
        }
    }

    /// The child of an index for this machine.
    pub(super) fn child(&self) -> Result<&Descriptor, ManifestError> {
        let platform = |child: &&Descriptor, wanted: fn(&Platform) -> bool| {
            child.platform.as_ref().is_some_and(wanted)
        };
        let ours = |p: &Platform| p.os == "linux" && p.architecture == "amd64";
        let known = |p: &Platform| p.architecture != "unknown";
        let mut children = self.manifests.iter();
        let exact = children.clone().find(|child| platform(child, ours));
        exact
            .or_else(|| children.find(|child| platform(child, known)))
            .ok_or(ManifestError::NoChild)
    }

    /// The disk of a cloud image: its parts by name, one after the other.
    pub(super) fn disk_layers(&self) -> Result<Vec<&Descriptor>, ManifestError> {
        if self.kind() != ArtifactKind::CloudImage {
            return Err(ManifestError::NotACloudImage(self.kind()));
        }
        let is_disk = |layer: &&Descriptor| {
            let kind = layer.media_type.strip_suffix(".part").unwrap_or(&layer.media_type);
            ["disk", "windows.disk"].iter().any(|family| {
                ["qcow2", "raw"]
                    .iter()
                    .any(|format| kind == format!("application/vnd.cocoonstack.{family}.{format}"))
            })
        };
        let mut layers: Vec<_> = self.layers.iter().filter(is_disk).collect();
        layers.sort_by_key(|layer| layer.title().unwrap_or_default().to_owned());
        if layers.is_empty() { Err(ManifestError::NoDisk) } else { Ok(layers) }
    }
}

impl Descriptor {
    pub(super) fn title(&self) -> Option<&str> {
        self.annotations.get(TITLE).map(String::as_str).filter(|title| !title.is_empty())
    }
}

/// The media type of a file of a snapshot.
pub(super) fn layer_type(file: &str) -> &'static str {
    match file {
        "config.json" => "application/vnd.cocoonstack.vm.config+json",
        "state.json" => "application/vnd.cocoonstack.vm.state+json",
        "cidata.img" => "application/vnd.cocoonstack.vm.cidata",
        _ if file.starts_with("memory-range") => "application/vnd.cocoonstack.vm.memory",
        _ if has_extension(file, "qcow2") => "application/vnd.cocoonstack.disk.qcow2",
        _ if has_extension(file, "raw") => "application/vnd.cocoonstack.disk.raw",
        _ => "application/octet-stream",
    }
}

fn has_extension(file: &str, extension: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, end)| end == extension)
}

/// Whether a snapshot may hold a layer of this type. What is encoded in a way that we do not know is refused, not passed on.
pub(super) fn is_known_layer(media_type: &str) -> bool {
    ["config.json", "state.json", "cidata.img", "memory-ranges", "x.qcow2", "x.raw", "vmstate"]
        .iter()
        .any(|file| layer_type(file) == media_type)
}

/// The configuration blob of a snapshot. What we do not know of it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotConfig {
    pub schema_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub snapshot_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_digest: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_type: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub image_blob_ids: BTreeMap<String, serde_json::Value>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hypervisor: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub cpu: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub memory: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub storage: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub nics: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub windows: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileDetail>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub created_at: String,
    /// Fields of the snapshot's own record that the fields above have no place for: they would be lost on the way.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileDetail {
    pub mode: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_map: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_size: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_split_at_the_first_colon() {
        for (text, repository, tag, local) in [
            ("repo", "repo", "latest", "repo"),
            ("repo:latest", "repo", "latest", "repo"),
            ("repo:v1", "repo", "v1", "repo:v1"),
            ("org/repo:v1", "org/repo", "v1", "org/repo:v1"),
            ("repo:", "repo", "latest", "repo"),
        ] {
            let reference = Reference::parse(text);
            assert_eq!(
                (reference.repository.as_str(), reference.tag.as_str()),
                (repository, tag),
                "{text}"
            );
            assert_eq!(reference.local_name(), local);
        }
    }

    #[test]
    fn artifacts_are_told_apart_in_order() {
        let of = |artifact: &str, config: &str, media: &str| {
            let config = Descriptor { media_type: config.to_owned(), ..Descriptor::default() };
            Manifest {
                artifact_type: artifact.to_owned(),
                config: Some(config),
                media_type: media.to_owned(),
                ..Manifest::default()
            }
            .kind()
        };
        assert_eq!(of(OS_IMAGE, "", ""), ArtifactKind::CloudImage);
        assert_eq!(of(WINDOWS_IMAGE, "", ""), ArtifactKind::CloudImage);
        assert_eq!(of(SNAPSHOT, CONTAINER_CONFIGS[0], ""), ArtifactKind::Snapshot);
        assert_eq!(of("", CONTAINER_CONFIGS[1], OCI_MANIFEST), ArtifactKind::ContainerImage);
        assert_eq!(of("", "", OCI_INDEX), ArtifactKind::Index);
        assert_eq!(of("", "", OCI_MANIFEST), ArtifactKind::Unknown);
    }

    #[test]
    fn an_index_offers_this_machines_child() {
        let child = |os: &str, architecture: &str, digest: &str| Descriptor {
            platform: Some(Platform { os: os.to_owned(), architecture: architecture.to_owned() }),
            digest: Digest::from(digest.to_owned()),
            ..Descriptor::default()
        };
        let mut index = Manifest {
            manifests: vec![
                child("unknown", "unknown", "a"),
                child("linux", "arm64", "b"),
                child("linux", "amd64", "c"),
            ],
            ..Manifest::default()
        };
        assert_eq!(index.child().unwrap().digest.as_str(), "c");
        index.manifests.pop();
        assert_eq!(index.child().unwrap().digest.as_str(), "b");
        index.manifests.pop();
        assert_eq!(index.child(), Err(ManifestError::NoChild));
    }

    #[test]
    fn parts_of_a_disk_stand_in_the_order_of_their_names() {
        let layer = |media: &str, title: &str| Descriptor {
            media_type: media.to_owned(),
            annotations: [(TITLE.to_owned(), title.to_owned())].into(),
            ..Descriptor::default()
        };
        let image = Manifest {
            artifact_type: OS_IMAGE.to_owned(),
            layers: vec![
                layer("application/vnd.cocoonstack.disk.qcow2.part", "disk.002"),
                layer("text/plain", "README"),
                layer("application/vnd.cocoonstack.disk.qcow2.part", "disk.001"),
            ],
            ..Manifest::default()
        };
        let titles: Vec<_> =
            image.disk_layers().unwrap().iter().filter_map(|l| l.title()).collect();
        assert_eq!(titles, ["disk.001", "disk.002"]);
        let empty = Manifest { layers: Vec::new(), ..image };
        assert_eq!(empty.disk_layers(), Err(ManifestError::NoDisk));
    }

    #[test]
    fn files_have_their_media_types() {
        for (file, want) in [
            ("config.json", "application/vnd.cocoonstack.vm.config+json"),
            ("memory-ranges", "application/vnd.cocoonstack.vm.memory"),
            ("overlay.qcow2", "application/vnd.cocoonstack.disk.qcow2"),
            ("data-x.raw", "application/vnd.cocoonstack.disk.raw"),
            ("vmstate", "application/octet-stream"),
            ("cocoon.json", "application/octet-stream"),
        ] {
            assert_eq!(layer_type(file), want);
        }
        assert!(is_known_layer("application/vnd.cocoonstack.vm.memory"));
        assert!(!is_known_layer("application/vnd.cocoonstack.vm.memory+zstd"));
    }
}
