//! From nothing to a VM that runs, and back.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use super::accelerate;
use super::argv::{self, Start, command_line};
use super::logs;
use super::qmp::{Qmp, pipe};
use super::snapshot::copy_files;
use super::store::{
    BOOT_FILES, Hardware, MEMORY, Machine, OVERLAY, SEED, disk_in, remove_folder, share,
    snapshot_in,
};
use super::{Inner, process_ended};
use crate::error::RuntimeError;
use crate::record::{Backend, EventKind, Nic, SnapshotRecord, StaticAddress, VmRecord, VmState};
use crate::runtime::{CloneFrom, CloneOptions, RunOptions};

/// QEMU is ready in a second; a host that is busy takes its time.
const LAUNCH_WITHIN: Duration = Duration::from_mins(2);
/// Between being told to end and being ended.
const QUIT_WITHIN: Duration = Duration::from_secs(5);
/// Addresses of VMs on this host. Loopback, so that nobody else can be meant and no right is needed.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 88, 0, 1);
const LAST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 88, 255, 254);
/// cloud-init reads it at the first boot: the agent makes `kubectl exec` work.
const USER_DATA: &str = "#cloud-config\npackages: [qemu-guest-agent]\nruncmd:\n- [systemctl, enable, --now, qemu-guest-agent]\n";

impl Inner {
    /// Takes away what a process that died was in the middle of.
    pub(super) fn sweep(&self) -> io::Result<()> {
        for folder in self.store.unfinished() {
            end_at_once(&folder);
            remove_folder(&folder)?;
        }
        self.store.drafts().iter().try_for_each(|draft| remove_folder(draft))
    }

    pub(super) async fn run(&self, options: RunOptions) -> Result<VmRecord, RuntimeError> {
        let image = self.store.image_folder(&options.image);
        if self.image(&options.image).is_none() {
            return Err(RuntimeError::ImageNotFound { image: options.image });
        }
        let hardware = Hardware {
            machine: self.settings.machine.clone(),
            cpu: self.settings.cpu.clone(),
            mac: String::new(),
        };
        let mut machine = self.new_machine(&options.name, hardware).await?;
        let config = &mut machine.vm.config;
        let cpus = options.cpus.and_then(|cpus| u32::try_from(cpus).ok()).filter(|cpus| *cpus > 0);
        config.cpu = cpus.unwrap_or(self.settings.cpus);
        config.memory = options.memory.unwrap_or(self.settings.memory);
        config.image = options.image;
        let folder = self.store.vm_folder(&machine.vm.id);
        let making = Making::new(&folder);
        let files = |source| pipe("run", source);
        for file in BOOT_FILES.iter().filter(|file| image.join(file).exists()) {
            share(&image.join(file), &folder.join(file)).map_err(files)?;
        }
        if let Some((disk, format)) = disk_in(&image) {
            self.make_overlay(&disk, format, &folder, options.storage.as_deref()).await?;
            write_seed(&folder, &machine.vm).map_err(files)?;
        }
        self.launch(&mut machine, Start::Boot).await?;
        machine.hardware.machine = self.exact_machine(&machine).await?;
        self.finish(making, machine)
    }

    pub(super) async fn clone_vm(&self, options: CloneOptions) -> Result<VmRecord, RuntimeError> {
        let (from, named) = match &options.from {
            CloneFrom::Snapshot(name) => (self.store.snapshot_folder(name), name.clone()),
            CloneFrom::Folder(folder) => (folder.clone(), folder.display().to_string()),
        };
        let (snapshot, hardware) = snapshot_in(&from)
            .map_err(|_| RuntimeError::SnapshotNotFound { snapshot: named.clone() })?;
        if options.pull && from.join(OVERLAY).exists() {
            self.ensure_image(&snapshot.image, false).await?;
        }
        let mut machine = self.new_machine(&options.name, hardware).await?;
        configure(&mut machine, &snapshot);
        let folder = self.store.vm_folder(&machine.vm.id);
        let making = Making::new(&folder);
        copy_files(&from, &folder).await.map_err(|source| pipe("clone", source))?;
        if folder.join(OVERLAY).exists() {
            self.rebase(&snapshot.image, &folder).await?;
            write_seed(&folder, &machine.vm).map_err(|source| pipe("clone", source))?;
        }
        let memory = from.join(MEMORY);
        if memory.exists() {
            self.launch(&mut machine, Start::Memory).await?;
            self.read_memory(&folder, &memory).await?;
        } else {
            self.launch(&mut machine, Start::Boot).await?;
        }
        self.finish(making, machine)
    }

    /// A folder and a record that say what is being made, under a name that nobody else has.
    async fn new_machine(&self, name: &str, hardware: Hardware) -> Result<Machine, RuntimeError> {
        let _one = self.naming.lock().await;
        let others = self.store.machines();
        if others.iter().any(|other| other.vm.name() == name) {
            return Err(RuntimeError::NameTaken { name: name.to_owned() });
        }
        let taken: Vec<Ipv4Addr> = others.iter().map(Machine::address).collect();
        let all = u32::from(FIRST_ADDRESS)..=u32::from(LAST_ADDRESS);
        let address = all.map(Ipv4Addr::from).find(|address| !taken.contains(address));
        let address = address.ok_or_else(|| RuntimeError::Failed {
            command: "run".to_owned(),
            detail: "all addresses are taken".to_owned(),
        })?;
        let mut machine = Machine { hardware, ..Machine::default() };
        if machine.hardware.mac.is_empty() {
            machine.hardware.mac = mac_of(address);
        }
        let network =
            StaticAddress { ip: address.to_string(), prefix: 32, ..StaticAddress::default() };
        let card =
            Nic { mac: machine.hardware.mac.clone(), network: Some(network), ..Nic::default() };
        machine.vm = VmRecord {
            id: self.new_id(),
            hypervisor: Backend::new(Backend::QEMU),
            state: VmState::Creating,
            network_configs: vec![card],
            created_at: Some(self.clock.now()),
            ..VmRecord::default()
        };
        name.clone_into(&mut machine.vm.config.name);
        let made = fs::create_dir(self.store.vm_folder(&machine.vm.id));
        made.and_then(|()| self.store.write_machine(&machine))
            .map_err(|source| pipe("run", source))?;
        Ok(machine)
    }

    fn finish(&self, making: Making, mut machine: Machine) -> Result<VmRecord, RuntimeError> {
        machine.vm.state = VmState::Running;
        machine.vm.started_at = Some(self.clock.now());
        self.store.write_machine(&machine).map_err(|source| pipe("run", source))?;
        making.done();
        self.tell(EventKind::Added, &machine.vm);
        Ok(machine.vm)
    }

    /// Starts QEMU and waits until it answers. It is nobody's child then, and goes on without us.
    async fn launch(&self, machine: &mut Machine, start: Start) -> Result<(), RuntimeError> {
        let folder = self.store.vm_folder(&machine.vm.id);
        let program = &self.settings.binary;
        let choose = || accelerate::choose(&self.settings, &folder);
        let accelerators = self.accelerators.get_or_init(choose).await;
        let line = command_line(accelerators, machine, &folder, start);
        tracing::debug!(vm = machine.vm.name(), "{} {}", program.display(), line.join(" "));
        let mut command = Command::new(program);
        command.args(&line).current_dir("/");
        said(command, LAUNCH_WITHIN).await?;
        let pid = fs::read_to_string(folder.join(argv::PID)).unwrap_or_default();
        machine.vm.pid = pid.trim().parse().map_err(|_| RuntimeError::Failed {
            command: program.display().to_string(),
            detail: "it left no number of its process".to_owned(),
        })?;
        self.forget_agent(&machine.vm.id);
        Ok(())
    }

    /// The machine's name with its version: what `pc` means changes from release to release, and memory fits only one.
    async fn exact_machine(&self, machine: &Machine) -> Result<String, RuntimeError> {
        let (name, options) = match machine.hardware.machine.split_once(',') {
            Some((name, options)) => (name.to_owned(), format!(",{options}")),
            None => (machine.hardware.machine.clone(), String::new()),
        };
        let mut qmp = self.qmp(machine).await?;
        let all = qmp.execute("query-machines", json!({})).await?;
        let found = all.as_array().into_iter().flatten().find(|one| one["alias"] == name.as_str());
        let exact = found.and_then(|one| one["name"].as_str()).unwrap_or(&name);
        Ok(format!("{exact}{options}"))
    }

    async fn qmp(&self, machine: &Machine) -> Result<Qmp, RuntimeError> {
        Qmp::connect(&self.store.vm_folder(&machine.vm.id).join(argv::QMP)).await
    }

    pub(super) async fn start(&self, vm: &str) -> Result<(), RuntimeError> {
        let mut machine = self.machine(vm)?;
        if machine.vm.state.is_running() {
            return Ok(());
        }
        let kept = logs::keep(&self.store.vm_folder(&machine.vm.id));
        kept.map_err(|source| pipe("start", source))?;
        self.launch(&mut machine, Start::Boot).await?;
        machine.vm.state = VmState::Running;
        machine.vm.started_at = Some(self.clock.now());
        self.store.write_machine(&machine).map_err(|source| pipe("start", source))?;
        self.tell(EventKind::Modified, &machine.vm);
        Ok(())
    }

    /// The guest is asked by its power button. One that does not react is ended when its time is over.
    pub(super) async fn stop(&self, vm: &str, grace_seconds: u64) -> Result<(), RuntimeError> {
        let mut machine = match self.machine(vm) {
            Err(error) if error.is_vm_gone() => return Ok(()),
            other => other?,
        };
        if machine.vm.state.is_running() {
            let grace = Duration::from_secs(grace_seconds);
            let asked =
                async { self.qmp(&machine).await?.execute("system_powerdown", json!({})).await };
            if grace_seconds > 0 && asked.await.is_ok() {
                let _ = timeout(grace, process_ended(machine.vm.pid)).await;
            }
            self.end(&machine).await;
        }
        (machine.vm.state, machine.vm.pid) = (VmState::Stopped, 0);
        self.store.write_machine(&machine).map_err(|source| pipe("stop", source))?;
        self.forget_agent(&machine.vm.id);
        self.tell(EventKind::Modified, &machine.vm);
        Ok(())
    }

    pub(super) async fn remove(&self, vm: &str) -> Result<(), RuntimeError> {
        let machine = match self.machine(vm) {
            Err(error) if error.is_vm_gone() => return Ok(()),
            other => other?,
        };
        if machine.vm.state.is_running() {
            self.end(&machine).await;
        }
        let folder = self.store.vm_folder(&machine.vm.id);
        remove_folder(&folder).map_err(|source| pipe("remove", source))?;
        self.forget_agent(&machine.vm.id);
        self.tell(EventKind::Deleted, &machine.vm);
        Ok(())
    }

    /// Told to end, then ended.
    async fn end(&self, machine: &Machine) {
        if !self.is_alive(machine) {
            return;
        }
        let quit = async {
            let _ = self.qmp(machine).await?.execute("quit", json!({})).await;
            Ok::<_, RuntimeError>(process_ended(machine.vm.pid).await)
        };
        let _ = timeout(QUIT_WITHIN, quit).await;
        if self.is_alive(machine) {
            end_at_once(&self.store.vm_folder(&machine.vm.id));
            let _ = timeout(QUIT_WITHIN, process_ended(machine.vm.pid)).await;
        }
    }

    /// Forwards a port of the guest, also after the next start.
    pub(super) async fn reach(&self, vm: &str, port: u16) -> Result<(), RuntimeError> {
        let _one = self.naming.lock().await;
        let mut machine = self.machine(vm)?;
        if machine.ports.contains(&port) {
            return Ok(());
        }
        let rule = format!("hostfwd_add {} {}", argv::NET, argv::forward(&machine, port));
        self.qmp(&machine).await?.human(&rule).await?;
        machine.ports.insert(port);
        self.store.write_machine(&machine).map_err(|source| pipe("reach", source))
    }

    /// Whether a connection to this port of the guest stands. QEMU takes connections before the guest does.
    pub(super) async fn is_taken(&self, vm: &str, port: u16) -> Result<bool, RuntimeError> {
        let machine = self.machine(vm)?;
        let table = self.qmp(&machine).await?.report("info usernet").await?;
        Ok(has_connection(&table, port))
    }

    /// What the VM changes goes to a file of its own; the image stays as it is.
    async fn make_overlay(
        &self,
        disk: &Path,
        format: &str,
        folder: &Path,
        size: Option<&str>,
    ) -> Result<(), RuntimeError> {
        let mut command = Command::new(&self.settings.disk_tool);
        command.args(["create", "-q", "-f", "qcow2", "-F", format, "-b"]);
        command.arg(disk).arg(folder.join(OVERLAY));
        if let Some(size) = size {
            command.arg(size);
        }
        said(command, LAUNCH_WITHIN).await
    }

    /// The overlay may come from a host whose images are elsewhere.
    async fn rebase(&self, image: &str, folder: &Path) -> Result<(), RuntimeError> {
        let (disk, format) = disk_in(&self.store.image_folder(image))
            .ok_or_else(|| RuntimeError::ImageNotFound { image: image.to_owned() })?;
        let mut command = Command::new(&self.settings.disk_tool);
        command.args(["rebase", "-q", "-u", "-F", format, "-b"]);
        command.arg(disk).arg(folder.join(OVERLAY));
        said(command, LAUNCH_WITHIN).await
    }
}

/// Protocol and state, number, source address and port, destination address and port, queues.
fn has_connection(table: &str, port: u16) -> bool {
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first().is_some_and(|state| *state == "TCP[ESTABLISHED]")
            && words.get(5).is_some_and(|to| to.parse() == Ok(port))
    })
}

fn configure(machine: &mut Machine, snapshot: &SnapshotRecord) {
    let config = &mut machine.vm.config;
    (config.cpu, config.memory) = (snapshot.cpu, snapshot.memory);
    config.storage = snapshot.storage;
    config.image.clone_from(&snapshot.image);
}

/// In the range that is free for everybody's use.
fn mac_of(address: Ipv4Addr) -> String {
    let [_, b, c, d] = address.octets();
    format!("52:54:00:{b:02x}:{c:02x}:{d:02x}")
}

fn write_seed(folder: &Path, vm: &VmRecord) -> io::Result<()> {
    let seed = folder.join(SEED);
    fs::create_dir_all(&seed)?;
    let name = vm.name();
    fs::write(seed.join("meta-data"), format!("instance-id: {}\nlocal-hostname: {name}\n", vm.id))?;
    fs::write(seed.join("user-data"), USER_DATA)
}

/// Runs a program to its end. Its complaint is the failure.
async fn said(mut command: Command, limit: Duration) -> Result<(), RuntimeError> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let child =
        command.spawn().map_err(|source| RuntimeError::Start { command: name.clone(), source })?;
    let ended = timeout(limit, child.wait_with_output())
        .await
        .map_err(|_| RuntimeError::Overdue { command: name.clone(), after: limit })?;
    let ended = ended.map_err(|source| pipe(&name, source))?;
    if ended.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&ended.stderr).trim().replace('\n', "; ");
    let detail = if complaint.is_empty() { ended.status.to_string() } else { complaint };
    Err(RuntimeError::Failed { command: name, detail })
}

/// Ends the QEMU of this folder, if there is one, without asking.
fn end_at_once(folder: &Path) {
    let own = folder.join(argv::PID);
    let text = fs::read_to_string(&own).unwrap_or_default();
    let Some(pid) = text.trim().parse().ok().and_then(Pid::from_raw) else { return };
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let own = own.as_os_str().as_encoded_bytes();
    if line.split(|byte| *byte == 0).any(|word| word == own) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A VM that is being made. If it is dropped before it is done, nothing is left of it.
struct Making {
    folder: Option<PathBuf>,
}

impl Making {
    fn new(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()) }
    }

    fn done(mut self) {
        self.folder = None;
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            end_at_once(folder);
            let _ = remove_folder(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_stands_when_the_guest_has_taken_it() {
        let table = "Hub -1 (net0):\r
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r
  TCP[SYN_SENT]      19      127.88.0.1  8081       10.0.2.15  8081     0     0\r
  TCP[ESTABLISHED]   18      127.88.0.1  8080       10.0.2.15  8080     0     0\r
  TCP[HOST_FORWARD]  14      127.88.0.1  8082       10.0.2.15  8082     0     0\r\n";
        let taken: Vec<u16> = (8079..8084).filter(|port| has_connection(table, *port)).collect();
        assert_eq!(taken, [8080]);
    }
}
