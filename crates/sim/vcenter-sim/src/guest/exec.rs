//! Programs as child processes of this machine.
//!
//! A program runs as the tools would run it: through `/bin/bash`, with exactly the given environment. Four things differ
//! from a real guest, and this is no sandbox: the program has the rights of the simulator's user. A simulator that runs as root
//! confines its guests; see [`Confinement`].
//!
//! - `HOME`, `TMPDIR`, `TMP` and `TEMP` always name folders of the guest's own, because programs remove what is in them.
//! - Paths of files that were put into the guest through guest operations, and those below `/usr/local/bin` and `/tmp`, are
//!   translated where the program's path or its arguments (a script, say) name them; its working directory is translated,
//!   too. Any other path is one of this machine, and so is every path that stands in a file.
//! - `PATH` is led by a directory with commands that must not reach this machine: `shutdown`, `poweroff`, `halt`, `reboot`
//!   and `systemctl` leave a note instead, and `sudo` runs what follows as the same user. Those commands are replaced also
//!   where they are called by their usual absolute paths. When the program that left the note exits, the VM goes down. The
//!   guest's own `/usr/local/bin` comes next.
//! - What it prints goes to a file, `.roost/output/<pid>.log` in the guest's directory.
//!
//! Every program leads a process group of its own, which is killed when its VM is powered off or destroyed, when the program
//! is terminated, and when the simulator ends.

mod confine;
mod translate;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Command;

use crate::guest::file::PRIVATE;
use crate::guest::process::default_environment;
use crate::guest::{GuestProgram, guest_path};

pub(crate) use self::confine::{Confinement, is_needed};
use self::translate::{OWN_DIRECTORIES, translate};

/// The process group of a program.
#[derive(Debug)]
pub(crate) struct Child {
    group: Option<Pid>,
}

impl Child {
    /// Whether anything that it started still runs. A group without members may belong to somebody else tomorrow.
    pub(crate) fn has_members(&self) -> bool {
        self.group.is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    /// Ends the program and all that it started. A group that is gone already is what was wanted.
    pub(crate) fn kill(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a program asked of its VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PowerRequest {
    Off,
    Reboot,
}

/// Starts a program in the guest whose directory is `root`. `ended` is told its exit code, what it asked for, and what it printed.
pub(super) fn start(
    root: &Path,
    program: &GuestProgram,
    uploaded: &BTreeSet<String>,
    pid: i64,
    confinement: Option<&Confinement>,
    ended: impl FnOnce(i32, Option<PowerRequest>, String) + Send + 'static,
) -> io::Result<Child> {
    let corner = root.join(PRIVATE);
    let commands = prepare(root, &corner)?;
    fs::create_dir_all(root.join(home(&program.user).trim_start_matches('/')))?;
    let log = corner.join("output").join(format!("{pid}.log"));
    let output = File::create(&log)?;
    let directory =
        program.directory.as_deref().and_then(guest_path).unwrap_or_else(|| home(&program.user));
    let directory = root.join(directory.trim_start_matches('/'));
    fs::create_dir_all(&directory)?;
    let line = format!("{} {}", program.path, program.arguments);
    let line = translate(&line, root, uploaded, &commands);
    let mut command = match confinement.map(Confinement::enter) {
        Some([enter, options @ ..]) => {
            let mut command = Command::new(enter);
            command.args(options).arg("/bin/bash");
            command
        }
        None => Command::new("/bin/bash"),
    };
    // Entering a namespace leaves the working directory behind, so the shell goes there itself.
    let mut child = command
        .args(["-c", "cd \"$0\" && exec /bin/bash -c \"$1\""])
        .arg(&directory)
        .arg(line)
        .env_clear()
        .envs(environment(program, root, &commands))
        .current_dir(&directory)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    tokio::spawn(async move {
        let status = child.wait().await;
        let code = status.map_or(-1, exit_code);
        let output = fs::read(&log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        ended(code, take_request(&corner), output);
    });
    Ok(Child { group })
}

/// Namespaces for the guest whose directory is `root`.
pub(super) fn confine(root: &Path) -> io::Result<Confinement> {
    prepare(root, &root.join(PRIVATE))?;
    Confinement::new(root)
}

/// A program that a signal ended is reported as a shell reports it.
fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn home(user: &str) -> String {
    if user == "root" { "/root".into() } else { format!("/home/{user}") }
}

/// Exactly what was given, but for the folders that programs clean up, and for `PATH`: without the simulator's commands in front, a guest could shut this machine down,
/// and what it installs for itself must be found before what this machine has.
fn environment(program: &GuestProgram, root: &Path, commands: &Path) -> Vec<(String, String)> {
    let defaults;
    let given = if program.environment.is_empty() {
        defaults = default_environment(&program.user);
        &defaults
    } else {
        &program.environment
    };
    let mut variables: Vec<(String, String)> = given
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let own = |guest: &str| root.join(guest.trim_start_matches('/')).display().to_string();
    let asked = variables.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.as_str());
    let home = asked.and_then(guest_path).unwrap_or_else(|| home(&program.user));
    set(&mut variables, "HOME", own(&home));
    for name in TEMPORARY {
        set(&mut variables, name, own("/tmp"));
    }
    let usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let own = variables
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or(usual, |(_, value)| value.as_str());
    let path = format!("{}:{}/usr/local/bin:{own}", commands.display(), root.display());
    set(&mut variables, "PATH", path);
    variables
}

/// The names that programs look for a temporary directory under.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

fn set(variables: &mut Vec<(String, String)>, name: &str, value: String) {
    match variables.iter_mut().find(|(known, _)| known == name) {
        Some((_, slot)) => *slot = value,
        None => variables.push((name.into(), value)),
    }
}

const NOTE_OFF: &str = "case \" $* \" in *\" -c \"*) rm -f \"$note\" ;; *\" -r \"*) echo reboot > \"$note\" ;; *) echo off > \"$note\" ;; esac";
const NOTE_REBOOT: &str = "echo reboot > \"$note\"";
const SYSTEMCTL: &str = "case \" $* \" in *poweroff*|*halt*) echo off > \"$note\" ;; *reboot*) echo reboot > \"$note\" ;; *) exit 1 ;; esac";
const SUDO: &str = "while [ \"${1#-}\" != \"$1\" ]; do shift; done; exec \"$@\"";

const COMMANDS: [(&str, &str); 6] = [
    ("shutdown", NOTE_OFF),
    ("poweroff", NOTE_OFF),
    ("halt", NOTE_OFF),
    ("reboot", NOTE_REBOOT),
    ("systemctl", SYSTEMCTL),
    ("sudo", SUDO),
];

/// Makes the guest's own directories and the simulator's corner. Returns where its commands are.
fn prepare(root: &Path, corner: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    for directory in OWN_DIRECTORIES {
        fs::create_dir_all(root.join(directory.trim_start_matches('/')))?;
    }
    let commands = corner.join("bin");
    fs::create_dir_all(corner.join("output"))?;
    if !commands.is_dir() {
        fs::create_dir_all(&commands)?;
        let note = corner.join("power").display().to_string();
        for (name, body) in COMMANDS {
            let path = commands.join(name);
            fs::write(&path, format!("#!/bin/sh\nnote='{note}'\n{body}\n"))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(commands)
}

/// The note that a program may have left; it counts once.
fn take_request(corner: &Path) -> Option<PowerRequest> {
    let note = corner.join("power");
    let text = fs::read_to_string(&note).ok()?;
    let _ = fs::remove_file(note);
    match text.trim() {
        "off" => Some(PowerRequest::Off),
        "reboot" => Some(PowerRequest::Reboot),
        _ => None,
    }
}
