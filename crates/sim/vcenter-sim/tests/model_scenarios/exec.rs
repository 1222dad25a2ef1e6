//! Guests that execute, on real time.

use std::time::Duration;

use roost_vcenter_sim::{GuestMode, GuestProcessView, Options, Power, Timings};
use roost_vim_wire::MoRef;

use crate::story::{Story, instant};

async fn start() -> (Story, MoRef) {
    let options = Options { guests: GuestMode::Exec, timings: Timings::instant(), ..instant() };
    let story = Story::start(options).await;
    let vm = story.worker("worker-1").await;
    story.until_ready("worker-1").await;
    (story, vm)
}

async fn ended(story: &Story, pid: i64) -> GuestProcessView {
    for _ in 0..600 {
        let all = story.lab.vcenter.guest_processes("worker-1");
        if let Some(found) =
            all.into_iter().find(|process| process.pid == pid && process.exit_code.is_some())
        {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the program did not end");
}

#[tokio::test]
async fn a_program_gets_exactly_its_environment_and_its_exit_code_is_reported() {
    let (story, vm) = start().await;
    let given = ["CDS_TOKEN=a b", "PATH=/usr/bin:/bin"];
    let pid = story.start_program(&vm, "/bin/echo", "-n ;env; exit 3", &given).await.unwrap();
    let process = ended(&story, pid).await;
    assert_eq!(process.exit_code, Some(3));
    let mut names: Vec<_> =
        process.output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    let own = ["CDS_TOKEN", "HOME", "PATH", "TEMP", "TMP", "TMPDIR"];
    assert_eq!(names, own, "what bash adds of its own aside");
    assert!(process.output.contains("CDS_TOKEN=a b\n"));
    assert!(process.output.contains(":/usr/bin:/bin\n"), "{}", process.output);
}

#[tokio::test]
async fn a_program_that_asks_for_it_powers_its_vm_off_when_it_exits() {
    let (story, vm) = start().await;
    let script = "-c 'sudo -n /sbin/shutdown -h now; echo bye'";
    let pid = story.start_program(&vm, "/bin/bash", script, &["A=1"]).await.unwrap();
    story.until("it is off", |story| story.vm("worker-1").power == Power::Off).await;
    assert!(story.programs().len() == 1 && pid > 0);
}

#[tokio::test]
async fn uploaded_files_are_found_by_their_guest_paths() {
    let (story, vm) = start().await;
    let call = roost_vim_wire::methods::InitiateFileTransferToGuest {
        this: MoRef::new("GuestFileManager".into(), "guestOperationsFileManager"),
        vm: vm.clone(),
        auth: crate::story::auth("root", "x"),
        guest_file_path: "/home/ci/run.sh".into(),
        file_attributes: roost_vim_wire::types::GuestFileAttributes {
            permissions: Some(0o755),
            ..roost_vim_wire::types::GuestFileAttributes::of("GuestPosixFileAttributes")
        },
        file_size: 19,
        overwrite: true,
    };
    let url = story.client.call(call).await.unwrap();
    let place = url.split_once('*').unwrap().1;
    assert_eq!(
        story.lab.anonymous().http("PUT", place, "echo hi > out; pwd\n").await.unwrap().0,
        200
    );
    let pid = story.start_program(&vm, "/bin/bash", "/home/ci/run.sh", &[]).await.unwrap();
    let process = ended(&story, pid).await;
    assert_eq!(process.exit_code, Some(0), "{}", process.output);
    assert_eq!(story.lab.vcenter.read_guest_file("worker-1", "/root/out").unwrap(), "hi\n");
}

#[tokio::test]
async fn what_a_program_installs_and_logs_stays_in_its_guest() {
    let (story, vm) = start().await;
    let script = "-n ;#!/bin/sh\necho 'echo I am $0' >> /usr/local/bin/roost-greeter\n\
                  chmod +x /usr/local/bin/roost-greeter\n\
                  PATH=$PATH roost-greeter 1>/tmp/roost-greeter.log 2>&1;\nsudo shutdown -h now";
    let given = ["PATH=/usr/local/bin:/usr/bin:/bin"];
    story.start_program(&vm, "/bin/echo", script, &given).await.unwrap();
    story.until("it is off", |story| story.vm("worker-1").power == Power::Off).await;
    let log = story.lab.vcenter.read_guest_file("worker-1", "/tmp/roost-greeter.log").unwrap();
    let log = String::from_utf8_lossy(&log).into_owned();
    assert!(log.starts_with("I am /") && log.ends_with("/usr/local/bin/roost-greeter\n"), "{log}");
    for path in ["/usr/local/bin/roost-greeter", "/tmp/roost-greeter.log"] {
        assert!(!std::path::Path::new(path).exists(), "{path} is on this machine");
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[tokio::test]
async fn as_root_a_guest_has_namespaces_of_its_own() {
    if !is_root() {
        return;
    }
    let (story, vm) = start().await;
    let script = "-c 'readlink /proc/self/ns/pid /proc/self/ns/mnt; ls -d /proc/[0-9]* | wc -l'";
    let pid = story.start_program(&vm, "/bin/bash", script, &["PATH=/usr/bin:/bin"]).await.unwrap();
    let process = ended(&story, pid).await;
    let lines: Vec<&str> = process.output.lines().collect();
    for (kind, seen) in ["pid", "mnt"].into_iter().zip(&lines) {
        let own = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        assert!(seen.starts_with(&format!("{kind}:[")), "{}", process.output);
        assert_ne!(own.to_str(), Some(*seen), "the guest shares the {kind} namespace");
    }
    assert!(lines[2].parse::<u32>().unwrap() < 10, "it sees its own processes: {}", process.output);
}

/// Where systemd runs, `binfmt_misc` is mounted below `/proc`. No guest of root ran there: what a later mount hides cannot be
/// mounted again.
#[test]
fn as_root_a_guest_is_confined_also_where_mounts_hide_others() {
    if !is_root() {
        return;
    }
    let mounts = "mkdir -p \"$1/hidden\" && mount -t tmpfs none \"$1/hidden\" && mount -t tmpfs none \"$1\" \
        && mount -t tmpfs none /proc/fs && mount -t tmpfs none \"$2\"";
    let again = "exec::a_worker_that_removes_its_whole_temporary_directory_does_no_harm";
    let covered = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("covered");
    let below = std::env::temp_dir().join(format!("roost-below-{}", std::process::id()));
    std::fs::create_dir_all(&below).unwrap();
    let output = std::process::Command::new("unshare")
        .args(["--mount", "--", "/bin/sh", "-c"])
        .arg(format!("{mounts} && exec \"$0\" --exact {again}"))
        .arg(std::env::current_exe().unwrap())
        .args([&covered, &below])
        .output()
        .unwrap();
    let _ = std::fs::remove_dir(&below);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

/// A worker of CDS removes all of its temporary directory at its end. It once emptied that of the machine.
#[tokio::test]
async fn a_worker_that_removes_its_whole_temporary_directory_does_no_harm() {
    let (story, vm) = start().await;
    let canary = std::env::temp_dir().join(format!("roost-canary-{}", std::process::id()));
    std::fs::write(&canary, "sings").unwrap();
    // As a script that was not translated would name it. Only this one file: a failure must not do the harm that it looks for.
    let literal = format!("/t''mp/roost-canary-{}", std::process::id());
    let script = format!(
        "-c 'for d in $TMPDIR $TMP $TEMP; do case $d in *roost-guests-*/tmp) rm -rf \"$d\" ;; *) exit 9 ;; esac; done; \
         case $HOME in *roost-guests-*) ;; *) exit 8 ;; esac; rm -f {literal}; echo done'"
    );
    let given = ["TMPDIR=/tmp", "HOME=/root", "PATH=/usr/bin:/bin"];
    let pid = story.start_program(&vm, "/bin/bash", &script, &given).await.unwrap();
    let process = ended(&story, pid).await;
    let is_root = is_root();
    assert_eq!(process.exit_code, Some(0), "{}", process.output);
    assert!(!is_root || canary.exists(), "a guest of root reaches the files of this machine");
    let _ = std::fs::remove_file(&canary);
    let again = "-c 'mktemp && cd && pwd'";
    let pid = story.start_program(&vm, "/bin/bash", again, &["PATH=/usr/bin:/bin"]).await.unwrap();
    let process = ended(&story, pid).await;
    assert_eq!(
        process.exit_code,
        Some(0),
        "there is a temporary directory again: {}",
        process.output
    );
    if is_root {
        let outside = format!("/var/tmp/roost-canary-{}", std::process::id());
        let script = format!("-c 'echo x > {outside}'");
        let pid = story.start_program(&vm, "/bin/bash", &script, &[]).await.unwrap();
        let process = ended(&story, pid).await;
        assert!(process.output.contains("Read-only"), "{}", process.output);
        assert!(!std::path::Path::new(&outside).exists());
    }
}

/// Whether a process of this machine has this argument. A guest may count its processes differently.
fn is_alive(argument: &str) -> bool {
    let wanted = format!("sleep\0{argument}\0");
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.into_iter().any(|process| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
    })
}

#[tokio::test]
async fn what_runs_ends_with_its_vm_and_with_the_simulator() {
    let (story, vm) = start().await;
    let running = async |story: &Story, argument: &str| {
        let script = format!("-c 'sleep {argument} & wait'");
        story.start_program(&vm, "/bin/bash", &script, &["A=1"]).await.unwrap();
        for _ in 0..600 {
            if is_alive(argument) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the program does not sleep");
    };
    let argument = |n: u32| format!("300.{}{n}", std::process::id());
    running(&story, &argument(1)).await;
    story.power_off(&vm).await.unwrap();
    until_dead(&argument(1)).await;
    story.power_on(&vm).await.unwrap();
    story.until_ready("worker-1").await;
    running(&story, &argument(2)).await;
    drop(story);
    until_dead(&argument(2)).await;
}

async fn until_dead(argument: &str) {
    for _ in 0..600 {
        if !is_alive(argument) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("sleep {argument} lives on");
}
