//! The seam between pods and machines: what the kubelet asks of a runtime.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::RuntimeError;
use crate::record::{Backend, ImageRecord, SnapshotRecord, VmEvent, VmRecord};

pub type Answer<'a, T> = BoxFuture<'a, Result<T, RuntimeError>>;
/// VM events until the runtime's own stream ends. Events may be lost in between: list and compare at every start.
pub type Watch = BoxStream<'static, Result<VmEvent, RuntimeError>>;
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A runtime of microVMs. References are ids or names.
///
/// Every verb may be repeated: `remove`, `snapshot_remove` succeed when nothing is left to remove, `start` of a running VM succeeds,
/// `snapshot_save` replaces a snapshot of that name. `run` and `clone_vm` fail with [`RuntimeError::NameTaken`] instead, so that a
/// caller adopts what is there. Dropping a future ends what it started on the host, also its children.
pub trait Runtime: Send + Sync + fmt::Debug {
    fn capabilities(&self) -> Capabilities;

    fn ensure_image<'a>(&'a self, image: &'a str, force: bool) -> Answer<'a, ()>;
    /// `None`: no such image.
    fn image<'a>(&'a self, image: &'a str) -> Answer<'a, Option<ImageRecord>>;
    fn import_image<'a>(&'a self, name: &'a str, disk: Input) -> Answer<'a, ()>;

    fn run(&self, options: RunOptions) -> Answer<'_, VmRecord>;
    fn clone_vm(&self, options: CloneOptions) -> Answer<'_, VmRecord>;
    fn inspect<'a>(&'a self, vm: &'a str) -> Answer<'a, VmRecord>;
    fn list(&self) -> Answer<'_, Vec<VmRecord>>;
    fn start<'a>(&'a self, vm: &'a str) -> Answer<'a, ()>;
    /// Asks the guest to shut down and waits up to `grace_seconds`. A VM that is off already is success.
    fn stop<'a>(&'a self, vm: &'a str, grace_seconds: u64) -> Answer<'a, ()>;
    fn remove<'a>(&'a self, vm: &'a str) -> Answer<'a, ()>;
    /// Gives the VM this many network cards.
    fn resize_nics<'a>(&'a self, vm: &'a str, nics: u32) -> Answer<'a, ()>;
    fn watch(&self) -> Answer<'_, Watch>;

    fn snapshot_save<'a>(&'a self, name: &'a str, vm: &'a str) -> Answer<'a, ()>;
    /// `None`: no such snapshot.
    fn snapshot<'a>(&'a self, name: &'a str) -> Answer<'a, Option<SnapshotRecord>>;
    fn snapshots(&self) -> Answer<'_, Vec<SnapshotRecord>>;
    fn snapshot_remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()>;
    /// Takes a snapshot archive from `archive`. What was called `name` before is replaced. If reading `archive` fails, nothing is imported.
    fn snapshot_import<'a>(&'a self, name: &'a str, archive: Input) -> Answer<'a, ()>;
    /// Writes the snapshot's archive to `archive`.
    fn snapshot_export<'a>(&'a self, name: &'a str, archive: Output) -> Answer<'a, ()>;

    /// Runs a program in the guest; the answer is its exit code.
    fn exec<'a>(
        &'a self,
        vm: &'a str,
        options: ExecOptions,
        streams: ExecStreams,
    ) -> Answer<'a, i32>;
    fn logs<'a>(&'a self, vm: &'a str, options: LogOptions, to: Output) -> Answer<'a, ()>;

    /// Asks the guest itself whether it is there, where a ping of its address cannot tell. `None`: ping the address.
    fn ping<'a>(&'a self, _vm: &'a str) -> Option<Answer<'a, ()>> {
        None
    }
    /// Sees to it that a TCP port of the guest is found at the VM's address.
    fn reach<'a>(&'a self, _vm: &'a str, _port: u16) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }
    /// Whether the guest itself has taken a connection to this port, where [`Capabilities::forwards_ports`].
    fn is_taken<'a>(&'a self, _vm: &'a str, _port: u16) -> Answer<'a, bool> {
        Box::pin(async { Ok(true) })
    }

    /// How much of the disk a snapshot takes. Where nobody knows, its memory.
    fn snapshot_size(&self, snapshot: &SnapshotRecord) -> u64 {
        snapshot.memory
    }
    /// The socket of the VM's serial console.
    fn console(&self, vm: &VmRecord) -> PathBuf;
    /// The file that the VM's own changes to its disk are in, if there is one.
    fn disk_file(&self, vm: &VmRecord) -> Option<PathBuf>;
    /// Whether the VM boots from a cloud image, whose network cloud-init configures.
    fn is_cloud_image(&self, vm: &VmRecord) -> bool;
}

/// What a runtime can do beyond the must.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Snapshots keep memory; without it a woken VM boots anew from its disk.
    pub memory_snapshot: bool,
    pub resize_nics: bool,
    pub exec: bool,
    pub exec_tty: bool,
    pub follow_logs: bool,
    /// What a guest wrote before it was last started is kept.
    pub previous_logs: bool,
    /// The one hypervisor that there is, whichever a pod names. `None`: the one that the pod names.
    pub only: Option<&'static str>,
    /// Something on this host answers for the guest's ports, so that a connection proves nothing until the guest has taken it.
    pub forwards_ports: bool,
}

/// Sizes in bytes; what is `None` is the runtime's default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunOptions {
    pub name: String,
    pub image: String,
    pub cpus: Option<u64>,
    pub memory: Option<u64>,
    /// As text: a size that could not be read is passed on for the runtime to refuse.
    pub storage: Option<String>,
    pub network: Option<String>,
    pub windows: bool,
    pub backend: Backend,
    pub no_direct_io: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneOptions {
    pub name: String,
    pub from: CloneFrom,
    pub network: Option<String>,
    pub backend: Backend,
    pub no_direct_io: bool,
    /// Fetch the snapshot's base image if it is not there.
    pub pull: bool,
    /// Page memory in as the guest touches it.
    pub on_demand: bool,
    pub nics: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloneFrom {
    Snapshot(String),
    Folder(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecOptions {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// Where a program's input comes from and its output goes.
#[derive(Default)]
pub struct ExecStreams {
    pub stdin: Option<Input>,
    pub stdout: Option<Output>,
    pub stderr: Option<Output>,
}

impl fmt::Debug for ExecStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecStreams")
            .field("stdin", &self.stdin.is_some())
            .field("stdout", &self.stdout.is_some())
            .field("stderr", &self.stderr.is_some())
            .finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogOptions {
    pub tail: Option<u64>,
    pub follow: bool,
    /// What was written before the last start, where [`Capabilities::previous_logs`].
    pub previous: bool,
}
