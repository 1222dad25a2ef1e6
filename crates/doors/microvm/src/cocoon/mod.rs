//! The `cocoon` command line as a runtime.

mod argv;
mod child;
mod classify;
mod exec;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use self::child::Caller;
use crate::error::RuntimeError;
use crate::folder_size::folder_size;
use crate::record::{Backend, ImageRecord, SnapshotRecord, VmRecord};
use crate::runtime::{
    Answer, Capabilities, CloneOptions, ExecOptions, ExecStreams, Input, LogOptions, Output,
    RunOptions, Runtime, Watch,
};

/// Reading a record touches a small file.
const QUICK: Duration = Duration::from_mins(1);
/// A VM boots, stops or is removed; a graceful stop may take half a minute of that.
const USUAL: Duration = Duration::from_mins(5);
/// Images and snapshots of many gigabytes over a slow line.
const LONG: Duration = Duration::from_hours(2);

/// How `cocoon` is called and where it keeps its files.
#[derive(Debug, Clone)]
pub struct CocoonSettings {
    pub binary: PathBuf,
    /// Put before the binary, usually `sudo`.
    pub wrapper: Vec<String>,
    /// Its run folder: consoles and disks of VMs are below it.
    pub run_dir: PathBuf,
    /// Snapshots are below it.
    pub root_dir: PathBuf,
}

impl CocoonSettings {
    /// As an installed `cocoon` expects it. Root needs no `sudo`.
    pub fn new(binary: impl Into<PathBuf>, root_dir: impl Into<PathBuf>) -> Self {
        let wrapper =
            if rustix::process::geteuid().is_root() { Vec::new() } else { vec!["sudo".to_owned()] };
        let root_dir = root_dir.into();
        Self { binary: binary.into(), wrapper, run_dir: root_dir.join("run"), root_dir }
    }
}

/// The `cocoon` command line as a [`Runtime`].
#[derive(Debug)]
pub struct CocoonCli {
    caller: Caller,
    run_dir: PathBuf,
    root_dir: PathBuf,
    /// Whether this release's `vm exec` forwards standard input only with `-i`.
    wants_interactive: OnceCell<bool>,
}

impl CocoonCli {
    pub fn new(settings: CocoonSettings) -> Self {
        let mut program = settings.wrapper;
        program.push(settings.binary.to_string_lossy().into_owned());
        Self {
            caller: Caller { program },
            run_dir: settings.run_dir,
            root_dir: settings.root_dir,
            wants_interactive: OnceCell::new(),
        }
    }

    async fn json<T: DeserializeOwned>(
        &self,
        argv: Vec<String>,
        subject: &str,
        limit: Duration,
    ) -> Result<T, RuntimeError> {
        let command = child::verb(&argv);
        let printed = self.caller.output(argv, subject, limit).await?;
        parse(&command, &printed)
    }

    /// A list, which is a sentence instead of JSON when it is empty.
    async fn list_of<T: DeserializeOwned>(
        &self,
        argv: Vec<String>,
    ) -> Result<Vec<T>, RuntimeError> {
        let command = child::verb(&argv);
        let printed = self.caller.output(argv, "", QUICK).await?;
        let text = String::from_utf8_lossy(&printed);
        let text = text.trim();
        if text.is_empty() || (text.starts_with("No ") && text.ends_with("found.")) {
            return Ok(Vec::new());
        }
        parse(&command, &printed)
    }

    async fn done(
        &self,
        argv: Vec<String>,
        subject: &str,
        limit: Duration,
    ) -> Result<(), RuntimeError> {
        self.caller.output(argv, subject, limit).await.map(drop)
    }

    /// A fresh VM with its process: some releases print 0 for it although the VM runs, and metrics would lose it.
    async fn with_process(&self, vm: VmRecord) -> Result<VmRecord, RuntimeError> {
        if vm.pid != 0 || !vm.state.is_running() {
            return Ok(vm);
        }
        match self.inspect(&vm.id).await {
            Ok(seen) => Ok(seen),
            Err(error) => {
                tracing::warn!(vm = vm.name(), "the process of a fresh VM is not known: {error}");
                Ok(vm)
            }
        }
    }

    fn folder(&self, vm: &VmRecord) -> PathBuf {
        self.run_dir.join(vm.hypervisor.folder()).join(&vm.id)
    }
}

fn parse<T: DeserializeOwned>(command: &str, printed: &[u8]) -> Result<T, RuntimeError> {
    serde_json::from_slice(printed).map_err(|source| {
        let printed: String = String::from_utf8_lossy(printed).chars().take(200).collect();
        RuntimeError::Unreadable { command: command.to_owned(), printed, source }
    })
}

/// What is gone already need not be removed.
fn gone_is_fine(result: Result<(), RuntimeError>) -> Result<(), RuntimeError> {
    match result {
        Err(RuntimeError::VmNotFound { .. } | RuntimeError::SnapshotNotFound { .. }) => Ok(()),
        other => other,
    }
}

impl Runtime for CocoonCli {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            memory_snapshot: true,
            resize_nics: true,
            exec: true,
            exec_tty: false,
            follow_logs: true,
            previous_logs: false,
            only: None,
            forwards_ports: false,
        }
    }

    fn ensure_image<'a>(&'a self, image: &'a str, force: bool) -> Answer<'a, ()> {
        self.done(argv::image_pull(image, force), image, LONG).boxed()
    }

    fn image<'a>(&'a self, image: &'a str) -> Answer<'a, Option<ImageRecord>> {
        async move {
            match self.json(argv::image_inspect(image), image, QUICK).await {
                Ok(record) => Ok(Some(record)),
                Err(RuntimeError::ImageNotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn import_image<'a>(&'a self, name: &'a str, disk: Input) -> Answer<'a, ()> {
        self.caller.feed(argv::image_import(name), name, disk, LONG).boxed()
    }

    fn run(&self, options: RunOptions) -> Answer<'_, VmRecord> {
        async move {
            let vm = self.json(argv::run(&options), &options.name, LONG).await?;
            self.with_process(vm).await
        }
        .boxed()
    }

    fn clone_vm(&self, options: CloneOptions) -> Answer<'_, VmRecord> {
        async move {
            let argv = argv::clone_vm(&options);
            let vm = match self.json(argv, &options.name, LONG).await {
                // The words of a missing snapshot name it, not the new VM.
                Err(RuntimeError::SnapshotNotFound { .. }) => {
                    let snapshot = format!("{:?}", options.from);
                    return Err(RuntimeError::SnapshotNotFound { snapshot });
                }
                other => other?,
            };
            self.with_process(vm).await
        }
        .boxed()
    }

    fn inspect<'a>(&'a self, vm: &'a str) -> Answer<'a, VmRecord> {
        self.json(argv::inspect(vm), vm, QUICK).boxed()
    }

    fn list(&self) -> Answer<'_, Vec<VmRecord>> {
        async move {
            let mut vms: Vec<VmRecord> = self.list_of(argv::list()).await?;
            vms.retain(|vm| !vm.id.is_empty());
            Ok(vms)
        }
        .boxed()
    }

    fn start<'a>(&'a self, vm: &'a str) -> Answer<'a, ()> {
        self.done(argv::start(vm), vm, USUAL).boxed()
    }

    fn stop<'a>(&'a self, vm: &'a str, grace_seconds: u64) -> Answer<'a, ()> {
        let limit = USUAL + Duration::from_secs(grace_seconds);
        self.done(argv::stop(vm, grace_seconds), vm, limit).map(gone_is_fine).boxed()
    }

    fn remove<'a>(&'a self, vm: &'a str) -> Answer<'a, ()> {
        self.done(argv::remove(vm), vm, USUAL).map(gone_is_fine).boxed()
    }

    fn resize_nics<'a>(&'a self, vm: &'a str, nics: u32) -> Answer<'a, ()> {
        self.done(argv::resize_nics(vm, nics), vm, USUAL).boxed()
    }

    fn watch(&self) -> Answer<'_, Watch> {
        watch::watch(&self.caller).boxed()
    }

    fn snapshot_save<'a>(&'a self, name: &'a str, vm: &'a str) -> Answer<'a, ()> {
        async move {
            let save = || self.done(argv::snapshot_save(name, vm), name, LONG);
            let saved = match save().await {
                Err(RuntimeError::SnapshotNameTaken { .. }) => {
                    self.snapshot_remove(name).await?;
                    save().await
                }
                other => other,
            };
            // Here a missing VM is named by the VM, not by the snapshot.
            saved.map_err(|error| match error {
                RuntimeError::VmNotFound { .. } => RuntimeError::VmNotFound { vm: vm.to_owned() },
                other => other,
            })
        }
        .boxed()
    }

    fn snapshot<'a>(&'a self, name: &'a str) -> Answer<'a, Option<SnapshotRecord>> {
        async move {
            match self.json(argv::snapshot_inspect(name), name, QUICK).await {
                Ok(record) => Ok(Some(record)),
                Err(RuntimeError::SnapshotNotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn snapshots(&self) -> Answer<'_, Vec<SnapshotRecord>> {
        self.list_of(argv::snapshot_list()).boxed()
    }

    fn snapshot_remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.done(argv::snapshot_remove(name), name, USUAL).map(gone_is_fine).boxed()
    }

    fn snapshot_import<'a>(&'a self, name: &'a str, archive: Input) -> Answer<'a, ()> {
        async move {
            self.snapshot_remove(name).await?;
            self.caller.feed(argv::snapshot_import(name), name, archive, LONG).await
        }
        .boxed()
    }

    fn snapshot_export<'a>(&'a self, name: &'a str, archive: Output) -> Answer<'a, ()> {
        self.caller.stream(argv::snapshot_export(name), name, archive).boxed()
    }

    fn exec<'a>(
        &'a self,
        vm: &'a str,
        options: ExecOptions,
        streams: ExecStreams,
    ) -> Answer<'a, i32> {
        exec::exec(self, vm, options, streams).boxed()
    }

    fn logs<'a>(&'a self, vm: &'a str, options: LogOptions, to: Output) -> Answer<'a, ()> {
        self.caller.stream(argv::logs(vm, options), vm, to).boxed()
    }

    fn snapshot_size(&self, snapshot: &SnapshotRecord) -> u64 {
        let folder = self.root_dir.join("snapshot/localfile").join(&snapshot.id);
        folder_size(&folder).unwrap_or(snapshot.memory)
    }

    fn console(&self, vm: &VmRecord) -> PathBuf {
        self.folder(vm).join("console.sock")
    }

    fn disk_file(&self, vm: &VmRecord) -> Option<PathBuf> {
        let names: &[&str] = if vm.hypervisor.is_firecracker() {
            &["cow.raw"]
        } else {
            &["overlay.qcow2", "cow.raw"]
        };
        names.iter().map(|name| self.folder(vm).join(name)).find(|path| path.exists())
    }

    fn is_cloud_image(&self, vm: &VmRecord) -> bool {
        vm.hypervisor.as_str() != Backend::FIRECRACKER
            && self.folder(vm).join("overlay.qcow2").exists()
    }
}
