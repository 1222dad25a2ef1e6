use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// For a process to say what it is started for, and to end when it is asked to.
const PATIENCE: Duration = Duration::from_mins(1);

/// The built binary, without what the surroundings could tell it.
pub(crate) fn roost(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roost"));
    command.args(args).stdin(Stdio::null());
    for name in ["ROOST_LOG", "ROOST_SIM_LOGIN", "ROOST_SIM_TOKEN", "ROOST_SIM_TOKEN_V2"] {
        command.env_remove(name);
    }
    command
}

/// A running process. It is asked to end when it is dropped, and made to if it does not listen.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    said: String,
    log: PathBuf,
}

impl Process {
    /// Starts it and waits until what it says contains `ready`. What it logs is added to `log`.
    pub(crate) fn start(mut command: Command, log: &Path, ready: &str) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(log).unwrap();
        command.stderr(file);
        Self::start_it(command, log, ready)
    }

    /// As [`Self::start`], with its log anywhere. A pipe is kept open and not read.
    pub(crate) fn start_logging_to(mut command: Command, stderr: Stdio, ready: &str) -> Self {
        command.stderr(stderr);
        Self::start_it(command, Path::new(""), ready)
    }

    /// Whoever read its log reads no more.
    pub(crate) fn close_log(&mut self) {
        drop(self.child.stderr.take());
    }

    fn start_it(mut command: Command, log: &Path, ready: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut process = Self { child, lines, said: String::new(), log: log.to_owned() };
        process.until_it_says(ready);
        process
    }

    /// Waits until what it says contains this.
    pub(crate) fn until_it_says(&mut self, words: &str) {
        while !self.said.contains(words) {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.note(&line),
                Err(error) => panic!("{error} before it said {words:?}\n{}", self.words()),
            }
        }
    }

    fn note(&mut self, line: &str) {
        self.said.push_str(line);
        self.said.push('\n');
    }

    /// All that it said and logged, for whoever has to find out what is wrong with it.
    fn words(&self) -> String {
        format!("{}\n{}", self.said, fs::read_to_string(&self.log).unwrap_or_default())
    }

    /// What it holds in memory now.
    pub(crate) fn resident_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib * 1024.0 / 1e6
    }

    /// What it has said so far.
    pub(crate) fn said(&mut self) -> &str {
        while let Ok(line) = self.lines.try_recv() {
            self.note(&line);
        }
        &self.said
    }

    /// The rest of the first line that begins so.
    pub(crate) fn line(&self, prefix: &str) -> &str {
        let found = self.said.lines().find_map(|line| line.strip_prefix(prefix));
        found.unwrap_or_else(|| panic!("no {prefix:?} in\n{}", self.said))
    }

    /// All that it said from the first line that begins so.
    pub(crate) fn line_on(&self, prefix: &str) -> &str {
        let at = if self.said.starts_with(prefix) {
            Some(0)
        } else {
            self.said.find(&format!("\n{prefix}")).map(|at| at + 1)
        };
        &self.said[at.unwrap_or_else(|| panic!("no {prefix:?} in\n{}", self.said))..]
    }

    /// The first word that it said and that begins so, such as an address.
    pub(crate) fn word(&self, prefix: &str) -> &str {
        let found = self.said.split_whitespace().find(|word| word.starts_with(prefix));
        found.unwrap_or_else(|| panic!("no {prefix:?} in\n{}", self.said))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        // Gone already is what was wanted.
        let _ = kill_process(pid, signal);
    }

    /// As Ctrl-C. Gives its exit code and all that it said.
    pub(crate) fn interrupt(mut self) -> (Option<i32>, String) {
        self.signal(Signal::INT);
        self.hear_out();
        (self.child.wait().unwrap().code(), self.said.clone())
    }

    /// As a machine that loses power: it gets no chance to do anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Until it says nothing more because it has ended.
    fn hear_out(&mut self) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.note(&line),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end\n{}", self.words()),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // Asked first: a simulated vCenter takes its guests' processes and files along.
        self.signal(Signal::TERM);
        while let Ok(_line) = self.lines.recv_timeout(PATIENCE) {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
