#![doc = include_str!("../README.md")]

mod cgroup;
mod cocoon;
mod error;
mod folder_size;
mod lease;
mod ping;
mod post_clone;
mod process;
mod qemu;
mod quantity;
mod record;
mod registry;
mod runtime;
mod sac;

pub use cgroup::{Cgroups, Shares};
pub use cocoon::{CocoonCli, CocoonSettings};
pub use error::RuntimeError;
pub use lease::{LeaseError, Leases};
pub use ping::{IcmpPinger, PingError};
pub use post_clone::{PostClone, SourceImage};
pub use process::process_ended;
pub use qemu::{Qemu, QemuSettings};
pub use quantity::{BadQuantity, Quantity};
pub use record::{
    Backend, EventKind, ImageRecord, Nic, SnapshotRecord, StaticAddress, VmConfig, VmEvent,
    VmRecord, VmState,
};
pub use registry::{
    ArtifactKind, BlobSource, Digest, Manifest, ManifestError, Progress, Reference, Registry,
    RegistryError, RegistrySettings, RegistryTransport, SnapshotConfig, TransferError,
};
pub use runtime::{
    Answer, Capabilities, CloneFrom, CloneOptions, ExecOptions, ExecStreams, Input, LogOptions,
    Output, RunOptions, Runtime, Watch,
};
pub use sac::{SacConsole, SacError, StaticNic};
