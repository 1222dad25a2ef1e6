//! govc's own tests, written for `bats`, run against a server that stands in for vcsim.
//!
//! The tests live in a module of govmomi that proxies do not carry; the release below is the last whose main module holds them.
//! They are run with the `govc` of that release: newer ones print and ask for other things. The images that they import are not
//! in the module either; tiny ones of our own have their names.

use crate::availability::{Missing, Oracle, require_tool};
use crate::debian;
use crate::go;
use crate::process;
use crate::scratch::Scratch;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The release whose tests are run.
pub const GOVC_SUITE_VERSION: &str = go::SUITE_VERSION;

/// Makes the images that the tests import, in a folder that is there.
const IMAGES: &str = include_str!("../suite/images.sh");

const DOWNLOAD_LIMIT: Duration = Duration::from_mins(5);

/// The longest that the tests of one file may take.
const FILE_LIMIT: Duration = Duration::from_mins(15);

/// A server that starts takes less; a machine at work may need some of it.
const START_LIMIT: Duration = Duration::from_mins(1);

/// The tests, and the programs that they call.
#[derive(Debug)]
pub struct GovcSuite {
    /// The folder of the tests, in a copy of ours: some of them write beside themselves.
    tests: PathBuf,
    programs: PathBuf,
    bats: PathBuf,
    _home: Scratch,
}

/// With `vcsim` as the server that the tests start. `None` after a line that says so when it cannot be had: it needs Go, `jq` and
/// Debian's `bats`, which is unpacked and not installed.
pub fn govc_suite(vcsim: &Path) -> Option<GovcSuite> {
    static ORACLE: Oracle<(PathBuf, PathBuf)> = Oracle::new("govc suite");
    let govc = go::suite_govc()?;
    let (module, bats) = ORACLE.get(|| Ok((fetch()?, bats()?)))?;
    Some(GovcSuite::prepare(&module, bats, govc.path(), vcsim))
}

/// It finds the rest of itself beside the folder that it is in.
fn bats() -> Result<PathBuf, Missing> {
    let program = "usr/bin/bats";
    Ok(debian::unpacked("bats", program)?.join(program))
}

/// The folder of the module.
fn fetch() -> Result<PathBuf, Missing> {
    require_tool("go", "version", Missing::Go)?;
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
    let module = PathBuf::from(folder.unwrap_or_default());
    if module.join("govc/test").is_dir() { Ok(module) } else { Err(failed(output.stdout)) }
}

impl GovcSuite {
    fn prepare(module: &Path, bats: PathBuf, govc: &Path, vcsim: &Path) -> Self {
        let home = Scratch::new("suite");
        let (tests, programs) = (home.path().join("govc/test"), home.path().join("bin"));
        for folder in ["govc/test", "ovf/fixtures"] {
            copy_files(&module.join(folder), &home.path().join(folder));
        }
        let images = tests.join("images");
        for folder in [&programs, &images] {
            fs::create_dir(folder).expect("a folder of our own can be written to");
        }
        symlink(govc, programs.join("govc")).expect("a folder of our own can be written to");
        symlink(vcsim, programs.join("vcsim")).expect("a folder of our own can be written to");
        let mut make = Command::new("bash");
        make.args(["-c", IMAGES, "images"]).arg(&images);
        let made = process::run(&mut make, DOWNLOAD_LIMIT);
        assert!(made.as_ref().is_ok_and(process::Output::is_success), "images: {made:?}");
        Self { tests, programs, bats, _home: home }
    }

    /// Runs the named tests of a file. Returns the names of those that passed.
    pub fn passed(&self, file: &str, names: &[&str]) -> Vec<String> {
        let home = Scratch::new("suite");
        let (_host, url) = self.start_host(home.path());
        let usual = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(&self.bats);
        command
            .args(["--tap", "--filter", &pattern(names), file])
            .current_dir(&self.tests)
            .env("PATH", format!("{}:{usual}", self.programs.display()))
            .env("GOPATH", home.path().join("none"))
            .env("GOVMOMI_HOME", home.path())
            .env("GOVC_TEST_URL", url)
            .env("GOVC_DATASTORE", "LocalDS_0")
            .env("USER", "user")
            .env("HOME", home.path())
            .env("TMPDIR", home.path());
        match process::run(&mut command, FILE_LIMIT) {
            Ok(output) => passed(&output.stdout),
            Err(error) => panic!("bats {file}: {error}"),
        }
    }

    /// The ESXi host that tests use which do not start a server themselves.
    fn start_host(&self, home: &Path) -> (Running, String) {
        let environment = home.join("host.env");
        let server = Command::new(self.programs.join("vcsim"))
            .args(["-esx", "-l", "127.0.0.1:0", "-vm", "0", "-E"])
            .arg(&environment)
            .stdout(Stdio::null())
            .spawn()
            .expect("the server can be started");
        let server = Running(server);
        let (mut waited, pause) = (Duration::ZERO, Duration::from_millis(50));
        while waited < START_LIMIT {
            let text = fs::read_to_string(&environment).unwrap_or_default();
            let url = text.split_whitespace().find_map(|word| word.strip_prefix("GOVC_URL="));
            if let Some(url) = url.filter(|_| text.ends_with('\n')) {
                return (server, url.to_owned());
            }
            thread::sleep(pause);
            waited += pause;
        }
        panic!("the server did not start within {START_LIMIT:?}");
    }
}

/// A process that ends with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The files of one folder, which those who own the copy may change and run.
fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder of our own can be written to");
    for entry in fs::read_dir(from).expect("the module is there").flatten() {
        if entry.path().is_file() {
            let content = fs::read(entry.path()).expect("the module can be read");
            let copy = to.join(entry.file_name());
            fs::write(&copy, content).expect("a folder of our own can be written to");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&copy, mode).expect("a file of our own can be changed");
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
