//! The host as a runtime in process, on tokio's time: for scenarios in which hours pass at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{StreamExt, unfold};
use jiff::Timestamp;
use roost_clock::Clock;
use roost_microvm::{
    Answer, Capabilities, CloneOptions, EventKind, ExecOptions, ExecStreams, ImageRecord, Input,
    LogOptions, Output, RunOptions, Runtime, RuntimeError, SnapshotRecord, VmEvent, VmRecord,
    Watch,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::archive;
use crate::fault::{Fault, Faults};
use crate::host::{Host, Refusal};

/// After so long a command that hangs is given up, as the command line's client does.
const DEADLINE: Duration = Duration::from_mins(5);

/// How long things take.
#[derive(Debug, Clone, Copy)]
pub struct Timings {
    pub quick: Duration,
    pub pull: Duration,
    pub run: Duration,
    pub clone: Duration,
    pub save: Duration,
    pub remove: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            quick: Duration::from_millis(20),
            pull: Duration::from_secs(20),
            run: Duration::from_secs(3),
            clone: Duration::from_millis(400),
            save: Duration::from_secs(5),
            remove: Duration::from_secs(1),
        }
    }
}

/// A simulated host in process.
#[derive(Debug, Clone)]
pub struct SimRuntime {
    shared: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
    timings: Timings,
}

#[derive(Debug, Default)]
struct State {
    host: Host,
    faults: Faults,
    journal: Vec<String>,
    /// Of each verb, the calls under way and the most that ever were.
    at_once: BTreeMap<&'static str, (usize, usize)>,
    listeners: Vec<mpsc::UnboundedSender<VmEvent>>,
    runs_programs: Option<i32>,
    outlive: bool,
    consoles: Option<PathBuf>,
}

impl SimRuntime {
    pub fn new(clock: Arc<dyn Clock>, timings: Timings) -> Self {
        let state = State { runs_programs: Some(0), ..State::default() };
        Self { shared: Arc::new(Mutex::new(state)), clock, timings }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the host, or changes it behind everybody's back.
    pub fn with_host<T>(&self, look: impl FnOnce(&mut Host) -> T) -> T {
        look(&mut self.state().host)
    }

    pub fn add_fault(&self, fault: Fault) {
        self.state().faults.add(fault);
    }

    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// The exit code of every program in guests from now on; `None`: guests run no programs.
    pub fn programs_exit(&self, code: Option<i32>) {
        self.state().runs_programs = code;
    }

    /// The verbs called so far, each with its subject.
    pub fn journal(&self) -> Vec<String> {
        self.state().journal.clone()
    }

    /// How many calls of a verb were ever under way at the same time.
    pub fn most_at_once(&self, verb: &str) -> usize {
        self.state().at_once.get(verb).map_or(0, |(_, most)| *most)
    }

    /// The VM's process dies. With `told` the event stream says so.
    pub fn crash(&self, vm: &str, told: bool) {
        let mut state = self.state();
        if let Ok(vm) = state.host.crash(vm)
            && told
        {
            state.tell(EventKind::Modified, vm);
        }
    }

    /// The console of each VM is a socket in this folder, called after the VM.
    pub fn put_consoles_in(&self, folder: &std::path::Path) {
        self.state().consoles = Some(folder.to_owned());
    }

    /// Whether commands go on and finish when whoever called them dies, as they do when a process is killed.
    pub fn commands_outlive_callers(&self, outlive: bool) {
        self.state().outlive = outlive;
    }

    /// The host loses power: nothing runs any more, and nobody is told.
    pub fn lose_power(&self) {
        let mut state = self.state();
        let all: Vec<String> = state.host.vms().map(|vm| vm.id.clone()).collect();
        for vm in all {
            let _ = state.host.crash(&vm);
        }
        state.listeners.clear();
    }

    /// The event stream ends, as it does when its command is killed.
    pub fn cut_events(&self) {
        self.state().listeners.clear();
    }

    /// One call: it takes its time, meets its fault, then changes the host.
    async fn call<T>(
        &self,
        verb: &'static str,
        subject: &str,
        takes: Duration,
        work: impl FnOnce(&mut State, Timestamp) -> Result<T, Refusal>,
    ) -> Result<T, RuntimeError> {
        let fault = {
            let mut state = self.state();
            state.journal.push(format!("{verb} {subject}"));
            let (now, most) = state.at_once.entry(verb).or_default();
            *now += 1;
            *most = (*most).max(*now);
            state.faults.take(verb)
        };
        let command = Command { runtime: self, verb, work: None };
        if fault.as_ref().is_some_and(|fault| fault.hang) {
            sleep(DEADLINE).await;
            return Err(RuntimeError::Overdue { command: verb.to_owned(), after: DEADLINE });
        }
        let delay = fault.as_ref().map_or(0, |fault| fault.delay_ms);
        let mut command = command;
        command.work = Some(work);
        let failure = fault.clone().filter(|fault| fault.stderr.is_some() || fault.after);
        let lost = |fault: Fault| {
            failed(verb, subject, &fault.stderr.unwrap_or_else(|| "the answer was lost".into()))
        };
        sleep(takes + Duration::from_millis(delay)).await;
        let work = command.work.take();
        let nobody = || failed(verb, subject, "nobody is there");
        let work = work.ok_or_else(nobody)?;
        match failure {
            Some(fault) if !fault.after => Err(lost(fault)),
            failure => {
                let done = work(&mut self.state(), self.clock.now());
                let done = done.map_err(|refusal| failed(verb, subject, &refusal.0))?;
                failure.map_or(Ok(done), |fault| Err(lost(fault)))
            }
        }
    }
}

/// A command that runs on the host. It ends with its caller, or goes on without it.
struct Command<'a, T, W: FnOnce(&mut State, Timestamp) -> Result<T, Refusal>> {
    runtime: &'a SimRuntime,
    verb: &'static str,
    work: Option<W>,
}

impl<T, W: FnOnce(&mut State, Timestamp) -> Result<T, Refusal>> Drop for Command<'_, T, W> {
    fn drop(&mut self) {
        let mut state = self.runtime.state();
        if let Some((now, _)) = state.at_once.get_mut(self.verb) {
            *now = now.saturating_sub(1);
        }
        if let Some(work) = self.work.take().filter(|_| state.outlive) {
            // Nobody hears what came of it.
            let _ = work(&mut state, self.runtime.clock.now());
        }
    }
}

impl State {
    fn tell(&mut self, event: EventKind, vm: VmRecord) {
        let event = VmEvent { event, vm };
        self.listeners.retain(|listener| listener.send(event.clone()).is_ok());
    }
}

/// The typed error of what the command would have said.
fn failed(verb: &str, subject: &str, said: &str) -> RuntimeError {
    let owned = || subject.to_owned();
    match said {
        _ if said.contains("VM not found") => RuntimeError::VmNotFound { vm: owned() },
        _ if said.contains("snapshot not found") => {
            RuntimeError::SnapshotNotFound { snapshot: owned() }
        }
        _ if said.contains("not found in any backend") => {
            RuntimeError::ImageNotFound { image: owned() }
        }
        _ if said.contains("snapshot name") => RuntimeError::SnapshotNameTaken { name: owned() },
        _ if said.contains("vm name") => RuntimeError::NameTaken { name: owned() },
        _ => RuntimeError::Failed { command: verb.to_owned(), detail: said.to_owned() },
    }
}

fn gone_is_fine(result: Result<(), RuntimeError>) -> Result<(), RuntimeError> {
    match result {
        Err(RuntimeError::VmNotFound { .. } | RuntimeError::SnapshotNotFound { .. }) => Ok(()),
        other => other,
    }
}

impl Runtime for SimRuntime {
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

    fn ensure_image<'a>(&'a self, image: &'a str, _force: bool) -> Answer<'a, ()> {
        self.call("image pull", image, self.timings.pull, move |state, now| {
            state.host.pull_image(image, now)
        })
        .boxed()
    }

    fn image<'a>(&'a self, image: &'a str) -> Answer<'a, Option<ImageRecord>> {
        async move {
            let seen = self
                .call("image inspect", image, self.timings.quick, |state, _| {
                    state.host.image(image)
                })
                .await;
            match seen {
                Ok(record) => Ok(Some(record)),
                Err(RuntimeError::ImageNotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn import_image<'a>(&'a self, name: &'a str, mut disk: Input) -> Answer<'a, ()> {
        async move {
            let mut content = Vec::new();
            let command = || "image import".to_owned();
            disk.read_to_end(&mut content)
                .await
                .map_err(|source| RuntimeError::Pipe { command: command(), source })?;
            let put = |state: &mut State, now| {
                state.host.put_image(name, "cloudimg", now);
                Ok(())
            };
            self.call("image import", name, self.timings.pull, put).await
        }
        .boxed()
    }

    fn run(&self, options: RunOptions) -> Answer<'_, VmRecord> {
        async move {
            let name = options.name.clone();
            let run = move |state: &mut State, now| {
                let vm = state.host.run(&options, now)?;
                state.tell(EventKind::Added, vm.clone());
                Ok(vm)
            };
            self.call("vm run", &name, self.timings.run, run).await
        }
        .boxed()
    }

    fn clone_vm(&self, options: CloneOptions) -> Answer<'_, VmRecord> {
        async move {
            let name = options.name.clone();
            let clone = move |state: &mut State, now| {
                let vm = state.host.clone_vm(&options, now)?;
                state.tell(EventKind::Added, vm.clone());
                Ok(vm)
            };
            self.call("vm clone", &name, self.timings.clone, clone).await
        }
        .boxed()
    }

    fn inspect<'a>(&'a self, vm: &'a str) -> Answer<'a, VmRecord> {
        self.call("vm inspect", vm, self.timings.quick, move |state, _| state.host.inspect(vm))
            .boxed()
    }

    fn list(&self) -> Answer<'_, Vec<VmRecord>> {
        self.call("vm list", "", self.timings.quick, |state, _| {
            Ok(state.host.vms().cloned().collect())
        })
        .boxed()
    }

    fn start<'a>(&'a self, vm: &'a str) -> Answer<'a, ()> {
        let start = move |state: &mut State, now| {
            let vm = state.host.start(vm, now)?;
            state.tell(EventKind::Modified, vm);
            Ok(())
        };
        self.call("vm start", vm, self.timings.run, start).boxed()
    }

    fn stop<'a>(&'a self, vm: &'a str, grace_seconds: u64) -> Answer<'a, ()> {
        async move {
            let stop = move |state: &mut State, _| {
                let vm = state.host.stop(vm)?;
                state.tell(EventKind::Modified, vm);
                Ok(())
            };
            let subject = format!("{vm} --timeout {grace_seconds}");
            gone_is_fine(self.call("vm stop", &subject, self.timings.remove, stop).await)
        }
        .boxed()
    }

    fn remove<'a>(&'a self, vm: &'a str) -> Answer<'a, ()> {
        let remove = move |state: &mut State, _| {
            let vm = state.host.remove(vm, true)?;
            state.tell(EventKind::Deleted, vm);
            Ok(())
        };
        self.call("vm rm", vm, self.timings.remove, remove).map(gone_is_fine).boxed()
    }

    fn resize_nics<'a>(&'a self, vm: &'a str, nics: u32) -> Answer<'a, ()> {
        self.call("vm net", vm, self.timings.quick, move |state, _| {
            state.host.resize_nics(vm, nics)
        })
        .boxed()
    }

    fn watch(&self) -> Answer<'_, Watch> {
        async move {
            let subscribe = |state: &mut State, _| {
                let (sender, receiver) = mpsc::unbounded_channel();
                for vm in state.host.vms() {
                    // The receiver is in our hands: this cannot fail.
                    let _ = sender.send(VmEvent { event: EventKind::Added, vm: vm.clone() });
                }
                state.listeners.push(sender);
                Ok(receiver)
            };
            let receiver = self.call("vm status", "", self.timings.quick, subscribe).await?;
            let next = |mut receiver: mpsc::UnboundedReceiver<VmEvent>| async {
                receiver.recv().await.map(|event| (Ok(event), receiver))
            };
            Ok(unfold(receiver, next).boxed())
        }
        .boxed()
    }

    fn snapshot_save<'a>(&'a self, name: &'a str, vm: &'a str) -> Answer<'a, ()> {
        let save = move |state: &mut State, now| {
            // As the client of the command does it: what is there is replaced.
            let _ = state.host.remove_snapshot(name);
            state.host.save_snapshot(name, vm, now).map(drop)
        };
        self.call("snapshot save", name, self.timings.save, save).boxed()
    }

    fn snapshot<'a>(&'a self, name: &'a str) -> Answer<'a, Option<SnapshotRecord>> {
        async move {
            let seen = self
                .call("snapshot inspect", name, self.timings.quick, |state, _| {
                    state.host.snapshot(name)
                })
                .await;
            match seen {
                Ok(record) => Ok(Some(record)),
                Err(RuntimeError::SnapshotNotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn snapshots(&self) -> Answer<'_, Vec<SnapshotRecord>> {
        let list = |state: &mut State, _| Ok(state.host.snapshots().cloned().collect());
        self.call("snapshot list", "", self.timings.quick, list).boxed()
    }

    fn snapshot_remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let remove = move |state: &mut State, _| state.host.remove_snapshot(name).map(drop);
        self.call("snapshot rm", name, self.timings.quick, remove).map(gone_is_fine).boxed()
    }

    fn snapshot_import<'a>(&'a self, name: &'a str, mut archive: Input) -> Answer<'a, ()> {
        async move {
            let mut bytes = Vec::new();
            let command = || "snapshot import".to_owned();
            archive
                .read_to_end(&mut bytes)
                .await
                .map_err(|source| RuntimeError::Pipe { command: command(), source })?;
            let import = |state: &mut State, now| {
                let (record, memory) = archive::read(&bytes)?;
                let _ = state.host.remove_snapshot(name);
                state.host.import_snapshot(name, record, &memory, now).map(drop)
            };
            self.call("snapshot import", name, self.timings.save, import).await
        }
        .boxed()
    }

    fn snapshot_export<'a>(&'a self, name: &'a str, mut to: Output) -> Answer<'a, ()> {
        async move {
            let export = |state: &mut State, _| {
                let record = state
                    .host
                    .snapshot(name)
                    .map_err(|_| Refusal("export: snapshot not found".into()))?;
                Ok(archive::write(&record, state.host.kept(name)))
            };
            let bytes = self.call("snapshot export", name, self.timings.save, export).await?;
            let pipe =
                |source| RuntimeError::Pipe { command: "snapshot export".to_owned(), source };
            to.write_all(&bytes).await.map_err(pipe)?;
            to.shutdown().await.map_err(pipe)
        }
        .boxed()
    }

    fn exec<'a>(
        &'a self,
        vm: &'a str,
        options: ExecOptions,
        mut streams: ExecStreams,
    ) -> Answer<'a, i32> {
        async move {
            let run = |state: &mut State, _| {
                state.host.inspect(vm)?;
                Ok(state.runs_programs)
            };
            let code = self.call("vm exec", vm, self.timings.quick, run).await?;
            let detail = "exec: vsock not configured for this VM".to_owned();
            let code = code.ok_or(RuntimeError::NoGuestDaemon { vm: vm.to_owned(), detail })?;
            if let Some(stdout) = &mut streams.stdout {
                let line = format!("{}\n", options.argv.join(" "));
                let pipe = |source| RuntimeError::Pipe { command: "vm exec".to_owned(), source };
                stdout.write_all(line.as_bytes()).await.map_err(pipe)?;
                stdout.shutdown().await.map_err(pipe)?;
            }
            Ok(code)
        }
        .boxed()
    }

    fn logs<'a>(&'a self, vm: &'a str, _options: LogOptions, mut to: Output) -> Answer<'a, ()> {
        async move {
            let vm = self
                .call("vm logs", vm, self.timings.quick, |state, _| state.host.inspect(vm))
                .await?;
            let pipe = |source| RuntimeError::Pipe { command: "vm logs".to_owned(), source };
            to.write_all(format!("{} booted\n", vm.name()).as_bytes()).await.map_err(pipe)?;
            to.shutdown().await.map_err(pipe)
        }
        .boxed()
    }

    fn console(&self, vm: &VmRecord) -> PathBuf {
        match &self.state().consoles {
            Some(folder) => folder.join(format!("{}.sock", vm.name())),
            None => PathBuf::from("/nonexistent").join(&vm.id).join("console.sock"),
        }
    }

    fn disk_file(&self, _vm: &VmRecord) -> Option<PathBuf> {
        None
    }

    fn is_cloud_image(&self, vm: &VmRecord) -> bool {
        vm.config.image_type == "cloudimg"
    }
}
