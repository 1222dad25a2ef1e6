//! The process that stands for a VM. It boots, and then does nothing but serve the VM's serial console.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;

use super::guest::hang;

/// What the process is called with.
pub(super) const VERB: &str = "guest-process";

/// Until it is killed. Each line that is typed comes back and is written into the log.
pub(super) fn serve(folder: &Path) -> ExitCode {
    boot();
    // Of the process before a restart.
    let _ = fs::remove_file("console.sock");
    // By its name alone: paths of sockets must be short, and this is the folder that the process is in.
    if let Ok(listener) = UnixListener::bind("console.sock") {
        for caller in listener.incoming().flatten() {
            let folder = folder.to_owned();
            // One caller after another would keep the second waiting.
            std::thread::spawn(move || talk(&caller, &folder));
        }
    }
    hang()
}

/// What has used no processor at all is no VM to whoever measures.
fn boot() {
    let sum = (0..4_000_000_u64).fold(0, |sum, step| std::hint::black_box(sum ^ step));
    std::hint::black_box(sum);
}

fn talk(caller: &UnixStream, folder: &Path) -> io::Result<()> {
    let mut to = caller.try_clone()?;
    to.write_all(b"login: ")?;
    for line in BufReader::new(caller).lines() {
        let line = line?;
        writeln!(to, "console heard {line}")?;
        let mut log = OpenOptions::new().append(true).open(folder.join("console.log"))?;
        writeln!(log, "console: {line}")?;
    }
    Ok(())
}
