//! `kubectl` with a configuration and a home of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::go::Binary;
use crate::process::{self, Output};
use crate::scratch::Scratch;

/// `kubectl wait` and `--watch` wait as long as they are told; nothing else takes this long.
const LIMIT: Duration = Duration::from_mins(2);

/// A command line that sees one cluster and nothing of the caller's configuration.
#[derive(Debug)]
pub struct Kubectl {
    binary: Binary,
    kubeconfig: PathBuf,
    home: Scratch,
}

impl Kubectl {
    /// `None` after a line that says so when `kubectl` cannot be had.
    pub fn new(kubeconfig: &Path) -> Option<Self> {
        Some(Self::with(super::kubectl()?, kubeconfig))
    }

    pub(super) fn with(binary: Binary, kubeconfig: &Path) -> Self {
        Self { binary, kubeconfig: kubeconfig.to_owned(), home: Scratch::new("kubectl") }
    }

    /// Runs to the end. Panics when it cannot be started or does not end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        process::run(&mut self.command(arguments), LIMIT)
            .unwrap_or_else(|error| panic!("kubectl {}: {error}", arguments.join(" ")))
    }

    /// For a test that talks to it while it runs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.binary.command();
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env_clear()
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// What it prints. Panics when it fails.
    pub fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.is_success(),
            "kubectl {} failed: {}{}",
            arguments.join(" "),
            output.stdout,
            output.stderr
        );
        output.stdout
    }

    /// A file of this text in its home, to be given to `-f`.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, text)
            .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        path.display().to_string()
    }
}
