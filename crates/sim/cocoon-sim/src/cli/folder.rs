//! The folder of a simulated host.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use roost_clock::{Clock, SystemClock};
use roost_microvm::{VmRecord, VmState};
use rustix::process::{Pid, Signal, kill_process};

use crate::fault::{Fault, Faults};
use crate::host::{Host, Refusal};

/// Leases last a day.
const LEASE_SECONDS: i64 = 24 * 60 * 60;

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
fn io_error(error: io::Error) -> Refusal {
    Refusal(format!("host folder: {error}"))
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes the command line into the journal.
    pub(super) fn note(&self, argv: &[String]) -> Result<(), Refusal> {
        fs::create_dir_all(&self.path).map_err(io_error)?;
        let line = serde_json::to_string(argv).unwrap_or_default() + "\n";
        let journal =
            OpenOptions::new().create(true).append(true).open(self.path.join("journal.jsonl"));
        journal.and_then(|mut file| file.write_all(line.as_bytes())).map_err(io_error)
    }

    /// The host, for one caller at a time.
    pub(super) fn lock(&self) -> Result<Locked<'_>, Refusal> {
        fs::create_dir_all(&self.path).map_err(io_error)?;
        let lock = File::create(self.path.join("lock")).map_err(io_error)?;
        lock.lock().map_err(io_error)?;
        let model = match fs::read(self.path.join("host.json")) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| Refusal(format!("host.json: {error}")))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Host::default(),
            Err(error) => return Err(io_error(error)),
        };
        Ok(Locked { folder: self, model, _lock: lock })
    }

    /// Where a VM's files are: as below `cocoon`'s run folder.
    pub(super) fn of_vm(&self, vm: &VmRecord) -> PathBuf {
        self.path.join("run").join(vm.hypervisor.folder()).join(&vm.id)
    }

    fn write(&self, name: &str, text: &[u8]) -> Result<(), Refusal> {
        let fresh = self.path.join(format!("{name}.new"));
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, self.path.join(name)))
            .map_err(io_error)
    }
}

/// The host under its lock.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    folder: &'a Folder,
    pub(super) model: Host,
    _lock: File,
}

impl Locked<'_> {
    pub(super) fn store(&self) -> Result<ExitCode, Refusal> {
        let text =
            serde_json::to_vec_pretty(&self.model).map_err(|error| Refusal(error.to_string()))?;
        self.folder.write("host.json", &text)?;
        self.write_leases()?;
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn take_fault(&self, verb: &str) -> Result<Option<Fault>, Refusal> {
        let Ok(text) = fs::read(self.folder.path.join("faults.json")) else { return Ok(None) };
        let mut faults: Faults = serde_json::from_slice(&text)
            .map_err(|error| Refusal(format!("faults.json: {error}")))?;
        let fault = faults.take(verb);
        if fault.is_some() {
            self.folder.write("faults.json", &serde_json::to_vec(&faults).unwrap_or_default())?;
        }
        Ok(fault)
    }

    /// Starts the process that stands for the VM, and makes its files.
    pub(super) fn begin(&mut self, vm: &VmRecord) -> Result<VmRecord, Refusal> {
        let folder = self.folder.of_vm(vm);
        fs::create_dir_all(folder.join("root/tmp")).map_err(io_error)?;
        let disk = if vm.config.image_type == "cloudimg" { "overlay.qcow2" } else { "cow.raw" };
        fs::write(folder.join(disk), b"disk").map_err(io_error)?;
        let log = OpenOptions::new().create(true).append(true).open(folder.join("console.log"));
        log.and_then(|mut file| writeln!(file, "{} booted", vm.name())).map_err(io_error)?;
        let child = Command::new(std::env::current_exe().map_err(io_error)?)
            .arg(super::console::VERB)
            .arg(&folder)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(io_error)?;
        self.model.set_process(&vm.id, child.id());
        self.model.inspect(&vm.id)
    }

    pub(super) fn end(&self, vm: &VmRecord) {
        if self.is_alive(vm)
            && let Some(pid) = i32::try_from(vm.pid).ok().and_then(Pid::from_raw)
        {
            // It may have ended in this very moment.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    pub(super) fn forget(&self, vm: &VmRecord) {
        // What is left of a VM's folder harms nobody.
        let _ = fs::remove_dir_all(self.folder.of_vm(vm));
    }

    /// Whether the VM's own process runs: not one that was given its number later.
    pub(super) fn is_alive(&self, vm: &VmRecord) -> bool {
        is_alive(&self.folder.of_vm(vm), vm.pid)
    }

    /// The record with the state that is true.
    pub(super) fn seen(&self, vm: &VmRecord) -> VmRecord {
        let mut vm = vm.clone();
        if vm.state.is_running() && !self.is_alive(&vm) {
            vm.state = VmState::Stale;
        }
        vm
    }

    /// Cards without a static address have one of the DHCP server's.
    fn write_leases(&self) -> Result<(), Refusal> {
        let expiry = SystemClock.now().as_second() + LEASE_SECONDS;
        let expiry = jiff::Timestamp::from_second(expiry).unwrap_or_default().to_string();
        let row = |vm: &VmRecord| {
            let mac = vm.mac()?;
            let last: Vec<u8> =
                mac.split(':').filter_map(|part| u8::from_str_radix(part, 16).ok()).collect();
            // Loopback, so that probes by TCP reach what a test serves there.
            let ip = format!("127.{}.{}.1", last.get(3)?, last.get(4)?);
            Some(serde_json::json!({"mac": mac, "ip": ip, "expiry": expiry}))
        };
        let rows: Vec<_> =
            self.model.vms().filter(|vm| vm.address().is_none()).filter_map(row).collect();
        let text = if rows.is_empty() {
            "null".into()
        } else {
            serde_json::to_vec_pretty(&rows).unwrap_or_default()
        };
        self.folder.write("leases.json", &text)
    }
}

fn is_alive(folder: &Path, pid: u32) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let is_ours = fs::read_link(process.join("cwd"))
        .is_ok_and(|cwd| fs::canonicalize(folder).is_ok_and(|folder| folder == cwd));
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    pid != 0 && is_ours && state != Some('Z')
}
