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
    assert_eq!(names, ["CDS_TOKEN", "PATH"], "what bash adds of its own aside");
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

/// Whether a process of this machine is there.
fn is_alive(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).exists()
}

#[tokio::test]
async fn what_runs_ends_with_its_vm_and_with_the_simulator() {
    let (story, vm) = start().await;
    let running = async |story: &Story| {
        let script = "-c 'sleep 300 & echo $!; wait'";
        story.start_program(&vm, "/bin/bash", script, &["A=1"]).await.unwrap();
        for _ in 0..600 {
            let machine = format!("/.roost/output/{}.log", 1000 + story.programs().len());
            let output =
                story.lab.vcenter.read_guest_file("worker-1", &machine).unwrap_or_default();
            if let Some(pid) = String::from_utf8_lossy(&output).lines().next() {
                return pid.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the program printed nothing");
    };
    let sleeper = running(&story).await;
    assert!(is_alive(&sleeper));
    story.power_off(&vm).await.unwrap();
    until_dead(&sleeper).await;
    story.power_on(&vm).await.unwrap();
    story.until_ready("worker-1").await;
    let sleeper = running(&story).await;
    drop(story);
    until_dead(&sleeper).await;
}

async fn until_dead(pid: &str) {
    for _ in 0..600 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("process {pid} lives on");
}
