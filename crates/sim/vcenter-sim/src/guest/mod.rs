//! What runs inside VMs: systems that boot, tools, customization, programs and files.

mod behaviour;
mod boots;
mod call;
mod customization;
mod dhcp;
mod exec;
mod file;
mod guestinfo;
mod lifecycle;
mod process;
mod script;
mod shell;
mod state;
mod transfer;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use roost_vim_wire::MoRef;

pub use behaviour::{AddressBehaviour, GuestBehaviour};
pub use boots::GuestBoot;
pub(crate) use call::call;
pub(crate) use customization::Identity;
pub(crate) use dhcp::Dhcp;
pub use dhcp::DhcpRange;
pub(crate) use file::{GuestFiles, guest_path};
pub(crate) use lifecycle::{boot, cards, cards_changed, resume, stop};
pub(crate) use process::Process;
pub use script::{GuestEffect, GuestProgram, GuestReply, GuestRun, GuestScript, GuestWork};
pub(crate) use state::{Guest, GuestAddress, ToolsState};
pub(crate) use transfer::guest_file;

use crate::options::Options;
use crate::world::World;

/// What a program started in a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GuestMode {
    /// Decided by a script of the test, or by a few built-in rules.
    #[default]
    Scripted,
    /// A child process on this machine.
    Exec,
}

/// How many started programs are remembered for whoever asks afterwards.
const REMEMBERED: usize = 10_000;

/// What guests hold beside what their VMs' tools report.
pub(crate) struct Guests {
    mode: GuestMode,
    /// Whether programs get namespaces of their own.
    is_confined: bool,
    script: Option<Arc<dyn GuestScript>>,
    machines: HashMap<MoRef, Machine>,
    transfers: transfer::Transfers,
    /// Where the directories of guests are that execute.
    root: Option<PathBuf>,
    /// Every program that was started, oldest first.
    started: VecDeque<GuestProgram>,
    /// What was booted, oldest first.
    boots: VecDeque<GuestBoot>,
}

/// The inside of one VM.
#[derive(Debug)]
pub(crate) struct Machine {
    pub processes: Vec<Process>,
    next_pid: i64,
    pub files: GuestFiles,
    /// The guest paths that were written through guest operations.
    uploaded: BTreeSet<String>,
    /// Around the programs of a guest that executes as root, from the first one on.
    confinement: Option<exec::Confinement>,
}

/// Distinguishes the simulators of one process.
static SIMULATORS: AtomicU64 = AtomicU64::new(0);

impl Guests {
    pub(crate) fn new(options: &Options) -> Self {
        let number = SIMULATORS.fetch_add(1, Ordering::Relaxed);
        let name = format!("roost-guests-{}-{number}", std::process::id());
        let is_confined = exec::is_needed() && !options.unconfined_guests;
        let root = (options.guests == GuestMode::Exec).then(|| home(is_confined).join(name));
        Self {
            mode: options.guests,
            is_confined,
            script: None,
            machines: HashMap::new(),
            transfers: transfer::Transfers::default(),
            root,
            started: VecDeque::new(),
            boots: VecDeque::new(),
        }
    }

    pub(crate) fn set_script(&mut self, script: Arc<dyn GuestScript>) {
        self.script = Some(script);
    }

    pub(crate) fn machine(&self, vm: &MoRef) -> Option<&Machine> {
        self.machines.get(vm)
    }

    /// The inside of a VM, which begins to exist when somebody looks.
    pub(crate) fn machine_mut(&mut self, vm: &MoRef) -> &mut Machine {
        let files = match &self.root {
            Some(root) => GuestFiles::Directory(root.join(vm.id.as_ref())),
            None => GuestFiles::Memory(BTreeMap::new()),
        };
        // Low numbers belong to the system.
        self.machines.entry(vm.clone()).or_insert_with(|| Machine {
            processes: Vec::new(),
            next_pid: 1000,
            files,
            uploaded: BTreeSet::new(),
            confinement: None,
        })
    }

    fn note(&mut self, program: &GuestProgram) {
        if self.started.len() == REMEMBERED {
            self.started.pop_front();
        }
        self.started.push_back(program.clone());
    }

    pub(crate) fn started(&self) -> impl Iterator<Item = &GuestProgram> {
        self.started.iter()
    }

    /// What ends with a session: the transfers it began.
    pub(crate) fn end_session(&mut self, session: &str) {
        self.transfers.end_session(session);
    }
}

/// Where the directories of guests go. A confined guest sees a `/tmp` of its own, so its directory must be elsewhere.
fn home(is_confined: bool) -> PathBuf {
    let temporary = std::env::temp_dir();
    if is_confined && temporary.starts_with("/tmp") { "/var/tmp".into() } else { temporary }
}

/// The VM is gone, and its disk with it.
pub(crate) fn forget(world: &mut World, vm: &MoRef) {
    process::stop_all(world, vm);
    if let Some(machine) = world.guests.machines.remove(vm)
        && let GuestFiles::Directory(directory) = machine.files
    {
        // What is left of it goes with the simulator.
        let _ = std::fs::remove_dir_all(directory);
    }
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guests")
            .field("mode", &self.mode)
            .field("machines", &self.machines.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        // Children first: they may be writing there.
        self.machines.clear();
        if let Some(root) = &self.root {
            let _ = std::fs::remove_dir_all(root);
        }
    }
}
