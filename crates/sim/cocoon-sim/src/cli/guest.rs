//! Programs and logs of guests. A program runs on this machine, in the VM's own folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Seek, Write};
use std::process::{Command, ExitCode};
use std::time::Duration;

use super::folder::Folder;
use crate::host::Refusal;

/// Never ends; whoever called must end the whole group.
pub(super) fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_hours(1));
    }
}

pub(super) fn exec(
    folder: &Folder,
    vm: &str,
    env: &BTreeMap<String, String>,
    argv: &[String],
) -> Result<ExitCode, Refusal> {
    let vm = {
        let host = folder.lock()?;
        host.seen(&host.model.inspect(vm)?)
    };
    // Only some images of Windows have the daemon. One that has it is told by this file in the VM's folder.
    if vm.config.windows && !folder.of_vm(&vm).join("daemon").exists() {
        return Err(Refusal(
            "exec: vsock not configured for this VM; recreate it with a newer cocoon".into(),
        ));
    }
    if !vm.state.is_running() {
        return Err(Refusal("exec: dial agent: connection refused".into()));
    }
    let root = folder.of_vm(&vm).join("root");
    let failed = |error: io::Error| Refusal(format!("exec: {error}"));
    fs::create_dir_all(root.join("tmp")).map_err(failed)?;
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).current_dir(&root).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", &root);
    for name in ["TMPDIR", "TMP", "TEMP"] {
        command.env(name, root.join("tmp"));
    }
    let status = command.envs(env).env("COCOON_VM", vm.name()).status().map_err(failed)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(255);
    Ok(ExitCode::from(code))
}

pub(super) fn logs(
    folder: &Folder,
    vm: &str,
    tail: Option<usize>,
    follow: bool,
) -> Result<ExitCode, Refusal> {
    let vm = folder.lock()?.model.inspect(vm)?;
    let path = folder.of_vm(&vm).join("console.log");
    let missing =
        |_| Refusal(format!("open log {}: VM may not have been started yet", path.display()));
    let text = fs::read_to_string(&path).map_err(missing)?;
    let lines: Vec<&str> = text.lines().collect();
    let from = tail.map_or(0, |tail| lines.len().saturating_sub(tail));
    let mut out = io::stdout().lock();
    for line in &lines[from..] {
        if writeln!(out, "{line}").is_err() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if !follow {
        return Ok(ExitCode::SUCCESS);
    }
    let mut at = text.len() as u64;
    loop {
        // A reader that went away ends it at the next line, a caller by ending the group.
        let _ = out.flush();
        std::thread::sleep(Duration::from_millis(50));
        let Ok(mut file) = fs::File::open(&path) else { break };
        if file.seek(io::SeekFrom::Start(at)).is_err() {
            break;
        }
        match io::copy(&mut file, &mut out) {
            Ok(count) => at += count,
            Err(_) => break,
        }
    }
    Ok(ExitCode::SUCCESS)
}
