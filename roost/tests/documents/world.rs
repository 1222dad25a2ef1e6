use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::judge::expect_success;
use crate::page::root;
use crate::wire::{CdsSim, Control, Process, Site, VcenterSim, until, within};

/// What a reader of the documents has: a vCenter, a CDS, a service that runs with a job and spares, and a folder to work in.
pub(crate) struct World {
    site: Site,
    vcenter: VcenterSim,
    cds: CdsSim,
    service: Option<Process>,
    /// The service's own HTTP surface.
    http: Control,
    url: String,
    job: String,
    /// Variables that the page has set so far.
    exported: BTreeMap<String, String>,
}

const TOKEN: &str = "documents";

/// More than any of them takes on a machine that is busy with something else.
const PATIENCE_SECS: &str = "300";

const VSPHERE: &str = r#"
dns = "10.77.0.1"
killAwolServersInterval = 5
workerProvisioningPoolSize = 2
maxCpus = 64
maxMemoryMB = 65536

[[hatchery.vsphere.networks]]
iprange = "10.77.0.0/27"
gateway = "10.77.0.1"
subnetMask = "255.255.255.224"

[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 2
"#;

impl World {
    pub(crate) async fn set() -> Self {
        let site = Site::new("documents");
        let vcenter = VcenterSim::start(&site, &["--vms", "2", "--pace", "quick"]);
        let cds = CdsSim::start(&site, &[]);
        let config = site.write_config(
            &vcenter,
            &cds,
            VSPHERE,
            "maxWorker = 5\nmaxConcurrentProvisioning = 5",
        );
        let port = free_port();
        let text = fs::read_to_string(&config).unwrap();
        let text = text.replace("port = 0", &format!("port = {port}\ntoken = \"{TOKEN}\""));
        lay_out(&site, &text);
        let url = format!("http://127.0.0.1:{port}");
        let job = cds.add_job("v2", &json!({ "takes_ms": 3_600_000 })).await;
        let http = Control::new(&url);
        let mut world =
            Self { site, vcenter, cds, service: None, http, url, job, exported: BTreeMap::new() };
        world.exchange_service("roost run -c conf.toml").unwrap();
        until("its job runs and its spares are ready", within(300), async || {
            let overview = world.http.try_get("api/v1/overview").await.unwrap_or_default();
            let pool = &overview["pools"][0];
            let job =
                world.http.try_get(&format!("api/v1/jobs/{}", world.job)).await.unwrap_or_default();
            pool["ready"] == pool["wanted"] && pool["ready"].is_u64() && job["vm"].is_object()
        })
        .await;
        world
    }

    /// Variables do not outlive the page that set them.
    pub(crate) fn turn_the_page(&mut self) {
        self.exported.clear();
    }

    /// Puts what is here in the place of what is the reader's.
    pub(crate) async fn fill_in(&self, line: &str) -> String {
        let folder = self.site.folder().display().to_string();
        let mut text = line.to_owned();
        let is_install = text.starts_with("install ");
        // What is installed goes beside what is used: the sample would else replace the file that works.
        let system = if is_install { format!("{folder}/installed") } else { folder.clone() };
        for (from, to) in [
            // So that an answer other than 200 is seen.
            ("curl -s", "curl --fail -s".to_owned()),
            ("cargo run --locked -- ", "roost ".to_owned()),
            (
                "http://user:pass@127.0.0.1:8989/sdk",
                format!("https://user:pass@{}/sdk", self.vcenter.endpoint()),
            ),
            ("http://127.0.0.1:8086", self.url.clone()),
            ("http://HOST:PORT", self.url.clone()),
            ("--token-file FILE", format!("--token-file {folder}/token")),
            // The service that runs keeps its own.
            (" > /etc/roost/http-token", format!(" > {folder}/new-token")),
            // What a reader has put together is not what runs here.
            (" -c roost.toml", " -c conf.toml".to_owned()),
            (" -g roost", String::new()),
            (" /etc/", format!(" {system}/etc/")),
            (" /usr/", format!(" {system}/usr/")),
            ("API_URL", self.cds.url().to_owned()),
            ("VCENTER", self.vcenter.endpoint().to_owned()),
        ] {
            text = text.replace(from, &to);
        }
        for (name, value) in [
            ("JOB", self.job.clone()),
            ("MODEL", "debian12".to_owned()),
            ("POOL", "debian12".to_owned()),
            ("GATE", "address".to_owned()),
            ("FILE", "conf.toml".to_owned()),
        ] {
            text = replace_word(&text, name, &value);
        }
        if replace_word(&text, "VM", "") != text {
            text = replace_word(&text, "VM", &self.own_vm().await);
        }
        text
    }

    /// One that may be deleted: the service makes another.
    async fn own_vm(&self) -> String {
        let vms = self.http.get("api/v1/vms").await;
        let rows = vms.as_array().cloned().unwrap_or_default();
        let spare = rows.iter().find(|vm| vm["kind"] == "spare").or(rows.first());
        spare.map_or(Value::Null, |vm| vm["name"].clone()).as_str().unwrap_or("none").to_owned()
    }

    /// A shell in this world.
    fn bash(&self, program: &str) -> Command {
        let folder = self.site.folder();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", folder.join("bin").display()))
            .env("HOME", folder)
            .env("ROOST_URL", &self.url)
            .env("ROOST_TOKEN", TOKEN)
            .env_remove("ROOST_LOG")
            // The simulator makes its own certificate.
            .env("GOVC_INSECURE", "1")
            .envs(&self.exported)
            .stdin(Stdio::null());
        command
    }

    /// It must end well.
    pub(crate) fn run(&mut self, line: &str) -> Result<(), String> {
        if let Some(assignment) = line.strip_prefix("export ") {
            let (name, value) = assignment.split_once('=').ok_or("export without a value")?;
            self.exported.insert(name.to_owned(), value.to_owned());
            return Ok(());
        }
        // A pipe is as good as its worst part.
        let line = format!("set -o pipefail; {line}");
        let mut command = self.bash("timeout");
        command.args(["--kill-after=10", PATIENCE_SECS, "bash", "-c", &line]);
        let output = command.output().unwrap();
        expect_success(&line, &output)
    }

    /// It must say that it is ready, and end well when it is interrupted.
    pub(crate) fn serve(&self, line: &str, ready: &str, more: &str) -> Result<(), String> {
        let process = self.begin(&format!("{line}{more}"), ready);
        match process.interrupt() {
            (Some(0), _) => Ok(()),
            (code, said) => Err(format!("ends with {code:?} after an interruption:\n{said}")),
        }
    }

    fn begin(&self, line: &str, ready: &str) -> Process {
        // Not through `timeout`, which would get the signal instead.
        let mut command = self.bash("bash");
        command.args(["-c", &format!("exec {line}")]);
        Process::start(command, &self.site.file("served.log"), ready)
    }

    /// The service that all commands ask is the one that a document starts.
    pub(crate) fn exchange_service(&mut self, line: &str) -> Result<(), String> {
        if let Some(before) = self.service.take() {
            let (code, said) = before.interrupt();
            if code != Some(0) {
                return Err(format!("the service before it ended with {code:?}:\n{said}"));
            }
        }
        self.service = Some(self.begin(line, "serves, http://"));
        Ok(())
    }
}

/// Nobody else takes it in the moment until the service does, or so one hopes.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Folders and files that the commands expect.
fn lay_out(site: &Site, config: &str) {
    for folder in [
        "bin",
        "target/release",
        "etc/roost",
        "etc/bash_completion.d",
        "usr/local/share/man/man1",
        "installed/usr/local/bin",
        "installed/usr/lib/sysusers.d",
        "installed/etc/systemd/system",
    ] {
        fs::create_dir_all(site.file(folder)).unwrap();
    }
    for file in ["conf.toml", "etc/roost/roost.toml"] {
        fs::write(site.file(file), config).unwrap();
    }
    fs::write(site.file("token"), TOKEN).unwrap();
    fs::write(site.file("boot.iso"), "not a real one").unwrap();
    fs::copy(root().join("deploy/prometheus/alerts.yml"), site.file("alerts.yml")).unwrap();
    symlink(root().join("deploy"), site.file("deploy")).unwrap();
    let here = PathBuf::from(env!("CARGO_BIN_EXE_roost"));
    symlink(&here, site.file("bin/roost")).unwrap();
    symlink(&here, site.file("target/release/roost")).unwrap();
    if let Some(govc) = roost_oracle::govc() {
        symlink(govc.path(), site.file("bin/govc")).unwrap();
    }
    if let Some(promtool) =
        roost_oracle::promtool().filter(|promtool| promtool.path().is_absolute())
    {
        symlink(promtool.path(), site.file("bin/promtool")).unwrap();
    }
}

/// Only where the name stands by itself: `VM`, not `VMs`.
fn replace_word(text: &str, name: &str, value: &str) -> String {
    let is_part = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let stands_alone = !is_part(before.chars().next_back()) && !is_part(after.chars().next());
        replaced.push_str(before);
        replaced.push_str(if stands_alone { value } else { name });
        rest = after;
    }
    replaced + rest
}

#[test]
fn placeholders_are_whole_words() {
    assert_eq!(replace_word("roost delete VM", "VM", "a-b"), "roost delete a-b");
    assert_eq!(replace_word("VMs VM_X 'VM'", "VM", "x"), "VMs VM_X 'x'");
}
