use std::time::Duration;

use bytes::Bytes;
use roost_vcenter_sim::{Action, Credentials, Options, Rule, TemplateOptions};
use roost_vim::wire::MoRef;
use roost_vim::{
    CloneVm, Environment, Faulted, Guest, GuestCredentials, GuestError, GuestFileOptions, Program,
    Remedy,
};

use crate::lab::{Lab, within};

/// A lab with a guest that root may use, and how to reach it.
async fn booted() -> (Lab, MoRef, Guest) {
    let root = Credentials { user: "root".into(), password: "pw".into() };
    let template =
        TemplateOptions { guest_credentials: Some(root), ..TemplateOptions::new("debian12") };
    let lab = Lab::with_templates(Options::default(), vec![template]).await;
    let request = CloneVm { power_on: true, ..lab.clone_request("worker-1").await };
    let vm = lab.client.clone_vm(&lab.template().await, &request).await.unwrap();
    lab.client.wait_for_guest_operations(&vm, within(180)).await.unwrap();
    let guest = guest(&lab, &vm, "pw").await.ready_by(within(60));
    (lab, vm, guest)
}

async fn guest(lab: &Lab, vm: &MoRef, password: &str) -> Guest {
    let managers = lab.client.guest_operations().await.unwrap();
    lab.client.guest(&managers, vm, GuestCredentials::new("root", password))
}

#[tokio::test(start_paused = true)]
async fn programs_run_with_their_script_environment_and_directory() {
    let (lab, _, guest) = booted().await;
    let environment =
        Environment::default().with("CDS_CONFIG", "it's a secret").with("HOME", "/srv");
    let program = Program::bash("echo 'a b' > /tmp/out; exit 3")
        .in_directory("/srv")
        .with_environment(environment);
    let exit = guest.run(&program, within(600)).await.unwrap();
    assert_eq!(exit.code, 3);
    let started = lab.vcenter.guest_programs().pop().unwrap();
    assert_eq!((started.user.as_str(), started.path.as_str()), ("root", "/bin/bash"));
    assert_eq!(started.variable("CDS_CONFIG"), Some("it's a secret"));
    assert_eq!(started.variable("HOME"), Some("/srv"));
    assert!(
        started.variable("PATH").is_some(),
        "the environment is replaced, so that it must be whole"
    );
    assert_eq!(started.directory.as_deref(), Some("/srv"));
    assert_eq!(lab.vcenter.read_guest_file("worker-1", "/tmp/out").unwrap(), "a b\n");
}

#[tokio::test(start_paused = true)]
async fn processes_are_listed_waited_for_and_ended() {
    let (_lab, _, guest) = booted().await;
    let long = guest.start(&Program::bash("sleep 3600")).await.unwrap();
    let short = guest.start(&Program::bash("sleep 20")).await.unwrap();
    let running = guest.processes(&[long]).await.unwrap();
    assert_eq!((running[0].pid, running[0].exit), (long, None));
    assert_eq!(guest.wait_for_exit(short, within(60)).await.unwrap().code, 0);
    let error = guest.wait_for_exit(long, within(30)).await.unwrap_err();
    assert!(matches!(error, GuestError::StillRunning { pid, .. } if pid == long), "{error}");
    guest.terminate(long).await.unwrap();
    assert!(guest.wait_for_exit(long, within(10)).await.is_ok());
    tokio::time::sleep(Duration::from_hours(1)).await;
    guest.terminate(long).await.expect("what has ended can be ended again");
    let error = guest.wait_for_exit(long, within(10)).await.unwrap_err();
    assert!(matches!(error, GuestError::ProcessForgotten { .. }), "{error}");
    assert_eq!(error.remedy(), Remedy::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_goes_off_ends_the_wait_for_its_processes() {
    let (lab, vm, guest) = booted().await;
    let pid = guest.start(&Program::bash("sleep 3600")).await.unwrap();
    let unplug = async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        lab.client.power_off(&vm).await.unwrap();
    };
    let (waited, ()) = tokio::join!(guest.wait_for_exit(pid, within(3600)), unplug);
    assert!(waited.unwrap_err().is_fault("InvalidPowerState"));
}

#[tokio::test(start_paused = true)]
async fn files_go_into_the_guest_and_out_of_it() {
    let (lab, _, guest) = booted().await;
    let script = Bytes::from_static(b"#!/bin/sh\nexit 0\n");
    guest.make_directory("/srv/work/a").await.unwrap();
    guest.make_directory("/srv/work/a").await.expect("a directory that is there is fine");
    guest.upload(&script, "/srv/work/a/run.sh", GuestFileOptions::executable()).await.unwrap();
    assert_eq!(lab.vcenter.read_guest_file("worker-1", "/srv/work/a/run.sh").unwrap(), script);
    let files = guest.list_files("/srv/work/a").await.unwrap();
    let file = files.iter().find(|file| file.path.ends_with("run.sh")).unwrap();
    assert_eq!((file.bytes, file.permissions), (17, Some(0o755)));
    let back = guest.download("/srv/work/a/run.sh").await.unwrap().bytes(1000).await.unwrap();
    assert_eq!(back, script);
    guest.delete_file("/srv/work/a/run.sh").await.unwrap();
    guest.delete_file("/srv/work/a/run.sh").await.expect("a file that is gone is fine");
    let gone = guest.download("/srv/work/a/run.sh").await.unwrap_err();
    assert_eq!(gone.remedy(), Remedy::Gone, "{gone:?}");
    let once = GuestFileOptions { overwrite: false, ..GuestFileOptions::default() };
    guest.upload(&script, "/srv/once", once).await.unwrap();
    let refused = guest.upload(&script, "/srv/once", once).await.unwrap_err();
    assert!(refused.already_exists(), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_is_cut_asks_for_a_new_address() {
    let (lab, _, guest) = booted().await;
    let rule = lab.rule(Rule::new("PUT /guestFile", Action::CutBefore).once());
    guest.upload(&Bytes::from_static(b"x"), "/srv/x", GuestFileOptions::default()).await.unwrap();
    assert_eq!(lab.fired(rule), 1);
    assert_eq!(lab.calls("InitiateFileTransferToGuest"), 2);
}

#[tokio::test(start_paused = true)]
async fn the_environment_of_the_user_can_be_read() {
    let (_lab, _, guest) = booted().await;
    let lines = guest.read_environment(&["PATH"]).await.unwrap();
    assert!(lines.iter().all(|line| line.starts_with("PATH=")), "{lines:?}");
    assert!(!guest.read_environment(&[]).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_is_not_ready_yet_is_waited_for_until_the_deadline() {
    let (lab, vm, ready) = booted().await;
    ready.validate_credentials().await.unwrap();
    for class in ["GuestOperationsUnavailable", "InvalidGuestLogin", "InvalidState"] {
        let rule = lab.rule(Rule::new("StartProgramInGuest", Action::fault(class, "")).times(3));
        let patient = guest(&lab, &vm, "pw").await.ready_by(within(60));
        patient
            .start(&Program::bash("true"))
            .await
            .unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_eq!(lab.fired(rule), 3, "{class}");
        let rule = lab.rule(Rule::new("StartProgramInGuest", Action::fault(class, "")));
        let before = tokio::time::Instant::now();
        let error = guest(&lab, &vm, "pw")
            .await
            .ready_by(within(30))
            .start(&Program::bash("true"))
            .await
            .unwrap_err();
        assert!(error.is_fault(class) && before.elapsed() <= Duration::from_secs(30), "{error:?}");
        assert!(before.elapsed() >= Duration::from_secs(20));
        let hasty = guest(&lab, &vm, "pw").await.start(&Program::bash("true")).await.unwrap_err();
        assert!(hasty.is_fault(class), "without a deadline the first refusal is the answer");
        lab.vcenter.faults().remove(rule);
    }
}

#[tokio::test(start_paused = true)]
async fn bad_credentials_and_vms_that_are_off_are_told_apart() {
    let (lab, vm, good) = booted().await;
    let bad = guest(&lab, &vm, "wrong").await;
    assert!(bad.validate_credentials().await.unwrap_err().is_fault("InvalidGuestLogin"));
    lab.client.power_off(&vm).await.unwrap();
    let before = tokio::time::Instant::now();
    let off = good.start(&Program::bash("true")).await.unwrap_err();
    assert!(off.is_fault("InvalidPowerState"), "{off:?}");
    assert!(before.elapsed() < Duration::from_secs(5), "no waiting for a VM that is off");
}

#[tokio::test(start_paused = true)]
async fn a_program_whose_reply_was_lost_is_not_started_twice() {
    let (lab, _, guest) = booted().await;
    let rule = lab.lose_answer_of("StartProgramInGuest");
    let error = guest.start(&Program::bash("sleep 100")).await.unwrap_err();
    assert_eq!(lab.fired(rule), 1);
    assert!(error.outcome_unknown());
    assert_eq!(lab.vcenter.guest_programs().len(), 1);
}
