//! The command line over the model: each call loads the host from its folder under a lock, does one thing, and stores it again.

mod args;
mod console;
mod events;
mod folder;
mod guest;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use roost_clock::{Clock, SystemClock};
use serde::Serialize;

use self::args::{Args, Verb};
use self::folder::{Folder, Locked};
use crate::archive;
use crate::fault::Fault;
use crate::host::Refusal;

/// Runs one command line on the host in `folder`.
///
/// A VM's process is this program again, so the program that calls this must do nothing else with its arguments.
pub fn main(folder: PathBuf, argv: Vec<String>) -> ExitCode {
    if let [verb, vm] = argv.as_slice()
        && verb == console::VERB
    {
        return console::serve(&PathBuf::from(vm));
    }
    let folder = Folder::new(folder);
    match run(&folder, argv) {
        Ok(code) => code,
        Err(Refusal(text)) => {
            eprintln!("Error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(folder: &Folder, mut argv: Vec<String>) -> Result<ExitCode, Refusal> {
    // Callers that use `sudo` work as they are.
    if argv.first().is_some_and(|word| word == "sudo") {
        argv.remove(0);
    }
    folder.note(&argv)?;
    let name: String = argv.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
    let fault =
        folder.lock()?.take_fault(&name)?.unwrap_or_else(|| Fault { times: 0, ..Fault::default() });
    if fault.hang {
        guest::hang();
    }
    std::thread::sleep(Duration::from_millis(fault.delay_ms));
    let fails =
        fault.stderr.clone().or_else(|| fault.after.then(|| "the answer was lost".to_owned()));
    if let Some(text) = fails.clone().filter(|_| !fault.after) {
        return Err(Refusal(text));
    }
    let mut out = Vec::new();
    let code = act(folder, &args::parse(&argv)?, &fault, &mut out)?;
    if let Some(text) = fails {
        return Err(Refusal(text));
    }
    if fault.garbage {
        out = b"panic: runtime error\n{\"id\":".to_vec();
    }
    if let Some(count) = fault.cut_after {
        out.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }
    write(&out)?;
    Ok(code)
}

fn write(bytes: &[u8]) -> Result<(), Refusal> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Refusal(error.to_string()))
}

fn json(out: &mut Vec<u8>, value: &impl Serialize) -> Result<ExitCode, Refusal> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(|error| Refusal(error.to_string()))?;
    out.push(b'\n');
    Ok(ExitCode::SUCCESS)
}

fn list<T: Serialize>(out: &mut Vec<u8>, items: &[T], what: &str) -> Result<ExitCode, Refusal> {
    if items.is_empty() {
        out.extend(format!("No {what} found.\n").bytes());
        return Ok(ExitCode::SUCCESS);
    }
    json(out, &items)
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn act(
    folder: &Folder,
    args: &Args,
    fault: &Fault,
    out: &mut Vec<u8>,
) -> Result<ExitCode, Refusal> {
    match &args.verb {
        Verb::Exec { vm, env, argv } => return guest::exec(folder, vm, env, argv),
        Verb::ExecHelp => {
            out.extend(b"Usage: cocoon vm exec [flags] VM -- COMMAND\n  -e, --env stringArray\n  -i, --interactive   forward stdin\n");
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Events => return events::follow(folder),
        Verb::Logs { vm, tail, follow } => return guest::logs(folder, vm, *tail, *follow),
        Verb::Import { name } => {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(|error| Refusal(error.to_string()))?;
            let (record, memory) = archive::read(&bytes)?;
            let mut host = folder.lock()?;
            host.model.import_snapshot(name, record, &memory, now())?;
            return host.store();
        }
        Verb::ImageImport { name } => {
            io::copy(&mut io::stdin().lock(), &mut io::sink())
                .map_err(|error| Refusal(error.to_string()))?;
            let mut host = folder.lock()?;
            host.model.put_image(name, "cloudimg", now());
            return host.store();
        }
        _ => {}
    }
    let mut host = folder.lock()?;
    let code = change(&mut host, args, fault, out)?;
    host.store()?;
    Ok(code)
}

fn change(
    host: &mut Locked<'_>,
    args: &Args,
    fault: &Fault,
    out: &mut Vec<u8>,
) -> Result<ExitCode, Refusal> {
    let done = Ok(ExitCode::SUCCESS);
    match &args.verb {
        Verb::Run(options) => {
            let vm = host.model.run(options, now())?;
            let vm = host.begin(&vm)?;
            json(out, &vm)
        }
        Verb::Clone(options) => {
            let vm = host.model.clone_vm(options, now())?;
            let mut vm = host.begin(&vm)?;
            if fault.times > 0 || std::env::var_os("COCOON_SIM_CLONE_PID_0").is_some() {
                vm.pid = 0;
            }
            json(out, &vm)
        }
        Verb::Inspect { vm } => json(out, &host.seen(&host.model.inspect(vm)?)),
        Verb::List => {
            let vms: Vec<_> = host.model.vms().cloned().collect();
            list(out, &vms, "VMs")
        }
        Verb::Start { vm } => {
            let seen = host.seen(
                &host.model.inspect(vm).map_err(|_| Refusal(format!("vm {vm}: VM not found")))?,
            );
            if !seen.state.is_running() {
                host.model.stop(vm)?;
            }
            let vm = host.model.start(vm, now())?;
            if !host.is_alive(&vm) {
                host.begin(&vm)?;
            }
            done
        }
        Verb::Stop { vm } => {
            let before =
                host.model.inspect(vm).map_err(|_| Refusal(format!("vm {vm}: VM not found")))?;
            host.end(&before);
            host.model.stop(vm)?;
            done
        }
        Verb::Remove { vm, force } => {
            let before = host.model.remove(vm, *force)?;
            host.end(&before);
            host.forget(&before);
            done
        }
        Verb::Net { vm, nics } => host.model.resize_nics(vm, *nics).map(|()| ExitCode::SUCCESS),
        Verb::Save { name, vm } => {
            host.model.save_snapshot(name, vm, now()).map(|_| ExitCode::SUCCESS)
        }
        Verb::Snapshot { name } => json(out, &host.model.snapshot(name)?),
        Verb::Snapshots => {
            let all: Vec<_> = host.model.snapshots().cloned().collect();
            list(out, &all, "snapshots")
        }
        Verb::RemoveSnapshot { name } => {
            host.model.remove_snapshot(name).map(|_| ExitCode::SUCCESS)
        }
        Verb::Export { name } => {
            let record = host
                .model
                .snapshot(name)
                .map_err(|_| Refusal("export: snapshot not found".into()))?;
            out.extend(archive::write(&record, host.model.kept(name)));
            done
        }
        Verb::Pull { image } => host.model.pull_image(image, now()).map(|()| ExitCode::SUCCESS),
        Verb::Image { image } => json(out, &host.model.image(image)?),
        Verb::Images => {
            let all: Vec<_> = host.model.images().cloned().collect();
            list(out, &all, "images")
        }
        Verb::Exec { .. }
        | Verb::ExecHelp
        | Verb::Events
        | Verb::Logs { .. }
        | Verb::Import { .. }
        | Verb::ImageImport { .. } => done,
    }
}
