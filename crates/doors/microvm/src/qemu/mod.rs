//! QEMU as a runtime: real microVMs without root, with hardware support where there is some and without where there is none.
//!
//! There is no daemon. Each VM is one QEMU that goes on when this process ends; its folder tells all that is to be known of it, and its
//! monitor answers whoever asks.

mod accelerate;
mod agent;
mod argv;
mod exec;
mod image;
mod life;
mod logs;
mod qmp;
mod snapshot;
mod store;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use roost_clock::{Clock, Random};
use tokio::sync::broadcast;

use self::agent::Agent;
use self::store::{Machine, OVERLAY, PREVIOUS_SERIAL, SERIAL, Store};
use crate::error::RuntimeError;
use crate::process::process_ended;
use crate::record::{Backend, EventKind, ImageRecord, SnapshotRecord, VmEvent, VmRecord, VmState};
use crate::runtime::{
    Answer, Capabilities, CloneOptions, ExecOptions, ExecStreams, Input, LogOptions, Output,
    RunOptions, Runtime, Watch,
};

/// Events that a slow listener may be behind.
const EVENTS: usize = 256;

/// Which QEMU, where its files are, and what a VM has that nobody asked for.
#[derive(Debug, Clone)]
pub struct QemuSettings {
    pub binary: PathBuf,
    /// `qemu-img`.
    pub disk_tool: PathBuf,
    pub root_dir: PathBuf,
    pub machine: String,
    pub cpu: String,
    /// Of two, the first unless it is slower.
    pub accelerators: Vec<String>,
    pub cpus: u32,
    /// Bytes.
    pub memory: u64,
    /// What images are fetched with. `None`: only those that are there are used.
    pub http: Option<reqwest::Client>,
}

impl QemuSettings {
    /// As Debian installs it.
    pub fn new(root_dir: impl Into<PathBuf>) -> Self {
        Self {
            binary: "qemu-system-x86_64".into(),
            disk_tool: "qemu-img".into(),
            root_dir: root_dir.into(),
            machine: "pc".to_owned(),
            cpu: "max".to_owned(),
            accelerators: vec!["kvm".to_owned(), "tcg".to_owned()],
            cpus: 1,
            memory: 512 * 1024 * 1024,
            http: None,
        }
    }
}

/// QEMU as a [`Runtime`].
#[derive(Debug)]
pub struct Qemu {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: QemuSettings,
    store: Store,
    clock: Arc<dyn Clock>,
    random: Mutex<Random>,
    agents: Mutex<BTreeMap<String, Arc<Agent>>>,
    changes: broadcast::Sender<VmEvent>,
    /// Names and addresses are given to one VM at a time.
    naming: tokio::sync::Mutex<()>,
    /// Chosen when the first VM starts.
    accelerators: tokio::sync::OnceCell<Vec<String>>,
}

impl Qemu {
    /// Takes the folder for itself. What an earlier process left half made is removed; VMs that run go on.
    pub fn open(settings: QemuSettings, clock: Arc<dyn Clock>, random: Random) -> io::Result<Self> {
        let store = Store::open(&settings.root_dir)?;
        let inner = Inner {
            settings,
            store,
            clock,
            random: Mutex::new(random),
            agents: Mutex::default(),
            changes: broadcast::channel(EVENTS).0,
            naming: tokio::sync::Mutex::default(),
            accelerators: tokio::sync::OnceCell::new(),
        };
        inner.sweep()?;
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Inner {
    /// 26 letters and digits, as `cocoon` makes them.
    fn new_id(&self) -> String {
        const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut letter = || {
            let at = usize::try_from(random.below(32)).unwrap_or_default();
            char::from(ALPHABET[at])
        };
        (0..26).map(|_| letter()).collect()
    }

    /// With the state that is true now: a record says running, its process knows.
    fn machine(&self, vm: &str) -> Result<Machine, RuntimeError> {
        let found = self.store.machine(vm).filter(|machine| machine.vm.state != VmState::Creating);
        let mut machine = found.ok_or_else(|| RuntimeError::VmNotFound { vm: vm.to_owned() })?;
        self.judge(&mut machine);
        Ok(machine)
    }

    fn judge(&self, machine: &mut Machine) {
        if machine.vm.state.is_running() && !self.is_alive(machine) {
            (machine.vm.state, machine.vm.pid) = (VmState::Stale, 0);
        }
    }

    /// The process of the record is a QEMU of this VM: numbers of processes are used again.
    fn is_alive(&self, machine: &Machine) -> bool {
        let line = std::fs::read(format!("/proc/{}/cmdline", machine.vm.pid)).unwrap_or_default();
        let own = self.store.vm_folder(&machine.vm.id).join(argv::PID);
        machine.vm.pid != 0
            && line.split(|byte| *byte == 0).any(|word| word == own.as_os_str().as_encoded_bytes())
    }

    fn inspect(&self, vm: &str) -> Result<VmRecord, RuntimeError> {
        self.machine(vm).map(|machine| machine.vm)
    }

    fn list(&self) -> Vec<VmRecord> {
        let mut all = self.store.machines();
        all.retain(|machine| machine.vm.state != VmState::Creating);
        for machine in &mut all {
            self.judge(machine);
        }
        all.into_iter().map(|machine| machine.vm).collect()
    }

    fn agent(&self, id: &str) -> Arc<Agent> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = || self.store.vm_folder(id).join(argv::AGENT);
        Arc::clone(
            agents.entry(id.to_owned()).or_insert_with(|| Arc::new(Agent::new(id, socket()))),
        )
    }

    fn forget_agent(&self, id: &str) {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    fn tell(&self, event: EventKind, vm: &VmRecord) {
        // Nobody needs to listen.
        let _ = self.changes.send(VmEvent { event, vm: vm.clone() });
    }

    /// The VM, if it runs.
    fn running(&self, vm: &str) -> Result<Machine, RuntimeError> {
        let machine = self.machine(vm)?;
        if machine.vm.state.is_running() {
            return Ok(machine);
        }
        let detail = format!("the VM is {}", machine.vm.state.as_str());
        Err(RuntimeError::NoGuestDaemon { vm: vm.to_owned(), detail })
    }
}

impl Runtime for Qemu {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            memory_snapshot: true,
            resize_nics: false,
            exec: true,
            exec_tty: false,
            follow_logs: true,
            previous_logs: true,
            only: Some(Backend::QEMU),
            forwards_ports: true,
        }
    }

    fn ensure_image<'a>(&'a self, image: &'a str, force: bool) -> Answer<'a, ()> {
        self.inner.ensure_image(image, force).boxed()
    }

    fn image<'a>(&'a self, image: &'a str) -> Answer<'a, Option<ImageRecord>> {
        async move { Ok(self.inner.image(image)) }.boxed()
    }

    fn import_image<'a>(&'a self, name: &'a str, disk: Input) -> Answer<'a, ()> {
        self.inner.import_image(name, disk).boxed()
    }

    fn run(&self, options: RunOptions) -> Answer<'_, VmRecord> {
        self.inner.run(options).boxed()
    }

    fn clone_vm(&self, options: CloneOptions) -> Answer<'_, VmRecord> {
        self.inner.clone_vm(options).boxed()
    }

    fn inspect<'a>(&'a self, vm: &'a str) -> Answer<'a, VmRecord> {
        async move { self.inner.inspect(vm) }.boxed()
    }

    fn list(&self) -> Answer<'_, Vec<VmRecord>> {
        async move { Ok(self.inner.list()) }.boxed()
    }

    fn start<'a>(&'a self, vm: &'a str) -> Answer<'a, ()> {
        self.inner.start(vm).boxed()
    }

    fn stop<'a>(&'a self, vm: &'a str, grace_seconds: u64) -> Answer<'a, ()> {
        self.inner.stop(vm, grace_seconds).boxed()
    }

    fn remove<'a>(&'a self, vm: &'a str) -> Answer<'a, ()> {
        self.inner.remove(vm).boxed()
    }

    fn resize_nics<'a>(&'a self, _: &'a str, _: u32) -> Answer<'a, ()> {
        async move { Err(RuntimeError::NotSupported { what: "another number of network cards" }) }
            .boxed()
    }

    fn watch(&self) -> Answer<'_, Watch> {
        async move { Ok(watch::watch(&self.inner)) }.boxed()
    }

    fn snapshot_save<'a>(&'a self, name: &'a str, vm: &'a str) -> Answer<'a, ()> {
        self.inner.save(name, vm).boxed()
    }

    fn snapshot<'a>(&'a self, name: &'a str) -> Answer<'a, Option<SnapshotRecord>> {
        async move { Ok(self.inner.snapshot(name)) }.boxed()
    }

    fn snapshots(&self) -> Answer<'_, Vec<SnapshotRecord>> {
        async move { Ok(self.inner.store.snapshots()) }.boxed()
    }

    fn snapshot_remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        async move { self.inner.snapshot_remove(name) }.boxed()
    }

    fn snapshot_import<'a>(&'a self, name: &'a str, archive: Input) -> Answer<'a, ()> {
        self.inner.import(name, archive).boxed()
    }

    fn snapshot_export<'a>(&'a self, name: &'a str, archive: Output) -> Answer<'a, ()> {
        self.inner.export(name, archive).boxed()
    }

    fn exec<'a>(
        &'a self,
        vm: &'a str,
        options: ExecOptions,
        streams: ExecStreams,
    ) -> Answer<'a, i32> {
        async move {
            let machine = self.inner.running(vm)?;
            exec::exec(self.inner.agent(&machine.vm.id), options, streams).await
        }
        .boxed()
    }

    fn logs<'a>(&'a self, vm: &'a str, options: LogOptions, to: Output) -> Answer<'a, ()> {
        async move {
            let machine = self.inner.machine(vm)?;
            let name = if options.previous { PREVIOUS_SERIAL } else { SERIAL };
            let path = self.inner.store.vm_folder(&machine.vm.id).join(name);
            logs::logs(&path, options, to).await
        }
        .boxed()
    }

    fn ping<'a>(&'a self, vm: &'a str) -> Option<Answer<'a, ()>> {
        let ping = async move {
            let machine = self.inner.running(vm)?;
            self.inner.agent(&machine.vm.id).ping().await
        };
        Some(ping.boxed())
    }

    fn reach<'a>(&'a self, vm: &'a str, port: u16) -> Answer<'a, ()> {
        self.inner.reach(vm, port).boxed()
    }

    fn is_taken<'a>(&'a self, vm: &'a str, port: u16) -> Answer<'a, bool> {
        self.inner.is_taken(vm, port).boxed()
    }

    fn snapshot_size(&self, snapshot: &SnapshotRecord) -> u64 {
        let folder = self.inner.store.snapshot_folder(&snapshot.name);
        crate::folder_size::folder_size(&folder).unwrap_or(snapshot.memory)
    }

    fn console(&self, vm: &VmRecord) -> PathBuf {
        self.inner.store.vm_folder(&vm.id).join(argv::CONSOLE)
    }

    fn disk_file(&self, vm: &VmRecord) -> Option<PathBuf> {
        Some(self.inner.store.vm_folder(&vm.id).join(OVERLAY)).filter(|path| path.exists())
    }

    fn is_cloud_image(&self, vm: &VmRecord) -> bool {
        self.disk_file(vm).is_some()
    }
}
