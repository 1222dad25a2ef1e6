//! `govc` inside a guest: programs, their output and exit codes, files.

use crate::govc::{Lab, lines};
use crate::wire_door::{instant, quick};
use roost_vcenter_sim::{Credentials, GuestBehaviour, GuestMode, Options};

const VM: &str = "DC0_H0_VM0";

/// A command in the guest, with the flags that all of them take.
fn inside<'a>(command: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    [&[command, "-vm", VM, "-l", "ci:secret"], args].concat()
}

#[test]
fn a_program_runs_and_its_output_comes_back() {
    let Some(lab) = Lab::open_tls(instant()) else { return };
    assert_eq!(lab.says(&inside("guest.run", &["/bin/echo", "hello", "world"])), "hello world\n");
    assert_eq!(lab.says(&inside("guest.run", &["-d", "fed in", "cat"])), "fed in");
    let environment =
        inside("guest.run", &["-e", "CDS_CONFIG=e30=", "-e", "LANG=C", "-C", "/home/ci", "env"]);
    let seen = lines(&lab.says(&environment));
    assert!(
        seen.contains(&"CDS_CONFIG=e30=".into()) && seen.contains(&"LANG=C".into()),
        "{seen:?}"
    );

    let failed = lab.govc.run(&inside("guest.run", &["exit", "7"]));
    assert_eq!(failed.status.code(), Some(7), "{}", failed.stderr);
    let failed = lab.govc.run(&inside("guest.run", &["/bin/false"]));
    assert_eq!(failed.status.code(), Some(1), "{}", failed.stderr);
}

#[test]
fn a_started_program_is_listed_until_after_its_end() {
    let Some(lab) = Lab::open(instant()) else { return };
    let pid = lab.says(&inside("guest.start", &["/bin/sleep", "600"]));
    let pid = pid.trim();
    let listed = lines(&lab.says(&inside("guest.ps", &["-p", pid, "-x"])));
    assert_eq!(listed[0], "UID PID STIME XTIME XCODE CMD");
    assert!(
        listed[1].starts_with(&format!("ci {pid} ")) && listed[1].ends_with("\"/bin/sleep\" 600"),
        "{listed:?}"
    );
    lab.does(&inside("guest.kill", &["-p", pid]));
    let process = &lab.json(&inside("guest.ps", &["-p", pid]))["processInfo"][0];
    assert!(process["endTime"].is_string() && process["exitCode"] != 0, "{process}");

    let pid = lab.says(&inside("guest.start", &["/bin/bash", "-c", "'exit 3'"]));
    let ended = lab.json(&inside("guest.ps", &["-p", pid.trim(), "-X"]));
    assert_eq!(ended["processInfo"][0]["exitCode"], 3);
    assert_eq!(ended["processInfo"][0]["owner"], "ci");
    assert_eq!(
        lab.json(&inside("guest.ps", &["-U", "ci"]))["processInfo"].as_array().unwrap().len(),
        2
    );
}

#[test]
fn files_go_in_and_out() {
    let Some(lab) = Lab::open(instant()) else { return };
    let content: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let (there, back) = (lab.file("there", &content), lab.path("back"));
    lab.does(&inside("guest.mkdir", &["-p", "/home/ci/in"]));
    lab.does(&inside("guest.upload", &["-json", "-perm", "0755", &there, "/home/ci/in/run.sh"]));
    let listed = lab.says(&inside("guest.ls", &["/home/ci/in"]));
    assert!(
        listed.contains("rwxr-xr-x") && listed.contains("293.0K") && listed.contains("run.sh"),
        "{listed}"
    );
    lab.does(&inside("guest.download", &["/home/ci/in/run.sh", &back]));
    assert!(std::fs::read(&back).unwrap() == content, "the content differs");

    let taken = lab.refused(&inside("guest.upload", &["-json", &there, "/home/ci/in/run.sh"]));
    assert!(taken.contains("already exists"), "{taken}");
    let small = lab.file("small", b"small\n");
    lab.does(&inside("guest.upload", &["-json", "-f", &small, "/home/ci/in/run.sh"]));
    assert_eq!(lab.says(&inside("guest.download", &["/home/ci/in/run.sh", "-"])), "small\n");
    assert_eq!(lab.says(&inside("guest.run", &["cat", "/home/ci/in/run.sh"])), "small\n");
    lab.does(&inside("guest.rm", &["/home/ci/in/run.sh"]));
    let gone = lab.refused(&inside("guest.download", &["/home/ci/in/run.sh", "-"]));
    assert!(gone.contains("not found"), "{gone}");
}

#[test]
fn a_guest_is_asked_for_its_environment() {
    let Some(lab) = Lab::open(instant()) else { return };
    let all = lines(&lab.says(&inside("guest.getenv", &[])));
    assert!(all.iter().any(|pair| pair.starts_with("PATH=")), "{all:?}");
    assert_eq!(lines(&lab.says(&inside("guest.getenv", &["HOME"]))), ["HOME=/home/ci"]);
}

#[test]
fn a_guest_lets_in_only_whom_it_knows_and_only_when_it_is_up() {
    let Some(lab) = Lab::open(Options { autostart: false, ..instant() }) else { return };
    let run = |login: &str| {
        let output = lab.govc.run(&["guest.run", "-vm", VM, "-l", login, "/bin/true"]);
        (output.is_success(), output.stderr)
    };
    let credentials = Some(Credentials { user: "ci".into(), password: "secret".into() });
    let known = GuestBehaviour { credentials, ..GuestBehaviour::default() };
    let (_, off) = run("ci:secret");
    assert!(off.contains("current state (Powered off)"), "{off}");
    lab.vcenter
        .set_guest_behaviour(VM, GuestBehaviour { becomes_ready: false, ..known.clone() })
        .unwrap();
    lab.does(&["vm.power", "-on", VM]);
    let (_, early) = run("ci:secret");
    assert!(early.contains("guest operations agent could not be contacted"), "{early}");

    lab.does(&["vm.power", "-off", VM]);
    lab.vcenter.set_guest_behaviour(VM, known).unwrap();
    lab.does(&["vm.power", "-on", VM]);
    lab.does(&["object.collect", "-s", "vm/DC0_H0_VM0", "-guest.guestOperationsReady", "true"]);
    let (_, wrong) = run("ci:guess");
    assert!(wrong.contains("Failed to authenticate with the guest operating system"), "{wrong}");
    let (is_in, complaint) = run("ci:secret");
    assert!(is_in, "{complaint}");
}

#[test]
fn a_program_may_turn_the_vm_off() {
    let Some(lab) = Lab::open(quick()) else { return };
    lab.does(&inside("guest.start", &["/sbin/shutdown", "-h", "now"]));
    let off = ["object.collect", "-s", "vm/DC0_H0_VM0", "-runtime.powerState", "poweredOff"];
    assert_eq!(lab.says(&off), "poweredOff\n");
}

#[test]
fn with_exec_programs_are_real_processes() {
    let Some(lab) = Lab::open(Options { guests: GuestMode::Exec, ..instant() }) else { return };
    let sum = inside(
        "guest.run",
        &[
            "-e",
            "A=20",
            "-e",
            "PATH=/usr/bin:/bin",
            "/bin/bash",
            "-c",
            "'echo $((A + 22)); echo bad >&2; exit 5'",
        ],
    );
    let output = lab.govc.run(&sum);
    assert_eq!((output.stdout.as_str(), output.status.code()), ("42\n", Some(5)));
    assert!(output.stderr.starts_with("bad\n"), "{}", output.stderr);
}
