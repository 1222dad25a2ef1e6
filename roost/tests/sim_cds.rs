//! `roost sim cds` as a newcomer meets it, and the worker that its guests download.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use roost_cds::{
    Client, Commands, HatcheryKey, HttpSettings, HttpTransport, OsArch, Purpose, Registration,
    Settings, V1Worker, V2Worker, WorkerConfig,
};
use roost_cds_sim::demo_hatchery_key;
use roost_clock::{Clock as _, Random, SystemClock};
use roost_vim::wire::MoRef;
use roost_vim::wire::types::VirtualMachinePowerState as PowerState;
use roost_vim::{CloneVm, Environment, Guest, GuestCredentials, Program};
use serde_json::{Value, json};
use wire::{CdsSim, Control, Process, Site, VcenterSim, ask_as, roost, rows_of, until, within};

fn output(args: &[&str]) -> Output {
    roost(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_says_what_a_hatchery_needs_and_ctrl_c_ends_it() {
    let site = Site::new("cds-says");
    let command = roost(&["sim", "cds", "--listen", "127.0.0.1:0", "--seed", "7"]);
    let process = Process::start(command, &site.file("log"), "Ctrl-C");
    let url = process.word("http://127.0.0.1:").to_owned();
    let (code, said) = process.interrupt();
    assert_eq!(code, Some(0));
    for part in [
        "(seed 7)",
        "DEMO/github/roost/models/debian12 is the template debian12",
        "name = \"roost\"",
        "token = \"demo-consumer-token\"",
        "tokenV2 = \"demo-hatchery-token\"",
        "region = \"default\"",
        &format!("url = \"{url}\""),
        "demo tokens open nothing but this simulator",
        "\nStopped.\n",
    ] {
        assert!(said.contains(part), "no {part} in\n{said}");
    }
    assert!(!said.contains("Control endpoint"), "{said}");
}

#[test]
fn it_ends_with_a_table_of_who_asked_for_what() {
    let site = Site::new("cds-table");
    let command = roost(&["sim", "cds", "--listen", "127.0.0.1:0", "--seed", "7"]);
    let process = Process::start(command, &site.file("log"), "Ctrl-C");
    let url = process.word("http://127.0.0.1:").to_owned();
    let address = url.strip_prefix("http://").unwrap();
    for path in ["/worker", "/worker", "/v2/worker"] {
        let answer = ask_as("a-script/1", address, &format!("GET {path}"), "");
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    let (_, said) = process.interrupt();
    let rows = rows_of(&said, "a-script/1");
    let [(v2, of_v2), (v1, of_v1), (all, sum)] = rows.as_slice() else { panic!("{said}") };
    assert_eq!([v2, v1, all], ["GET /v2/worker", "GET /worker", "all"]);
    assert_eq!((of_v1[0], of_v2[0], sum[0]), (2, 1, 3), "{said}");
    assert!(sum[2] > 0 && sum[2] == of_v1[2] + of_v2[2], "{said}");
}

#[test]
fn tokens_that_were_given_are_not_printed() {
    let site = Site::new("cds-tokens");
    let mut command = roost(&["sim", "cds", "--listen", "127.0.0.1:0", "--token", "s3cret-1"]);
    command.env("ROOST_SIM_TOKEN_V2", "s3cret-2");
    let (_, said) = Process::start(command, &site.file("log"), "Ctrl-C").interrupt();
    assert!(said.contains("token = \"...\" # as given with --token\n"), "{said}");
    assert!(said.contains("tokenV2 = \"...\" # as given with --token-v2\n"), "{said}");
    assert!(!said.contains("s3cret") && !said.contains("demo tokens"), "{said}");
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = output(&["sim", "cds", "--listen", &address]);
    let said = stderr(&output);
    assert!(!output.status.success());
    assert!(
        said.starts_with("roost: ") && said.contains(&address) && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn bad_arguments_name_themselves_and_secrets_stay_unsaid() {
    for (args, part) in [
        (&["--listen", "here"][..], "--listen"),
        (&["--chaos", "2"], "from 0 to 1"),
        (&["--every", "soon"], "--every"),
        (&["--booking=-1"], "--booking"),
        (&["--hatchery", ""], "--hatchery must not be empty"),
        (&["--region", ""], "--region must not be empty"),
        (&["--token", ""], "--token must not be empty"),
        (&["--token-v2", "", "--token", "s3cret"], "--token-v2 must not be empty"),
        (&["--template", "a/b", "--template", "a-b"], "a-b already"),
        (&["--template", ""], "--template must not be empty"),
        (&["--jbos", "3"], "--jobs"),
    ] {
        let args = [&["sim", "cds", "--listen", "127.0.0.1:0"], args].concat();
        let output = output(&args);
        assert!(!output.status.success(), "{args:?}");
        let said = stderr(&output);
        assert!(
            said.contains(part) && !said.contains("panicked") && !said.contains("s3cret"),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn help_explains_every_flag() {
    let help = String::from_utf8(output(&["sim", "cds", "--help"]).stdout).unwrap();
    for flag in [
        "--listen",
        "--hatchery",
        "--token",
        "--token-v2",
        "--region",
        "--template",
        "--jobs",
        "--every",
        "--work",
        "--flavor",
        "--v1-share",
        "--chaos",
        "--scheduling-timeout",
        "--booking",
        "--seed",
        "--control",
    ] {
        let at = help.find(&format!("{flag} ")).or_else(|| help.find(&format!("{flag}\n")));
        let after = &help[at.unwrap_or_else(|| panic!("{flag} is not in the help"))..];
        let line = after.lines().nth(1).unwrap_or_default().trim();
        assert!(line.len() > 5, "{flag} is not explained:\n{after}");
    }
    let help = String::from_utf8(output(&["sim", "--help"]).stdout).unwrap();
    assert!(help.contains("cds") && !help.contains("worker"), "{help}");
}

#[tokio::test]
async fn demand_arrives_by_itself_and_a_seed_is_a_run() {
    let jobs = async |name: &str| {
        let site = Site::new(name);
        let flags = ["--jobs", "12", "--every", "0.05", "--flavor", "small", "--v1-share", "0.5"];
        let cds = CdsSim::start(&site, &flags);
        until("all jobs wait", within(60), async || cds.count("waiting").await == 12).await;
        let ids = |jobs: Value| -> Vec<String> {
            let jobs = jobs.as_array().unwrap().iter();
            jobs.map(|job| job["id"].as_str().unwrap().to_owned()).collect()
        };
        let ids = ids(cds.control.get("jobs").await);
        let (code, said) = cds.process.interrupt();
        assert_eq!(code, Some(0));
        assert!(said.contains("Jobs: 0 done, 0 failed, 0 running, 12 waiting."), "{said}");
        ids
    };
    assert_eq!(jobs("cds-jobs-1").await, jobs("cds-jobs-2").await);
}

#[tokio::test]
async fn chaos_spares_the_control_endpoint() {
    let cds = CdsSim::start(&Site::new("cds-chaos"), &["--chaos", "1"]);
    let id = cds.add_job("v2", &json!({})).await;
    assert_eq!(cds.status(&id).await, "Waiting");
    let api = Control::new(cds.url());
    let answers = async || {
        // Late is as good as never here.
        let asked = api.try_get("mon/version");
        tokio::time::timeout(Duration::from_secs(2), asked).await.ok().flatten().is_some()
    };
    assert!(!answers().await);
    cds.control.delete("faults").await;
    assert!(answers().await);
}

#[tokio::test]
async fn a_job_that_was_taken_and_got_no_worker_waits_again_after_the_given_time() {
    let cds = CdsSim::start(&Site::new("cds-timeout"), &["--scheduling-timeout", "0.5"]);
    let id = cds.add_job("v2", &json!({})).await;
    hatchery(&cds).v2().unwrap().take(&id).await.unwrap();
    until("it waits again", within(60), async || cds.status(&id).await == "Waiting").await;
    let history = cds.job(&id).await["history"].to_string();
    assert!(history.contains("scheduling_timed_out"), "{history}");
}

#[tokio::test]
async fn what_it_printed_and_the_vcenters_address_are_a_valid_configuration() {
    let site = Site::new("cds-config");
    let (vcenter, cds) = (VcenterSim::start(&site, &[]), CdsSim::start(&site, &[]));
    site.write_config(&vcenter, &cds, "", "");
    let mut check = roost(&["check", "-c", "roost.toml"]);
    let output = check.current_dir(site.folder()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("0 warnings"), "{said}");
}

const HATCHERY: &str = "roost";

fn key() -> Arc<HatcheryKey> {
    Arc::new(HatcheryKey::parse(&demo_hatchery_key()).unwrap())
}

/// The CDS side of a hatchery, with what the simulator printed.
fn hatchery(cds: &CdsSim) -> Client {
    let settings = Settings {
        url: cds.url().parse().unwrap(),
        request_timeout: Settings::REQUEST_TIMEOUT,
        token: Some("demo-consumer-token".into()),
        token_v2: Some("demo-hatchery-token".into()),
        registration: Registration {
            name: HATCHERY.into(),
            http_url: "http://localhost:8086".into(),
            config: json!({}),
            key: key(),
            region: None,
            ignore_job_with_no_region: false,
            os_arch: vec!["linux/amd64".into()],
            version: String::new(),
        },
    };
    let transport = HttpTransport::new(&HttpSettings::default()).unwrap();
    Client::new(settings, Arc::new(transport), Arc::new(SystemClock)).unwrap()
}

/// What a hatchery passes to the worker of a job.
fn v2_config(cds: &CdsSim, name: &str, job: &str) -> WorkerConfig {
    let worker = V2Worker {
        name: name.into(),
        model_name: "DEMO/github/roost/models/debian12".into(),
        run_job_id: job.into(),
        hatchery_name: HATCHERY.into(),
    };
    let id = Random::from_seed(1).uuid();
    WorkerConfig {
        name: name.into(),
        hatchery_name: HATCHERY.into(),
        api_endpoint: cds.url().into(),
        api_token: worker.token(id, SystemClock.now(), &key()).unwrap(),
        run_job_id: job.into(),
        region: "default".into(),
        ..WorkerConfig::default()
    }
}

fn v1_config(cds: &CdsSim, name: &str, job: i64) -> WorkerConfig {
    let worker = V1Worker {
        name: name.into(),
        job_id: job,
        hatchery_name: HATCHERY.into(),
        ..V1Worker::default()
    };
    let id = Random::from_seed(2).uuid();
    WorkerConfig {
        name: name.into(),
        hatchery_name: HATCHERY.into(),
        api_endpoint: cds.url().into(),
        api_token: worker.token(id, SystemClock.now(), &key()).unwrap(),
        booked_job_id: job,
        ..WorkerConfig::default()
    }
}

/// A VM whose guest takes programs, and what starts them.
struct Machine {
    client: roost_vim::Client,
    vm: MoRef,
}

impl Machine {
    async fn clone_of_debian(vcenter: &VcenterSim, name: &str) -> Self {
        let client = vcenter.client().await;
        let finder = client.finder("DC0").await.unwrap();
        let template = finder.template("debian12").await.unwrap().moref;
        let template = client.template_facts(&template).await.unwrap();
        let folder = finder.vm_folder("").await.unwrap().moref;
        let pool = finder.resource_pool("").await.unwrap().moref;
        let request = CloneVm { power_on: true, ..CloneVm::new(folder, name, pool) };
        let vm = client.clone_vm(&template, &request).await.unwrap();
        client.wait_for_guest_operations(&vm, within(60)).await.unwrap();
        Self { client, vm }
    }

    async fn guest(&self) -> Guest {
        let managers = self.client.guest_operations().await.unwrap();
        let login = GuestCredentials::new("root", "demo");
        self.client.guest(&managers, &self.vm, login).ready_by(within(60))
    }

    /// As a hatchery does: `/bin/echo` and the script behind it, by which the tools' shell runs the script.
    async fn launch(&self, os_arch: &OsArch, config: &WorkerConfig) {
        let script = Commands::for_v2_model(os_arch).script(Purpose::Job, config).unwrap();
        let exposed = config.environment().into_iter();
        let environment: Environment =
            exposed.map(|(name, value)| (name, value.expose().to_owned())).collect();
        let program = Program::new("/bin/echo", format!("-n ;{}", script.text().expose()))
            .with_environment(environment);
        self.guest().await.start(&program).await.unwrap();
    }

    async fn wait_for_power(&self, state: PowerState) {
        self.client.wait_for_power(&self.vm, &state, within(120)).await.unwrap();
    }
}

/// When these files of this machine were last written; `None` for one that is not there.
fn written() -> Vec<Option<SystemTime>> {
    ["/usr/local/bin/worker", "/tmp/worker.log", "/tmp/cds-worker-setup.log"]
        .map(|path| Path::new(path).metadata().ok().and_then(|found| found.modified().ok()))
        .to_vec()
}

#[tokio::test]
async fn a_guest_runs_the_default_script_unchanged_its_job_succeeds_and_its_vm_goes_off() {
    let site = Site::new("cds-v2-worker");
    let before = written();
    let vcenter = VcenterSim::start(&site, &["--pace", "instant"]);
    let cds = CdsSim::start(&site, &[]);
    let id = cds.add_job("v2", &json!({})).await;
    let hatchery = hatchery(&cds);
    hatchery.v2().unwrap().take(&id).await.unwrap();

    let machine = Machine::clone_of_debian(&vcenter, "keen-bohr").await;
    let config = v2_config(&cds, "keen-bohr", &id);
    machine.launch(&OsArch::Of("linux/amd64".into()), &config).await;
    machine.wait_for_power(PowerState::PoweredOff).await;

    let job = cds.job(&id).await;
    assert_eq!(job["status"], "Success", "{job}");
    assert_eq!(job["executions"], json!(["keen-bohr"]));
    assert_eq!(cds.count("double_workers").await, 0);
    // CDS keeps the row of a worker that signed out until its next round.
    let workers = cds.control.get("workers").await;
    let is_out = |row: &Value| row["status"] == "Disabled";
    assert!(workers.as_array().unwrap().iter().all(is_out), "it signed out: {workers}");

    assert_eq!(written(), before, "this machine's own files");
    machine.client.power_on(&machine.vm, None).await.unwrap();
    machine.client.wait_for_guest_operations(&machine.vm, within(60)).await.unwrap();
    let guest = machine.guest().await;
    for path in ["/usr/local/bin/worker", "/tmp/worker.log"] {
        guest.download(path).await.unwrap_or_else(|error| panic!("{path} in the guest: {error}"));
    }
    machine.client.shutdown().await;
}

#[tokio::test]
async fn a_v1_job_on_a_v2_model_asks_its_guest_for_the_architecture_and_may_fail() {
    let site = Site::new("cds-v1-worker");
    let vcenter = VcenterSim::start(&site, &["--pace", "instant"]);
    let cds = CdsSim::start(&site, &[]);
    let id = cds.add_job("v1", &json!({"outcome": "fail"})).await;
    let number: i64 = id.parse().unwrap();
    let hatchery = hatchery(&cds);
    hatchery.v1().unwrap().book(number).await.unwrap();

    let machine = Machine::clone_of_debian(&vcenter, "calm-noether").await;
    let config = v1_config(&cds, "calm-noether", number);
    machine.launch(&OsArch::AskGuest, &config).await;
    machine.wait_for_power(PowerState::PoweredOff).await;
    let job = cds.job(&id).await;
    assert_eq!((&job["status"], &job["executions"]), (&json!("Fail"), &json!(["calm-noether"])));
    machine.client.shutdown().await;
}

#[test]
fn a_worker_without_a_configuration_fails_in_one_line() {
    for args in [&["sim", "worker"][..], &["sim", "worker", "--", "register", "--api=x"]] {
        let output = roost(args).env_remove("CDS_CONFIG").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output), "worker: the environment has no CDS_CONFIG\n");
    }
}

#[tokio::test]
async fn without_the_flag_there_is_no_control_endpoint() {
    let site = Site::new("cds-no-control");
    let command = roost(&["sim", "cds", "--listen", "127.0.0.1:0"]);
    let process = Process::start(command, &site.file("log"), "Ctrl-C");
    let control = Control::new(process.word("http://"));
    let answer = control.try_get("roost/control/summary").await;
    assert!(answer.is_none(), "{answer:?}");
    assert!(control.try_get("mon/version").await.is_some());
}
