//! A program that runs in the background and ends with its handle or with the test process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use crate::go::Binary;

#[derive(Debug)]
pub(super) struct Daemon {
    name: String,
    child: Child,
    /// The program ends when this closes, also when the test process is killed.
    stdin: Option<ChildStdin>,
    log: PathBuf,
}

impl Daemon {
    /// Its output goes to `NAME.log` in `folder`.
    pub(super) fn start(name: &str, binary: &Binary, arguments: &[String], folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        let failed = |error: std::io::Error| format!("starting {name}: {error}");
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap_or_else(|error| panic!("{}", failed(error)));
        let errors = file.try_clone().unwrap_or_else(|error| panic!("{}", failed(error)));
        let mut child = binary
            .command()
            .args(arguments)
            .current_dir(folder)
            .env("HOME", folder)
            .env("ROOST_ORACLE_LIFELINE", "1")
            .stdin(Stdio::piped())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{}", failed(error)));
        let stdin = child.stdin.take();
        Self { name: name.to_owned(), child, stdin, log }
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The end of what it said, for a failure.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        format!("{}: {}", self.name, lines[lines.len().saturating_sub(15)..].join("\n"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Nothing here is worth a graceful end: the API server would take seconds.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
