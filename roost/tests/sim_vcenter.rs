//! `roost sim vcenter` as a newcomer meets it: start it, point govc at it, break it.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use roost_oracle::{Govc, Pyvmomi, govmomi_program};
use wire::{Process, Site, ask_as, roost, rows_of};

fn output(args: &[&str]) -> Output {
    roost(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A simulator on a free port. `name` is the test's own.
fn start(name: &str, args: &[&str]) -> Process {
    let mut command = roost(&["sim", "vcenter", "--listen", "127.0.0.1:0", "--seed", "7"]);
    command.args(args);
    Process::start(command, &Site::new(name).file("log"), "Ctrl-C")
}

fn url(process: &Process) -> &str {
    process.line("export GOVC_URL=")
}

#[test]
fn it_says_what_is_there_and_ctrl_c_ends_it() {
    let process = start("vcenter-says", &["--vms", "3", "--hosts", "2"]);
    assert!(url(&process).starts_with("http://user:pass@127.0.0.1:"), "{process:?}");
    let (code, said) = process.interrupt();
    assert_eq!(code, Some(0));
    let contents = "1 datacenter, 1 cluster, 2 hosts, 3 VMs, 2 templates (seed 7)";
    assert!(said.contains(contents) && said.ends_with("\nStopped.\n"), "{said}");
}

#[test]
fn it_ends_with_a_table_of_who_asked_for_what() {
    let process = start("vcenter-table", &[]);
    let address = url(&process).split('@').nth(1).unwrap().split('/').next().unwrap().to_owned();
    let asks = r#"<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><RetrieveServiceContent xmlns="urn:vim25"><_this type="ServiceInstance">ServiceInstance</_this></RetrieveServiceContent></Body></Envelope>"#;
    for _ in 0..2 {
        let answer = ask_as("a-script/1", &address, "POST /sdk", asks);
        assert!(answer.contains("propertyCollector"), "{answer}");
    }
    let (_, said) = process.interrupt();
    let rows = rows_of(&said, "a-script/1");
    let [(method, own), (all, sum)] = rows.as_slice() else { panic!("{said}") };
    assert_eq!((method.as_str(), all.as_str()), ("RetrieveServiceContent", "all"));
    assert!(own[0] == 2 && own[1] >= 2 * asks.len() as u64 && own[2] > own[1], "{said}");
    assert_eq!(own, sum);
}

/// As behind `| head -1`.
#[test]
fn a_reader_that_goes_away_does_no_harm() {
    let mut command = roost(&["sim", "vcenter", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = output(&["sim", "vcenter", "--listen", &address]);
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
        (&["sim", "vcenter", "--listen", "here"][..], "--listen"),
        (&["sim", "vcenter", "--vms", "many"], "--vms"),
        (&["sim", "vcenter", "--guests", "aliens"], "scripted"),
        (&["sim", "vcenter", "--hots", "3"], "--hosts"),
        (&["sim", "vcenter", "--login", "s3cret"], "USER:PASSWORD"),
        (
            &["sim", "vcenter", "--datastore-dir", "/dev/null/store"],
            "--datastore-dir /dev/null/store",
        ),
        (&["sim"], "vcenter"),
    ] {
        let output = output(args);
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
    let output = output(&["sim", "vcenter", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    for flag in [
        "--listen",
        "--tls",
        "--esx",
        "--login",
        "--datacenters",
        "--clusters",
        "--hosts",
        "--standalone-hosts",
        "--pools",
        "--apps",
        "--pods",
        "--folders",
        "--vms",
        "--powered-off",
        "--templates",
        "--templates-without-tools",
        "--datastores",
        "--datastore-dir",
        "--portgroups",
        "--guests",
        "--unconfined-guests",
        "--pace",
        "--seed",
        "--clock-skew",
        "--control",
    ] {
        let at = help.find(&format!("{flag} ")).or_else(|| help.find(&format!("{flag}\n")));
        let after = &help[at.unwrap_or_else(|| panic!("{flag} is not in the help"))..];
        let lines = after.lines().skip(1).map(str::trim);
        assert!(lines.take(1).any(|line| line.len() > 5), "{flag} is not explained:\n{after}");
    }
}

#[test]
fn a_newcomer_clones_a_template_watches_it_boot_runs_a_program_and_uploads_a_file() {
    let process = start("vcenter-newcomer", &["--pace", "instant"]);
    let Some(govc) = Govc::new(url(&process)) else { return };
    assert!(govc.stdout(&["tree"]).contains("debian12"));
    govc.stdout(&["vm.clone", "-vm", "debian12", "worker-1"]);
    assert!(govc.stdout(&["vm.info", "worker-1"]).contains("poweredOn"));
    let address = govc.stdout(&["vm.ip", "worker-1"]);
    assert!(address.trim().parse::<std::net::IpAddr>().is_ok(), "{address}");
    assert_eq!(
        govc.stdout(&["guest.run", "-vm", "worker-1", "-l", "ci:ci", "/bin/echo", "hello"]).trim(),
        "hello"
    );

    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("boot.iso");
    std::fs::write(&file, b"not much of an image").unwrap();
    govc.stdout(&["datastore.mkdir", "-p", "iso"]);
    govc.stdout(&["datastore.upload", &file.to_string_lossy(), "iso/boot.iso"]);
    assert!(govc.stdout(&["datastore.ls", "iso"]).contains("boot.iso"));
    govc.stdout(&["vm.power", "-off", "worker-1"]);
    govc.stdout(&["vm.destroy", "worker-1"]);
    assert!(!govc.stdout(&["find", "/", "-type", "m"]).contains("worker-1"));
}

#[test]
fn https_shows_the_thumbprint_of_a_certificate_of_its_own() {
    let process = start("vcenter-tls", &["--tls"]);
    assert!(url(&process).starts_with("https://"), "{process:?}");
    let thumbprint = process.line("# SHA-256 thumbprint ");
    assert_eq!(thumbprint.split(':').count(), 32, "{thumbprint}");
    let Some(govc) = Govc::new(url(&process)) else { return };
    assert!(govc.stdout(&["about"]).contains("vCenter"));
}

#[test]
fn guests_can_be_real_processes() {
    let process = start("vcenter-exec", &["--pace", "instant", "--guests", "exec"]);
    let Some(govc) = Govc::new(url(&process)) else { return };
    govc.stdout(&["vm.clone", "-vm", "ubuntu24", "worker-1"]);
    govc.stdout(&["vm.ip", "worker-1"]);
    let said = govc.stdout(&[
        "guest.run",
        "-vm",
        "worker-1",
        "-l",
        "ci:ci",
        "-e",
        "GREETING=hello",
        "/bin/bash",
        "-c",
        "'echo $GREETING $((6*7))'",
    ]);
    assert_eq!(said.trim(), "hello 42");
}

/// Without `unshare` there are no namespaces, and root's programs could do anything here.
#[test]
fn as_root_a_guest_that_cannot_be_confined_runs_nothing() {
    let empty = Site::new("vcenter-unconfined").file("bin");
    std::fs::create_dir_all(&empty).unwrap();
    let run = |name: &str, more: &[&str]| {
        let args = ["sim", "vcenter", "--listen", "127.0.0.1:0", "--pace", "instant"];
        let mut command = roost(&args);
        command.args(["--guests", "exec"]).args(more).env("PATH", &empty);
        let process = Process::start(command, &Site::new(name).file("log"), "Ctrl-C");
        let govc = Govc::new(url(&process))?;
        govc.stdout(&["vm.clone", "-vm", "ubuntu24", "worker-1"]);
        govc.stdout(&["vm.ip", "worker-1"]);
        let line = ["guest.run", "-vm", "worker-1", "-l", "ci:ci", "/bin/bash", "-c", "'echo ran'"];
        Some(govc.run(&line))
    };
    let Some(asked_for) = run("vcenter-unconfined-flag", &["--unconfined-guests"]) else { return };
    assert_eq!(asked_for.stdout.trim(), "ran", "{asked_for:?}");
    let Some(output) = run("vcenter-unconfined-root", &[]) else { return };
    if rustix::process::geteuid().is_root() {
        assert!(output.stderr.contains("cannot be confined"), "{output:?}");
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    } else {
        assert_eq!(output.stdout.trim(), "ran", "{output:?}");
    }
}

#[test]
fn the_inventory_has_the_vapps_datastore_clusters_and_folders_that_are_asked_for() {
    let process = start("vcenter-folders", &["--folders", "1", "--pods", "1"]);
    let Some(govc) = Govc::new(url(&process)) else { return };
    assert_eq!(govc.stdout(&["find", "/", "-type", "d"]).trim(), "/F0/DC0");
    assert!(govc.stdout(&["find", "/", "-type", "StoragePod"]).trim().ends_with("/DC0_POD0"));

    let process = start("vcenter-apps", &["--apps", "1", "--pace", "instant"]);
    let Some(govc) = Govc::new(url(&process)) else { return };
    let found = |kind: &str| govc.stdout(&["find", "/", "-type", kind]).trim().to_owned();
    assert_eq!(found("a"), "/DC0/host/DC0_C0/Resources/DC0_C0_APP0");
    govc.stdout(&["vapp.power", "-off", &found("a")]);
    assert!(govc.stdout(&["vm.info", "DC0_C0_APP0_VM0"]).contains("poweredOff"));
    govc.stdout(&["vapp.destroy", &found("a")]);
    assert_eq!(found("a"), "");
    assert!(!found("m").contains("APP0"));
}

/// A program of docs/embedded-vcenter.md.
fn documented(language: &str) -> &'static str {
    let page = include_str!("../../docs/embedded-vcenter.md");
    let block = page.split(&format!("```{language}\n")).nth(1).unwrap();
    block.split("```").next().unwrap()
}

/// Where programs look for others, with our binary first.
fn path() -> String {
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_roost")).parent().unwrap();
    format!("{}:{}", own.display(), std::env::var("PATH").unwrap())
}

#[test]
fn the_program_in_go_that_the_page_shows_works() {
    let Some(program) = govmomi_program(documented("go")) else { return };
    let output = program.command().env("PATH", path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4 VMs <nil>\n", "{}", stderr(&output));
}

#[test]
fn the_program_in_python_that_the_page_shows_works() {
    let Some(python) = Pyvmomi::new() else { return };
    let path = format!("import os\nos.environ['PATH'] = {:?}\n", path());
    assert_eq!(python.stdout(&(path + documented("python")), &[]), "VirtualCenter\n");
}

/// A release build takes 45 MB (`docs/performance.md`); a debug build holds the same objects, and more of its own code.
#[test]
fn ten_thousand_vms_take_a_few_kilobytes_each() {
    let few = start("vcenter-few", &["--vms", "10"]).resident_mb();
    let process = start("vcenter-many", &["--vms", "10000"]);
    let all = process.resident_mb();
    let each = (all - few) / 9_990.0 * 1e3;
    assert!(each < 10.0, "{each:.1} kB for each VM: {all:.0} MB for all, {few:.0} MB for ten");
    assert!(each > 0.1, "they are there: {each:.3} kB");
}
