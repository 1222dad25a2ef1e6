//! The registry that snapshots and cloud images come from: epoch's routes, which are those of an OCI registry and one more.

pub(crate) mod archive;
mod blob;
mod client;
mod manifest;
mod progress;
mod pull;
mod push;
mod stream;
pub(crate) mod tar;

pub use self::blob::{BlobSource, Digest};
pub use self::client::{Registry, RegistryError, RegistrySettings, RegistryTransport};
pub use self::manifest::{ArtifactKind, Manifest, ManifestError, Reference, SnapshotConfig};
pub use self::progress::Progress;
pub use self::stream::TransferError;
