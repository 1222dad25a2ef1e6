//! pyVmomi: a second client that shares no code with govmomi.

use crate::availability::{Missing, Oracle, require_tool, say};
use crate::install::install_once;
use crate::process::{self, Output};
use crate::target;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The pyVmomi release, pinned with its hash in `python/requirements.txt`.
pub const PYVMOMI_VERSION: &str = "9.1.1.0";

const INSTALL_LIMIT: Duration = Duration::from_mins(5);
const SCRIPT_LIMIT: Duration = Duration::from_mins(1);
const RUNNER: &str = include_str!("../python/runner.py");
const INTERPRETER: &str = "bin/python";

/// A Python interpreter that has pyVmomi.
#[derive(Debug, Clone)]
pub struct Python {
    interpreter: PathBuf,
}

impl Python {
    pub fn interpreter(&self) -> &Path {
        &self.interpreter
    }
}

/// pyVmomi in a virtual environment of its own.
pub fn pyvmomi() -> Option<Python> {
    static ORACLE: Oracle<Python> = Oracle::new("pyvmomi");
    ORACLE.get(|| {
        let folder = format!("pyvmomi-{PYVMOMI_VERSION}");
        let folder = install_once(&target::oracles(), &folder, INTERPRETER, install_into)?;
        Ok(Python { interpreter: folder.join(INTERPRETER) })
    })
}

/// An environment that is moved afterwards still runs: its interpreter finds its packages from where it
/// is. Only the `pip` command in it does not, which nobody needs again.
fn install_into(folder: &Path) -> Result<(), Missing> {
    require_tool("python3", "--version", Missing::Python)?;
    say(&format!("installing pyvmomi {PYVMOMI_VERSION}"));
    let mut environment = Command::new("python3");
    step("making a Python environment", environment.args(["-m", "venv"]).arg(folder))?;
    let mut install = Command::new(folder.join(INTERPRETER));
    install
        .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
        .args(["--require-hashes", "--requirement"])
        .arg(target::crate_folder("python/requirements.txt"));
    step("installing pyvmomi", &mut install)
}

fn step(name: &str, command: &mut Command) -> Result<(), Missing> {
    let failed = |detail| Err(Missing::Fetch { step: name.to_owned(), detail });
    match process::run(command, INSTALL_LIMIT) {
        Ok(output) if output.is_success() => Ok(()),
        // venv complains on standard output, pip on standard error.
        Ok(output) => failed(output.stdout + &output.stderr),
        Err(error) => failed(error.to_string()),
    }
}

/// Runs Python scripts that use pyVmomi.
#[derive(Debug)]
pub struct Pyvmomi {
    python: Python,
}

impl Pyvmomi {
    /// `None` after a line that says so when pyVmomi cannot be had; see [`pyvmomi`].
    pub fn new() -> Option<Self> {
        Some(Self { python: pyvmomi()? })
    }

    /// Runs `script` with `args` as `sys.argv[1:]`. It may call `connect(url)`, which logs in at a URL of
    /// the form of [`Vcsim::url`](crate::Vcsim::url) and returns pyVmomi's `ServiceInstance`.
    ///
    /// Panics when the script takes longer than a minute.
    pub fn run(&self, script: &str, args: &[&str]) -> Output {
        let mut command = Command::new(self.python.interpreter());
        // Isolated and without the caller's variables: a proxy or a path of theirs is not under test.
        command.env_clear().args(["-I", "-c", RUNNER, script]).args(args);
        match process::run(&mut command, SCRIPT_LIMIT) {
            Ok(output) => output,
            Err(error) => panic!("Python script: {error}"),
        }
    }

    /// Standard output of a script that must succeed; panics with its traceback when it does not.
    pub fn stdout(&self, script: &str, args: &[&str]) -> String {
        let output = self.run(script, args);
        assert!(output.is_success(), "Python script: {}\n{}", output.status, output.stderr);
        output.stdout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_is_installed() {
        let requirements = include_str!("../python/requirements.txt");
        assert!(requirements.contains(&format!("pyvmomi=={PYVMOMI_VERSION} ")));
    }
}
