//! What is shipped for operators is true: alerts, dashboard, runbooks, units, sample files, completions and manual, each held against the code
//! and against the programs that will read it.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod alerts;
mod charts;
mod dashboard;
mod everything;
mod exposed;
mod live;
mod metrics_page;
mod promql;
mod release;
mod runbooks;
mod samples;
mod shell;
mod situations;
mod systemd;
#[path = "../wire/mod.rs"]
mod wire;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Holds a file against what it is made of, or writes it anew: `ROOST_WRITE_DOCS=1 cargo test -p roost --test operations`.
fn assert_generated(path: &str, wanted: &str) {
    if std::env::var_os("ROOST_WRITE_DOCS").is_some() {
        std::fs::write(file(path), wanted).unwrap();
    }
    assert!(
        read(path) == wanted,
        "{path} is not up to date: ROOST_WRITE_DOCS=1 cargo test -p roost --test operations"
    );
}

fn roost(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roost")).args(args).output().unwrap()
}
