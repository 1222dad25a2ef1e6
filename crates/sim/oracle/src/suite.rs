//! govc's own tests, written for `bats`, run against a server that stands in for vcsim.
//!
//! The tests live in a module of govmomi that proxies do not carry; the release below is the last whose main module holds them.

use crate::availability::{Missing, Oracle, require_tool};
use crate::go;
use crate::process;
use crate::scratch::Scratch;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The release whose tests are run.
pub const GOVC_SUITE_VERSION: &str = "0.46.3";

const DOWNLOAD_LIMIT: Duration = Duration::from_mins(5);

/// The longest that the tests of one file may take.
const FILE_LIMIT: Duration = Duration::from_mins(15);

/// The tests, and the programs that they call.
#[derive(Debug, Clone)]
pub struct GovcSuite {
    tests: PathBuf,
    govc: PathBuf,
}

/// `None` after a line that says so when it cannot be had: it needs Go, `bats` and `jq`.
pub fn govc_suite() -> Option<GovcSuite> {
    static ORACLE: Oracle<PathBuf> = Oracle::new("govc suite");
    let govc = go::govc()?;
    let tests = ORACLE.get(fetch)?;
    Some(GovcSuite { tests, govc: govc.path().to_path_buf() })
}

fn fetch() -> Result<PathBuf, Missing> {
    require_tool("go", "version", Missing::Go)?;
    require_tool("bats", "--version", Missing::Package { name: "bats" })?;
    require_tool("jq", "--version", Missing::Package { name: "jq" })?;
    let step = format!("downloading govmomi {GOVC_SUITE_VERSION}");
    let failed = |detail: String| Missing::Fetch { step: step.clone(), detail };
    let scratch = Scratch::new("suite");
    let mut download = Command::new("go");
    download
        .args(["mod", "download", "-json"])
        .arg(format!("github.com/vmware/govmomi@v{GOVC_SUITE_VERSION}"))
        .current_dir(scratch.path())
        .env("GOWORK", "off");
    let output =
        process::run(&mut download, DOWNLOAD_LIMIT).map_err(|error| failed(error.to_string()))?;
    if !output.is_success() {
        return Err(failed(format!("{}\n{}", output.stdout, output.stderr)));
    }
    let mut lines = output.stdout.lines().map(str::trim);
    let folder = lines.find_map(|line| line.strip_prefix("\"Dir\": \"")?.strip_suffix("\","));
    let tests = Path::new(folder.unwrap_or_default()).join("govc/test");
    if tests.is_dir() { Ok(tests) } else { Err(failed(output.stdout)) }
}

impl GovcSuite {
    /// Runs the named tests of a file with `vcsim` as the server that they start. Returns the names of those that passed.
    pub fn passed(&self, vcsim: &Path, file: &str, names: &[&str]) -> Vec<String> {
        let home = Scratch::new("suite");
        let programs = home.path().join("bin");
        fs::create_dir(&programs).expect("a folder of our own can be written to");
        symlink(&self.govc, programs.join("govc")).expect("a folder of our own can be written to");
        symlink(vcsim, programs.join("vcsim")).expect("a folder of our own can be written to");
        let usual = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bats");
        command
            .args(["--tap", "--filter", &pattern(names), file])
            .current_dir(&self.tests)
            .env("PATH", format!("{}:{usual}", programs.display()))
            .env("GOPATH", home.path().join("none"))
            .env("GOVMOMI_HOME", home.path())
            .env("HOME", home.path())
            .env("TMPDIR", home.path());
        match process::run(&mut command, FILE_LIMIT) {
            Ok(output) => passed(&output.stdout),
            Err(error) => panic!("bats {file}: {error}"),
        }
    }
}

/// Exactly these names.
fn pattern(names: &[&str]) -> String {
    let escape = |name: &&str| {
        name.chars().fold(String::new(), |mut text, char| {
            if !char.is_alphanumeric() && char != ' ' {
                text.push('\\');
            }
            text.push(char);
            text
        })
    };
    format!("^({})$", names.iter().map(escape).collect::<Vec<_>>().join("|"))
}

/// A skipped test has shown nothing.
fn passed(tap: &str) -> Vec<String> {
    let lines = tap.lines().filter_map(|line| line.strip_prefix("ok "));
    let named = lines.filter_map(|line| line.split_once(' ')).map(|(_, name)| name);
    named.filter(|name| !name.contains("# skip")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_literally_and_skips_do_not_count() {
        assert_eq!(pattern(&["vm.info", "a -b"]), r"^(vm\.info|a \-b)$");
        let tap = "1..3\nok 1 ls vm\nnot ok 2 ls dc\n# why\nok 3 vm.vnc # skip no server\n";
        assert_eq!(passed(tap), ["ls vm"]);
    }
}
