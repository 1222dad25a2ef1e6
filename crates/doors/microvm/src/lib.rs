#![doc = include_str!("../README.md")]

mod cocoon;
mod error;
mod lease;
mod ping;
mod post_clone;
mod quantity;
mod record;
mod registry;
mod runtime;
mod sac;

pub use cocoon::{CocoonCli, CocoonSettings};
pub use error::RuntimeError;
pub use lease::{LeaseError, Leases};
pub use ping::{IcmpPinger, PingError};
pub use post_clone::{PostClone, SourceImage};
pub use quantity::{BadQuantity, Quantity};
pub use record::{
    Backend, EventKind, ImageRecord, Nic, SnapshotRecord, StaticAddress, VmConfig, VmEvent,
    VmRecord, VmState,
};
pub use registry::{
    ArtifactKind, BlobSource, Digest, Manifest, ManifestError, Reference, Registry, RegistryError,
    RegistrySettings, SnapshotConfig, TransferError,
};
pub use runtime::{
    Answer, Capabilities, CloneFrom, CloneOptions, ExecOptions, ExecStreams, Input, LogOptions,
    Output, RunOptions, Runtime, Watch,
};
pub use sac::{SacConsole, SacError, StaticNic};
