//! A running `vcsim`.

use crate::go::{self, Binary};
use crate::server_url::ServerUrl;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long vcsim may take to remove its datastore files when it is told to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// What `vcsim` simulates. The defaults are those of vcsim, but with TLS off and a login that is checked.
#[derive(Clone)]
pub struct VcsimOptions {
    /// A standalone ESXi host instead of a vCenter; of the sizes, `vms` and `datastores` apply to it.
    pub esx: bool,
    /// VMs in each resource pool and on each standalone host.
    pub vms: u32,
    /// Hosts in each cluster.
    pub hosts: u32,
    pub clusters: u32,
    pub standalone_hosts: u32,
    /// Resource pools below the root pool of each cluster.
    pub pools: u32,
    /// vApps in each cluster.
    pub apps: u32,
    /// Datastore clusters in each datacenter.
    pub pods: u32,
    /// So many of the last datacenters sit in folders.
    pub folders: u32,
    pub datastores: u32,
    /// Whether the VMs are powered on.
    pub autostart: bool,
    /// HTTPS, with a self-signed certificate.
    pub tls: bool,
    pub username: String,
    pub password: String,
    /// How long a call takes, by the name of its method (`CloneVM_Task`: the submission) or of its task
    /// (`CloneVm`: the work). Whole milliseconds.
    pub delays: Vec<(String, Duration)>,
}

impl Default for VcsimOptions {
    fn default() -> Self {
        Self {
            esx: false,
            vms: 2,
            hosts: 3,
            clusters: 1,
            standalone_hosts: 1,
            pools: 0,
            apps: 0,
            pods: 0,
            folders: 0,
            datastores: 1,
            autostart: true,
            tls: false,
            username: "user".to_owned(),
            password: "pass".to_owned(),
            delays: Vec::new(),
        }
    }
}

impl fmt::Debug for VcsimOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<_> =
            self.arguments().into_iter().filter(|arg| !arg.starts_with("-password=")).collect();
        f.debug_tuple("VcsimOptions").field(&shown).finish()
    }
}

impl VcsimOptions {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "-l=127.0.0.1:0".to_owned(),
            format!("-esx={}", self.esx),
            format!("-vm={}", self.vms),
            format!("-host={}", self.hosts),
            format!("-cluster={}", self.clusters),
            format!("-standalone-host={}", self.standalone_hosts),
            format!("-pool={}", self.pools),
            format!("-app={}", self.apps),
            format!("-pod={}", self.pods),
            format!("-folder={}", self.folders),
            format!("-ds={}", self.datastores),
            format!("-autostart={}", self.autostart),
            format!("-tls={}", self.tls),
            format!("-username={}", self.username),
            format!("-password={}", self.password),
        ];
        for (name, delay) in &self.delays {
            arguments.push(format!("-method-delay={name}:{}", delay.as_millis()));
        }
        arguments
    }

    /// vcsim makes one VM after the other and waits about 35 ms for each; the rest is for a busy machine.
    fn start_limit(&self) -> Duration {
        let in_clusters = self.clusters * self.pools.max(1);
        let pools = if self.esx { 1 } else { in_clusters + self.standalone_hosts };
        Duration::from_secs(30) + Duration::from_millis(200) * self.vms * pools
    }
}

/// A `vcsim` process on a free port of the loopback interface; it ends with this value, and also when
/// the test process dies.
#[derive(Debug)]
pub struct Vcsim {
    child: Child,
    url: ServerUrl,
    options: VcsimOptions,
    /// vcsim ends when this closes.
    stdin: Option<ChildStdin>,
    /// Disconnected once vcsim has ended.
    stdout: Receiver<ServerUrl>,
    stderr: Arc<Mutex<String>>,
}

impl Vcsim {
    /// `None` after a line that says so when `vcsim` cannot be had; see [`vcsim`](crate::vcsim()).
    ///
    /// Panics when it does not start.
    pub fn start(options: VcsimOptions) -> Option<Self> {
        Some(Self::spawn(&go::vcsim()?, options))
    }

    fn spawn(binary: &Binary, options: VcsimOptions) -> Self {
        let mut child = binary
            .command()
            .args(options.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("starting vcsim: {error}"));
        let stdin = child.stdin.take();
        let stdout = watch_stdout(child.stdout.take());
        let stderr = keep(child.stderr.take());
        let mut vcsim = Self { child, url: ServerUrl::new(""), options, stdin, stdout, stderr };
        let limit = vcsim.options.start_limit();
        vcsim.url = match vcsim.stdout.recv_timeout(limit) {
            Ok(url) => url,
            Err(RecvTimeoutError::Timeout) => {
                panic!("vcsim printed no URL within {limit:?}: {}", vcsim.stderr())
            }
            Err(RecvTimeoutError::Disconnected) => {
                // Its last words may still be on their way.
                let _ = vcsim.child.wait();
                panic!("vcsim ended before it printed a URL: {}", vcsim.stderr())
            }
        };
        vcsim
    }

    /// With user and password, as `govc` and `connect(url)` take it.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Without user and password.
    pub fn endpoint(&self) -> String {
        self.url.without_login()
    }

    pub fn username(&self) -> &str {
        &self.options.username
    }

    pub fn password(&self) -> &str {
        &self.options.password
    }

    /// What vcsim complained about so far. A request can make it panic, and then it ends.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Vcsim {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if !matches!(self.stdout.recv_timeout(FAREWELL), Err(RecvTimeoutError::Disconnected)) {
            // It may have ended just now; then there is nothing to kill.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn watch_stdout(pipe: Option<impl Read + Send + 'static>) -> Receiver<ServerUrl> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
            if let Some(url) = line.ok().as_deref().and_then(announced_url) {
                // The receiver is gone when the start was given up.
                let _ = sender.send(url);
            }
        }
    });
    receiver
}

fn keep(pipe: Option<impl Read + Send + 'static>) -> Arc<Mutex<String>> {
    let kept = Arc::new(Mutex::new(String::new()));
    let writer = Arc::clone(&kept);
    thread::spawn(move || {
        for line in pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
            let Ok(line) = line else { break };
            let mut kept = writer.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_str(&line);
            kept.push('\n');
        }
    });
    kept
}

/// The URL in `export GOVC_URL=http://... GOVC_SIM_PID=...`.
fn announced_url(line: &str) -> Option<ServerUrl> {
    let (_, rest) = line.split_once("GOVC_URL=")?;
    rest.split_whitespace().next().map(ServerUrl::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_found_in_what_vcsim_prints() {
        let line = "export GOVC_URL=http://user:pass@127.0.0.1:8989/sdk GOVC_SIM_PID=7";
        let url = ServerUrl::new("http://user:pass@127.0.0.1:8989/sdk");
        assert_eq!(announced_url(line), Some(url));
        for other in ["", "2026/11/01 a log line", "export GOVC_URL="] {
            assert_eq!(announced_url(other), None, "{other:?}");
        }
    }

    #[test]
    fn options_become_flags_and_debug_hides_the_password() {
        let options = VcsimOptions {
            vms: 7,
            delays: vec![("CloneVm".to_owned(), Duration::from_millis(150))],
            ..VcsimOptions::default()
        };
        let arguments = options.arguments();
        for flag in ["-vm=7", "-tls=false", "-method-delay=CloneVm:150", "-password=pass"] {
            assert!(arguments.iter().any(|argument| argument == flag), "{flag}");
        }
        assert!(!format!("{options:?}").contains("pass"));
    }

    #[test]
    fn a_large_inventory_gets_more_time_to_start() {
        let options = VcsimOptions { vms: 10_000, standalone_hosts: 0, ..VcsimOptions::default() };
        assert_eq!(options.start_limit(), Duration::from_secs(2030));
    }
}
