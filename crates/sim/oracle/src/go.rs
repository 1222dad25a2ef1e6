//! Oracles written in Go: govmomi's simulator, its command line, and our benchmarks on its client and
//! on controller-runtime's queue.
//!
//! govmomi publishes the packages that its `vcsim` and `govc` commands consist of, but puts the
//! commands' `main` into modules of their own, which module proxies do not reliably carry. The
//! folder `go/` joins those packages with a `main` each; `go.sum` there pins every byte of them.

use crate::availability::{Missing, Oracle, require_tool, say};
use crate::install::install_once;
use crate::process;
use crate::scratch::Scratch;
use crate::target;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::{fs, io};

/// The govmomi release behind `vcsim`, `govc` and the benchmark.
pub const GOVMOMI_VERSION: &str = "0.56.0";

/// The govmomi release whose tests are run, and with it the `govc` that they call.
pub(crate) const SUITE_VERSION: &str = "0.46.3";

/// The controller-runtime release behind the benchmark of its priority queue.
pub const CONTROLLER_RUNTIME_VERSION: &str = "0.25.2";

/// Two slow cores and an empty cache need about three minutes with the download.
const BUILD_LIMIT: Duration = Duration::from_mins(15);

/// A program that can be run.
#[derive(Debug, Clone)]
pub struct Binary {
    path: PathBuf,
}

impl Binary {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn command(&self) -> Command {
        Command::new(&self.path)
    }
}

/// govmomi's vCenter and ESXi simulator.
pub fn vcsim() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("vcsim");
    ORACLE.get(|| Program::new("vcsim", "go", "vcsim").build())
}

/// govmomi's command line for vSphere.
pub fn govc() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("govc");
    ORACLE.get(|| Program::new("govc", "go", "govc").build())
}

/// The command line of the release whose tests are run.
pub(crate) fn suite_govc() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("govc of the suite");
    let program = || Program {
        release: ("govmomi", SUITE_VERSION),
        ..Program::new("govc", "go-suite", "govc")
    };
    ORACLE.get(|| program().build())
}

/// A program of the caller's on govmomi's client, such as one that a page shows; panics when it does not compile.
pub fn govmomi_program(source: &str) -> Option<Binary> {
    // With `govc` there are Go, govmomi and what it is built on.
    govc()?;
    let folder = Scratch::new("program");
    let write = |name: &str, text: &[u8]| {
        fs::write(folder.path().join(name), text).expect("a folder of our own can be written to");
    };
    for name in ["go.mod", "go.sum"] {
        let pinned = target::crate_folder("go").join(name);
        write(name, &fs::read(pinned).expect("it is beside this crate's sources"));
    }
    write("main.go", source.as_bytes());
    let module = folder.path().to_owned();
    match (Program { module, ..Program::new("program", "go", ".") }).build() {
        Ok(program) => Some(program),
        Err(error) => panic!("{error}"),
    }
}

/// `bench/govmomi`: the reads that Roost makes, made with govmomi.
pub fn govmomi_bench() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("govmomi-bench");
    ORACLE.get(|| Program::new("govmomi-bench", "../../../bench/govmomi", ".").build())
}

/// `bench/priorityqueue`: the steps of our queue's benchmark on controller-runtime's queue.
pub fn priorityqueue_bench() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("priorityqueue-bench");
    let program = || Program {
        release: ("controller-runtime", CONTROLLER_RUNTIME_VERSION),
        ..Program::new("priorityqueue-bench", "../../../bench/priorityqueue", ".")
    };
    ORACLE.get(|| program().build())
}

pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The pinned module that it is about, and its version.
    pub(crate) release: (&'static str, &'static str),
    /// The folder of `go.mod`.
    pub(crate) module: PathBuf,
    /// The folder of the `main` package, below the module's.
    pub(crate) package: &'static str,
    /// Folders of the module that it uses.
    pub(crate) uses: &'static [&'static str],
    /// What the linker sets beside leaving out symbols.
    pub(crate) link: String,
    pub(crate) limit: Duration,
}

impl Program {
    pub(crate) fn new(name: &'static str, module: &str, package: &'static str) -> Self {
        let release = ("govmomi", GOVMOMI_VERSION);
        let module = target::crate_folder(module);
        Self { name, release, module, package, uses: &[], link: String::new(), limit: BUILD_LIMIT }
    }

    pub(crate) fn build(&self) -> Result<Binary, Missing> {
        let sources = self
            .fingerprint()
            .map_err(|source| Missing::Folder { path: self.module.join(self.package), source })?;
        let folder = format!("{}-{}-{sources:016x}", self.name, self.release.1);
        let home = target::oracles();
        let folder = install_once(&home, &folder, self.name, |attempt| self.compile_into(attempt))?;
        Ok(Binary { path: folder.join(self.name) })
    }

    /// Changes with the sources. Not their age: a checkout or a restored cache makes old files new.
    fn fingerprint(&self) -> io::Result<u64> {
        let mut files = vec![self.module.join("go.mod"), self.module.join("go.sum")];
        for folder in self.uses.iter().chain([&self.package]) {
            for entry in fs::read_dir(self.module.join(folder))? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "go") {
                    files.push(path);
                }
            }
        }
        files.sort();
        let mut hasher = DefaultHasher::new();
        if !self.link.is_empty() {
            self.link.hash(&mut hasher);
        }
        for file in files {
            file.file_name().hash(&mut hasher);
            fs::read(&file)?.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    fn compile_into(&self, folder: &Path) -> Result<(), Missing> {
        require_tool("go", "version", Missing::Go)?;
        let (module, version) = self.release;
        let step = format!("building {} on {module} {version}", self.name);
        let minutes = self.limit.as_secs() / 60;
        say(&format!("{step}; with an empty cache this takes a while, {minutes} minutes at most"));
        let mut command = Command::new("go");
        command
            .current_dir(&self.module)
            .args(["build", "-trimpath"])
            .arg(format!("-ldflags=-s -w {}", self.link))
            .arg("-o")
            .arg(folder.join(self.name))
            .arg(format!("./{}", self.package))
            // Neither a C compiler nor the caller's own Go workspace has a say.
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off");
        let progress = Progress::start(step.clone());
        let built = process::run(&mut command, self.limit);
        progress.stop();
        match built {
            Ok(output) if output.is_success() => Ok(()),
            Ok(output) => Err(Missing::Fetch { step, detail: output.stderr }),
            Err(error) => Err(Missing::Fetch { step, detail: error.to_string() }),
        }
    }
}

/// Says once a minute that a long step is still at work, and at its end how long it took.
struct Progress {
    step: String,
    stop: mpsc::Sender<()>,
    thread: thread::JoinHandle<Duration>,
}

impl Progress {
    #[expect(clippy::disallowed_methods, reason = "a compiler takes real time")]
    fn start(step: String) -> Self {
        let (stop, stopped) = mpsc::channel();
        let shown = step.clone();
        let thread = thread::spawn(move || {
            let started = std::time::Instant::now();
            while stopped.recv_timeout(Duration::from_mins(1))
                == Err(mpsc::RecvTimeoutError::Timeout)
            {
                say(&format!("{shown}: at work for {} min", started.elapsed().as_secs() / 60));
            }
            started.elapsed()
        });
        Self { step, stop, thread }
    }

    fn stop(self) {
        drop(self.stop);
        if let Ok(took) = self.thread.join() {
            say(&format!("{}: took {} s", self.step, took.as_secs()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_go_programs_use_the_one_govmomi() {
        for module in ["go", "../../../bench/govmomi"] {
            let manifest = fs::read_to_string(target::crate_folder(module).join("go.mod")).unwrap();
            let pin = format!("require github.com/vmware/govmomi v{GOVMOMI_VERSION}\n");
            assert!(manifest.contains(&pin), "{module}");
        }
    }

    #[test]
    fn the_queue_benchmark_uses_the_pinned_controller_runtime() {
        let folder = target::crate_folder("../../../bench/priorityqueue");
        let manifest = fs::read_to_string(folder.join("go.mod")).unwrap();
        let pin = format!("sigs.k8s.io/controller-runtime v{CONTROLLER_RUNTIME_VERSION}\n");
        assert!(manifest.contains(&pin));
    }

    #[test]
    fn a_program_is_built_again_exactly_when_its_sources_change() {
        let scratch = Scratch::new("go");
        let write = |file: &str, text: &str| fs::write(scratch.path().join(file), text).unwrap();
        for file in ["go.mod", "go.sum", "main.go"] {
            write(file, "1");
        }
        let module = scratch.path().to_path_buf();
        let program = Program { module, package: ".", ..Program::new("test", ".", ".") };
        let before = program.fingerprint().unwrap();
        write("main.go", "1");
        write("README.md", "1");
        assert_eq!(program.fingerprint().unwrap(), before);
        write("main.go", "2");
        assert_ne!(program.fingerprint().unwrap(), before);
    }
}
