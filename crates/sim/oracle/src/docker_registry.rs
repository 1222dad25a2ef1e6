//! Docker's registry, as Debian packages it: an OCI registry that we did not write.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::availability::Oracle;
use crate::debian;
use crate::scratch::Scratch;

const PAUSE: Duration = Duration::from_millis(50);
/// A minute.
const TRIES: u32 = 1200;

/// A registry on a free port of the loopback interface, from the Debian package `docker-registry`. It keeps its data in a folder of its own and
/// ends with this value.
#[derive(Debug)]
pub struct DockerRegistry {
    child: Child,
    address: String,
    /// Dropped last: the server writes to it until it has ended.
    scratch: Scratch,
}

fn program() -> Option<PathBuf> {
    static ORACLE: Oracle<PathBuf> = Oracle::new("docker-registry");
    const ENTRY: &str = "usr/bin/docker-registry";
    ORACLE.get(|| Ok(debian::unpacked("docker-registry", ENTRY)?.join(ENTRY)))
}

impl DockerRegistry {
    /// `None` after a line that says so when it cannot be had.
    ///
    /// Panics with its log when it does not start.
    pub fn start() -> Option<Self> {
        let program = program()?;
        let scratch = Scratch::new("docker-registry");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = port.unwrap_or_else(|error| panic!("no free port: {error}")).to_string();
        let data = scratch.path().join("data");
        let config = format!(
            "version: 0.1\nlog: {{level: warn}}\nstorage:\n  filesystem: {{rootdirectory: {:?}}}\n  delete: {{enabled: true}}\nhttp: {{addr: {address:?}}}\n",
            data.display().to_string()
        );
        let (file, log) = (scratch.path().join("config.yml"), scratch.path().join("log"));
        let written = fs::write(&file, config).and_then(|()| File::create(&log));
        let log = written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let child = Command::new(program)
            .args(["serve".as_ref(), file.as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("starting docker-registry: {error}"));
        let mut registry = Self { child, address, scratch };
        registry.wait();
        Some(registry)
    }

    fn wait(&mut self) {
        let mut tries = 0;
        while TcpStream::connect(&self.address).is_err() {
            tries += 1;
            let runs = matches!(self.child.try_wait(), Ok(None));
            let log = self.scratch.path().join("log");
            assert!(
                runs && tries < TRIES,
                "docker-registry does not listen: {}",
                fs::read_to_string(log).unwrap_or_default()
            );
            thread::sleep(PAUSE);
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
