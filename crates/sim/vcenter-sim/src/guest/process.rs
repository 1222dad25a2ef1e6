//! Programs in guests: started, listed, terminated, ended.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use roost_vim_wire::MoRef;
use roost_vim_wire::types::{GuestProcessInfo, GuestProgramSpec};
use tokio::task::AbortHandle;

use crate::call::{CallContext, Failure};
use crate::event::Scene;
use crate::guest::exec::Child;
use crate::guest::{
    GuestEffect, GuestMode, GuestProgram, GuestReply, GuestRun, GuestWork, exec, guest_path, shell,
};
use crate::vm::power::{self, Request};
use crate::world::{Handle, World};

/// How long an ended program stays listed.
const KEPT: Duration = Duration::from_mins(5);

/// A program that runs or has run.
#[derive(Debug)]
pub(crate) struct Process {
    pub pid: i64,
    pub program: GuestProgram,
    pub started: Timestamp,
    pub ended: Option<(Timestamp, i32)>,
    pub output: String,
    /// In guests that execute.
    pub child: Option<Child>,
    work: Option<AtWork>,
}

/// The task of a program that works. Ends with its program.
#[derive(Debug)]
struct AtWork(AbortHandle);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Process {
    fn info(&self) -> GuestProcessInfo {
        let name = self.program.path.rsplit('/').next().unwrap_or_default();
        let mut command = format!("\"{}\"", self.program.path);
        if !self.program.arguments.is_empty() {
            let _ = write!(command, " {}", self.program.arguments);
        }
        GuestProcessInfo {
            name: name.into(),
            pid: self.pid,
            owner: self.program.user.clone(),
            cmd_line: command,
            start_time: self.started,
            end_time: self.ended.map(|(time, _)| time),
            exit_code: self.ended.map(|(_, code)| code),
        }
    }
}

pub(super) fn start(
    world: &mut World,
    cx: &CallContext<'_>,
    vm: &MoRef,
    user: &str,
    spec: GuestProgramSpec,
) -> Result<i64, Failure> {
    let given: Vec<String> = spec.env_variables.into_iter().map(|variable| variable.0).collect();
    let program = GuestProgram {
        vm: world.inventory.name(vm).unwrap_or_default().into(),
        user: user.into(),
        path: spec.program_path,
        arguments: spec.arguments,
        directory: spec.working_directory.filter(|directory| !directory.is_empty()),
        environment: given,
    };
    if program.path.trim().is_empty() {
        return Err(Failure::invalid_argument("spec.programPath"));
    }
    world.guests.note(&program);
    let pid = match world.guests.mode {
        GuestMode::Scripted => start_scripted(world, cx.handle, vm, program)?,
        GuestMode::Exec => start_child(world, cx.handle, vm, program)?,
    };
    Ok(pid)
}

/// The environment of a program for which none was given.
pub(super) fn default_environment(user: &str) -> Vec<String> {
    let home = if user == "root" { "/root".to_owned() } else { format!("/home/{user}") };
    vec![
        format!("HOME={home}"),
        "LANG=C.UTF-8".into(),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
        "SHELL=/bin/bash".into(),
        format!("USER={user}"),
    ]
}

fn start_scripted(
    world: &mut World,
    handle: &Handle,
    vm: &MoRef,
    mut program: GuestProgram,
) -> Result<i64, Failure> {
    if program.environment.is_empty() {
        program.environment = default_environment(&program.user);
    }
    let script = world.guests.script.clone();
    let reply = script
        .and_then(|script| script.run(&program))
        .unwrap_or_else(|| built_in(world, vm, &program).into());
    let run = match reply {
        GuestReply::Runs(run) => run,
        GuestReply::Works(work) => return Ok(start_work(world, handle, vm, program, &work)),
        GuestReply::NotFound => {
            let message = format!("File {} was not found", program.path);
            return Err(Failure::of("FileNotFound", message).with("file", &program.path));
        }
        GuestReply::Denied => {
            return Err(Failure::of(
                "GuestPermissionDenied",
                "The guest user may not run this program.",
            ));
        }
    };
    let pid = enter(world, vm, program, handle.now(), None);
    let Some(boot) = world.inventory.vms.get(vm).map(|row| row.guest.boot) else { return Ok(pid) };
    if !run.hangs {
        let (vm, takes) = (vm.clone(), run.takes);
        handle.after(takes, move |world, handle| {
            if world.inventory.vms.get(&vm).is_some_and(|row| row.guest.boot == boot) {
                end_scripted(world, handle, &vm, pid, run);
            }
        });
    }
    Ok(pid)
}

fn start_work(
    world: &mut World,
    handle: &Handle,
    vm: &MoRef,
    program: GuestProgram,
    work: &GuestWork,
) -> i64 {
    let pid = enter(world, vm, program, handle.now(), None);
    let (weak, on, work) = (Arc::downgrade(handle), vm.clone(), work.begin());
    let task = tokio::spawn(async move {
        let run = work.await;
        tokio::time::sleep(run.takes).await;
        if let Some(handle) = weak.upgrade().filter(|_| !run.hangs) {
            handle.with(|world| end_scripted(world, &handle, &on, pid, run));
        }
    });
    let process = world.guests.machine_mut(vm).processes.last_mut();
    if let Some(process) = process.filter(|process| process.pid == pid) {
        process.work = Some(AtWork(task.abort_handle()));
    }
    pid
}

fn built_in(world: &World, vm: &MoRef, program: &GuestProgram) -> GuestRun {
    let host_name = world.inventory.vms.get(vm).and_then(|row| row.guest.host_name.clone());
    let read = |path: &str| {
        let content = world.guests.machine(vm)?.files.read(&guest_path(path)?)?;
        Some(String::from_utf8_lossy(&content).into_owned())
    };
    shell::run(program, host_name.as_deref().unwrap_or("localhost"), &read)
}

fn enter(
    world: &mut World,
    vm: &MoRef,
    program: GuestProgram,
    now: Timestamp,
    child: Option<Child>,
) -> i64 {
    let machine = world.guests.machine_mut(vm);
    machine.next_pid += 1;
    let pid = machine.next_pid;
    machine.processes.push(Process {
        pid,
        program,
        started: now,
        ended: None,
        output: String::new(),
        child,
        work: None,
    });
    pid
}

fn end_scripted(world: &mut World, handle: &Handle, vm: &MoRef, pid: i64, run: GuestRun) {
    let now = handle.now();
    let machine = world.guests.machine_mut(vm);
    let Some(process) =
        machine.processes.iter_mut().find(|process| process.pid == pid && process.ended.is_none())
    else {
        return;
    };
    process.ended = Some((now, run.exit_code));
    process.output = run.output;
    for effect in run.effects {
        match effect {
            GuestEffect::PowerOff => request_power(world, handle, vm, Request::ShutDown),
            GuestEffect::Reboot => request_power(world, handle, vm, Request::Reboot),
            GuestEffect::WriteFile { path, content } => {
                if let Some(path) = guest_path(&path) {
                    let files = &mut world.guests.machine_mut(vm).files;
                    let written = files.write(&path, Bytes::from(content), 0o644, now);
                    written.unwrap_or_else(
                        |error| tracing::warn!(%error, path, "a guest could not write a file"),
                    );
                }
            }
        }
    }
}

/// The guest itself decides to go down.
fn request_power(world: &mut World, handle: &Handle, vm: &MoRef, request: Request) {
    power::guest_acts(world, handle, Scene::system(handle.now()), vm, request);
}

fn start_child(
    world: &mut World,
    handle: &Handle,
    vm: &MoRef,
    program: GuestProgram,
) -> Result<i64, Failure> {
    let is_confined = world.guests.is_confined;
    let machine = world.guests.machine_mut(vm);
    let (pid, known) = (machine.next_pid + 1, machine.uploaded.clone());
    let Some(root) = machine.files.real_path("/") else {
        return Err(Failure::of(
            "GuestOperationsUnavailable",
            "The guest has no directory on this machine.",
        ));
    };
    let weak = Arc::downgrade(handle);
    let (on, runtime) = (vm.clone(), weak);
    let ended = move |code: i32, request: Option<exec::PowerRequest>, output: String| {
        if let Some(handle) = runtime.upgrade() {
            handle.with(|world| end_child(world, &handle, &on, pid, code, request, output));
        }
    };
    if is_confined && machine.confinement.is_none() {
        let confinement = exec::confine(&root).map_err(|error| {
            let message = format!(
                "Programs would run as root on this machine, and the guest cannot be confined: {error}"
            );
            Failure::of("GuestOperationsUnavailable", message)
        })?;
        machine.confinement = Some(confinement);
    }
    let around = machine.confinement.as_ref();
    let child = exec::start(&root, &program, &known, pid, around, ended).map_err(|error| {
        let message = format!("Starting {}: {error}", program.path);
        Failure::of("FileNotFound", message).with("file", &program.path)
    })?;
    Ok(enter(world, vm, program, handle.now(), Some(child)))
}

fn end_child(
    world: &mut World,
    handle: &Handle,
    vm: &MoRef,
    pid: i64,
    code: i32,
    request: Option<exec::PowerRequest>,
    output: String,
) {
    let now = handle.now();
    let Some(machine) = world.guests.machines.get_mut(vm) else { return };
    let Some(process) =
        machine.processes.iter_mut().find(|process| process.pid == pid && process.ended.is_none())
    else {
        return;
    };
    process.ended = Some((now, code));
    process.output = output;
    if process.child.as_ref().is_some_and(|child| !child.has_members()) {
        process.child = None;
    }
    // What it left running in the background stays, as in a real guest; only the VM's end takes it along.
    match request {
        Some(exec::PowerRequest::Off) => request_power(world, handle, vm, Request::ShutDown),
        Some(exec::PowerRequest::Reboot) => request_power(world, handle, vm, Request::Reboot),
        None => {}
    }
}

pub(super) fn list(
    world: &mut World,
    now: Timestamp,
    vm: &MoRef,
    pids: &[i64],
) -> Vec<GuestProcessInfo> {
    let kept = SignedDuration::try_from(KEPT).unwrap_or(SignedDuration::MAX);
    let machine = world.guests.machine_mut(vm);
    machine.processes.retain(|process| {
        // A group that may still run in the background is kept until the VM ends.
        process.child.is_some()
            || process.ended.is_none_or(|(ended, _)| now.duration_since(ended) < kept)
    });
    let is_listed = |process: &&Process| {
        let is_recent = process.ended.is_none_or(|(ended, _)| now.duration_since(ended) < kept);
        is_recent && (pids.is_empty() || pids.contains(&process.pid))
    };
    machine.processes.iter().filter(is_listed).map(Process::info).collect()
}

pub(super) fn terminate(
    world: &mut World,
    now: Timestamp,
    vm: &MoRef,
    pid: i64,
) -> Result<(), Failure> {
    let machine = world.guests.machine_mut(vm);
    let running =
        machine.processes.iter_mut().find(|process| process.pid == pid && process.ended.is_none());
    let Some(process) = running else {
        let message = format!("The process {pid} is not running in the guest.");
        return Err(Failure::of("GuestProcessNotFound", message).with("pid", &pid));
    };
    if let Some(child) = &process.child {
        child.kill();
    }
    process.work = None;
    // 128 and the number of the signal, as a shell reports it.
    process.ended = Some((now, 137));
    Ok(())
}

/// The VM went off: nothing runs in it any more.
pub(super) fn stop_all(world: &mut World, vm: &MoRef) {
    if let Some(machine) = world.guests.machines.get_mut(vm) {
        for child in machine.processes.drain(..).filter_map(|process| process.child) {
            child.kill();
        }
        machine.confinement = None;
    }
}
