//! The two servers, and govmomi's side of the measurements.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use roost_oracle::{Binary, Vcsim, VcsimOptions};
use serde_json::Value;

/// A VM of that name is on both servers, which name theirs alike.
pub(crate) const CHANGED_VM: &str = "DC0_C0_RP0_VM7";

/// `roost sim vcenter` as a process of its own.
pub(crate) struct OurSim {
    child: Child,
    url: String,
    pub(crate) started_in: Duration,
}

impl OurSim {
    pub(crate) fn start(vms: usize) -> Self {
        let started = now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_roost"))
            .args([
                "sim",
                "vcenter",
                "--listen",
                "127.0.0.1:0",
                "--hosts",
                "4",
                "--seed",
                "1",
                "--pace",
                "instant",
            ])
            .args(["--vms", &vms.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary that cargo just built");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let url = stdout
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("export GOVC_URL=").map(str::to_owned));
        Self {
            child,
            url: url.expect("an address among what it prints"),
            started_in: started.elapsed(),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for OurSim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// vcsim with the same inventory.
pub(crate) struct Reference {
    vcsim: Vcsim,
    pub(crate) started_in: Duration,
}

impl Reference {
    pub(crate) fn start(vms: usize) -> Option<Self> {
        let started = now();
        let vms = u32::try_from(vms).expect("a sensible number of VMs");
        let vcsim = Vcsim::start(VcsimOptions {
            vms,
            hosts: 4,
            standalone_hosts: 0,
            ..VcsimOptions::default()
        })?;
        Some(Self { vcsim, started_in: started.elapsed() })
    }

    pub(crate) fn url(&self) -> &str {
        self.vcsim.url()
    }
}

/// One line of JSON from the Go program.
pub(crate) struct Measured(Value);

impl Measured {
    pub(crate) fn seconds(&self) -> Duration {
        Duration::from_secs_f64(self.0["seconds"].as_f64().expect("seconds"))
    }

    pub(crate) fn change_seconds(&self) -> Duration {
        let seconds = self.0["change"]["submit_to_update_seconds"].as_f64();
        Duration::from_secs_f64(seconds.expect("a change"))
    }
}

pub(crate) fn govmomi(bench: &Binary, args: &[&str]) -> Measured {
    let output = bench
        .command()
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .expect("the Go program starts");
    assert!(output.status.success(), "govmomi-bench {} failed", args[0]);
    Measured(serde_json::from_slice(&output.stdout).expect("a line of JSON"))
}

/// Stores one whole answer of the server below the target folder.
pub(crate) fn record(bench: &Binary, url: &str, set: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{set}.xml"));
    govmomi(bench, &["record", "--url", url, "--set", set, "--out", &file.to_string_lossy()]);
    file
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Real time: this is a benchmark.
pub(crate) fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
