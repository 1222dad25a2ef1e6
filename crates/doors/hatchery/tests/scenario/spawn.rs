//! A job becomes a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use roost_cds::{JobId, JobStatus, Secret, WorkerConfig, v2};
use roost_cds_sim::{Fault, V1Demand, V2Demand};
use roost_fleet::{Decided, Query};
use roost_vcenter_sim::{Action, GuestProgram, GuestReply, GuestRun, Power, Rule, TemplateOptions};
use roost_vim::wire::MoRef;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{DEBIAN, Lab, Note, Setup, mins, secs, wait_until};
use roost_hatchery::door::HATCHERY;

/// One address, which the spare has: no second spare is made, and all calls are those of the claim.
fn one_spare() -> Setup {
    Setup::new("hv1").addresses("10.7.0.0/30", "10.7.0.1", "255.255.255.252").pool("debian12", 1)
}

/// Ready, and nobody is at work on it any more.
async fn wait_for_spare(lab: &Lab) {
    sleep(mins(5)).await;
    lab.wait_for_spares(1).await;
}

fn decided(lab: &Lab, job: &JobId, verdict: Decided) -> Vec<String> {
    let subject = HATCHERY.about_request(job.to_string());
    let query = Query { verdict: Some(verdict), ..Query::of(subject) };
    lab.hatchery().journal().find(&query).iter().map(|found| found.reason.to_string()).collect()
}

/// The budget of a warm job: claim to script started, none of it grows with the inventory.
#[tokio::test(start_paused = true)]
async fn a_warm_job_costs_six_calls_and_the_shared_wait() {
    let lab = Lab::of(one_spare()).await;
    wait_for_spare(&lab).await;
    lab.vcenter.reset_counters();
    let job = lab.job();
    wait_until("the script runs", mins(10), || !lab.guests.launches_of(&job).is_empty()).await;
    let mut calls = lab.vcenter.counters().calls;
    // The long poll, and what is asked by the clock at rest as well.
    calls.retain(|name, _| {
        !matches!(name.as_str(), "WaitForUpdatesEx" | "CurrentTime" | "RetrievePropertiesEx")
    });
    let wanted = [
        ("ModifyListView", 2),
        ("PowerOnVM_Task", 1),
        ("ReconfigVM_Task", 1),
        ("StartProgramInGuest", 2),
    ];
    let made: Vec<(&str, u64)> =
        calls.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(made, wanted);
}

/// Whatever else is read is read by the clock: the claim itself asks nothing.
#[tokio::test(start_paused = true)]
async fn a_warm_start_reads_nothing_of_the_inventory() {
    let lab = Lab::of(one_spare()).await;
    wait_for_spare(&lab).await;
    // Between two rounds of the clock.
    sleep(secs(7)).await;
    lab.vcenter.reset_counters();
    let job = lab.job();
    wait_until("it is powered on", mins(1), || {
        lab.vm_of(&job).is_some_and(|vm| vm.power == Power::On)
    })
    .await;
    sleep(secs(5)).await;
    assert_eq!(lab.calls_of("RetrievePropertiesEx"), 0);
}

/// D18, W15: one change makes a worker of a spare.
#[tokio::test(start_paused = true)]
async fn a_claimed_spare_says_whose_it_is_and_what_for() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    wait_for_spare(&lab).await;
    let spare = lab.ready_spares().remove(0);
    let job = lab.v2_job(V2Demand::new(DEBIAN).flavor("large"));
    lab.wait_for(&job, JobStatus::Building).await;
    let vm = lab.vm_of(&job).unwrap();
    let (before, note) = (Note::of(&spare).unwrap(), Note::of(&vm).unwrap());
    assert_eq!(vm.moref, spare.moref);
    assert_eq!(note.worker_name, *vm.name);
    assert_eq!((note.provisioning, note.flavor.as_str()), (false, "large"));
    assert_eq!(note.ip_address, before.ip_address, "its address is its own");
    assert_ne!(note.worker_start_time, before.worker_start_time);
    let view = lab.vcenter.vm(&vm.name).unwrap();
    assert_eq!((view.cpus, view.memory_mb), (8, 16384));
    assert_eq!(lab.verdict(&job).unwrap().verdict, Decided::Spawned);
    lab.wait_for(&job, JobStatus::Success).await;
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_read_who_starts_what_and_how_large() {
    let lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).flavor("small"));
    lab.wait_for(&job, JobStatus::Building).await;
    let worker = lab.vm_of(&job).unwrap().name;
    let infos = lab.cds.job(&job).unwrap().infos;
    let start =
        format!("Hatchery \"hv1\" is starting the worker \"{worker}\" from model \"debian12\"");
    let size = format!("Worker \"{worker}\" will use flavor \"small\" (2 vCPUs, 4096 MB RAM)");
    assert!(infos.iter().any(|info| info.contains(&start)), "{infos:?}");
    assert!(infos.iter().any(|info| info.contains(&size)), "{infos:?}");
}

/// 5.3, 5.4 and W19: what the worker is told arrives as it was written.
#[tokio::test(start_paused = true)]
async fn the_guest_gets_the_script_as_plain_text_and_the_configuration_in_its_environment() {
    let setup = Setup::new("hv1")
        .provision("injectEnvVars", vec!["PROXY=http://p/?a=1&b=<2>".to_owned()])
        .provision("workerBasedir", "/var/cds+work");
    let lab = Lab::of(setup).await;
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Building).await;
    let programs = lab.vcenter.guest_programs();
    let launch = programs.iter().find(|program| program.variable("CDS_CONFIG").is_some()).unwrap();
    assert_eq!(launch.path, "/bin/echo");
    assert!(launch.arguments.starts_with("-n ;#!/bin/sh\n"), "{}", launch.arguments);
    assert!(launch.arguments.contains("http://cds.invalid/download/worker/linux/amd64"));
    assert!(
        launch
            .arguments
            .ends_with("\nPATH=$PATH worker 1>/tmp/worker.log 2>&1;\nsudo shutdown -h now")
    );
    assert_eq!(launch.variable("PROXY"), Some("http://p/?a=1&b=<2>"));
    let config = Secret::from(launch.variable("CDS_CONFIG").unwrap());
    let config = WorkerConfig::decode(&config).unwrap();
    assert_eq!(config.name, launch.vm);
    assert_eq!((config.base_dir.as_str(), config.region.as_str()), ("/var/cds+work", "default"));
    assert_eq!((config.job(), config.model.as_str()), (Some(job), "debian12"));
    let probe = programs.iter().find(|program| program.arguments == "-n ;env").unwrap();
    assert!(probe.variable("CDS_CONFIG").is_none());
}

/// D32: the model's own user and password, when the configuration has none.
#[tokio::test(start_paused = true)]
async fn a_model_may_bring_its_own_guest_user() {
    let lab = Lab::of(Setup::new("hv1").unset("models")).await;
    let path = v2::AsCodePath::parse("PROJ/github/org/repo/own").unwrap();
    let spec = json!({"image": "debian12", "username": "cds", "password": "guest-password-0815"});
    let model = v2::Model {
        name: "own".into(),
        os_arch: "linux/amd64".into(),
        model_type: "vsphere".into(),
        spec: v2::ModelSpec(spec),
        ..v2::Model::default()
    };
    lab.cds.add_v2_model(&path, model);
    let own = lab.v2_job(V2Demand::new("PROJ/github/org/repo/own"));
    let without = lab.job();
    lab.wait_for(&own, JobStatus::Success).await;
    let refused = decided(&lab, &without, Decided::Refused);
    assert!(refused[0].contains("no user and password"), "{refused:?}");
    assert_eq!(lab.cds.job(&without).unwrap().holders(), [""; 0], "refused before it was taken");
}

/// D33, W18: the script is awaited, and its exit code counts.
#[tokio::test(start_paused = true)]
async fn the_pre_start_script_has_ended_well_before_the_worker_starts() {
    let setup = Setup::new("hv1").unset("models").push("models", |entry| {
        entry.insert("modelVMWare".into(), "debian12".into());
        entry.insert("username".into(), "cds".into());
        entry.insert("password".into(), "guest-password-0815".into());
        entry.insert("preStartScript".into(), "resize2fs /dev/sda1".into());
    });
    let lab = Lab::of(setup).await;
    let fails = Arc::new(AtomicBool::new(true));
    let first = Arc::clone(&fails);
    lab.guests.others(move |program: &GuestProgram| {
        let is_script = program.path == "/bin/bash" && program.arguments.contains("resize2fs");
        is_script.then(|| {
            let code = i32::from(first.swap(false, Ordering::Relaxed));
            GuestReply::Runs(GuestRun::exits(code).after(secs(40)))
        })
    });
    let job = lab.job();
    wait_until("it failed", mins(10), || !decided(&lab, &job, Decided::Failed).is_empty()).await;
    let failed = decided(&lab, &job, Decided::Failed);
    assert!(failed[0].contains("preparing: the script ended with exit code 1"), "{failed:?}");
    assert!(lab.guests.launches().is_empty());
    lab.wait_for(&job, JobStatus::Success).await;
    let programs = lab.vcenter.guest_programs();
    let last = programs.iter().rposition(|program| program.arguments.contains("resize2fs"));
    let launch = programs.iter().rposition(|program| program.variable("CDS_CONFIG").is_some());
    assert!(last < launch);
    assert_eq!(lab.cds.job(&job).unwrap().releases(), ["hv1"]);
    lab.wait_until_clean(0).await;
}

/// What is wrong with a model is found before its job is booked.
#[tokio::test(start_paused = true)]
async fn a_launch_script_that_cannot_be_rendered_costs_the_job_nothing() {
    let lab = Lab::of(Setup::new("hv1").only_v1()).await;
    let path = lab.v1_model("classic");
    wait_until("it is registered", mins(60), || {
        lab.cds.model(&path).is_some_and(|model| !model.need_registration)
    })
    .await;
    lab.cds.change_model(&path, |model| {
        model.model_virtual_machine.cmd = "worker --hatchery {{.Hatchery}}".into();
    });
    let job = lab.v1_job(V1Demand::new().model("shared.infra/classic"));
    wait_until("it is refused", mins(10), || {
        lab.verdict(&job).is_some_and(|verdict| verdict.reason.contains("{{.Hatchery}}"))
    })
    .await;
    assert_eq!(lab.cds.job(&job).unwrap().holders(), [""; 0]);
}

/// 3.4: somebody else was faster.
#[tokio::test(start_paused = true)]
async fn a_job_that_cds_gives_to_somebody_else_is_left_alone() {
    let lab = Lab::new().await;
    let take = "POST /v2/queue/*/job/*/hatchery/take";
    lab.cds.inject(Fault::on(take).nth(1).answer(404, 38));
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(decided(&lab, &job, Decided::Skipped).len(), 1);
    assert_eq!(
        lab.cds.job(&job).unwrap().releases(),
        [""; 0],
        "what was not ours is not given back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_take_whose_answer_is_lost_is_a_take() {
    let lab = Lab::new().await;
    let take = "POST /v2/queue/*/job/*/hatchery/take";
    lab.cds.inject(Fault::on(take).nth(1).cut_after());
    // So is the question behind it, for a while.
    lab.cds.inject(Fault::on("GET /v2/queue/*/job/*").nth(2).cut());
    lab.cds.inject(Fault::on("GET /v2/queue/*/job/*").nth(3).cut());
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!((report.holders(), report.executions().len()), (vec!["hv1"], 1));
    lab.wait_until_clean(0).await;
}

/// A clone is asked for once, whatever becomes of the answer.
#[tokio::test(start_paused = true)]
async fn a_clone_whose_answer_is_lost_is_found_by_its_annotation() {
    let lab = Lab::new().await;
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", Action::CutAfter).once());
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    let cloned = lab.vcenter.events().into_iter().filter(|event| event.class == "VmDeployedEvent");
    assert_eq!(cloned.count(), 1);
    assert_eq!(lab.cds.job(&job).unwrap().releases(), [""; 0]);
    lab.wait_until_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_is_lost_is_a_claim() {
    let lab = Lab::of(one_spare()).await;
    wait_for_spare(&lab).await;
    lab.vcenter.faults().add(Rule::new("ReconfigVM_Task", Action::CutAfter).once());
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().releases(), [""; 0]);
}

/// A change that did not concern the annotation is no claim of somebody else's.
#[tokio::test(start_paused = true)]
async fn a_spare_whose_version_is_old_is_looked_at_and_claimed() {
    let lab = Lab::of(one_spare()).await;
    wait_for_spare(&lab).await;
    let refusal = Action::fault("ConcurrentAccess", "changed");
    lab.vcenter.faults().add(Rule::new("ReconfigVM_Task", refusal).once());
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().releases(), [""; 0]);
}

/// W15: a spare that somebody else took is theirs, and the job goes to another VM.
#[tokio::test(start_paused = true)]
async fn a_spare_that_somebody_else_claimed_is_theirs() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    wait_for_spare(&lab).await;
    let spare = lab.ready_spares().remove(0);
    let rival = lab.colleague("svc-rival@vsphere.local").await;
    let taken =
        format!(r#"{{"hatchery_name":"hv1","worker_name":"{}","job_id":"77"}}"#, spare.name);
    // Our change is on its way when theirs is made.
    let slow = Rule::new("ReconfigVM_Task", Action::Delay(secs(20))).once();
    let slow = lab.vcenter.faults().add(slow);
    let job = lab.job();
    wait_until("the claim is sent", mins(1), || lab.vcenter.faults().fired(slow) == 1).await;
    let moref: MoRef = spare.moref.clone();
    rival.reconfigure(&moref, &roost_vim::Reconfigure::annotation(taken)).await.unwrap();
    sleep(secs(25)).await;
    let left = lab.vcenter.glance().into_iter().find(|vm| vm.moref == spare.moref).unwrap();
    assert_eq!(Note::of(&left).unwrap().job_id, "77", "theirs it stays");
    lab.wait_for(&job, JobStatus::Building).await;
    assert_ne!(lab.vm_of(&job).unwrap().moref, spare.moref);
}

/// D19: what may pass is waited for.
#[tokio::test(start_paused = true)]
async fn a_full_host_is_waited_for_and_a_wrong_vm_is_not() {
    let lab = Lab::of(one_spare()).await;
    wait_for_spare(&lab).await;
    let full = Action::fail_task("InsufficientMemoryResourcesFault", "full");
    lab.vcenter.faults().add(Rule::new("PowerOnVM_Task", full).times(3));
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().releases(), [""; 0]);

    wait_for_spare(&lab).await;
    lab.vcenter.reset_counters();
    let wrong = Action::fail_task("InvalidVmConfig", "wrong");
    lab.vcenter.faults().add(Rule::new("PowerOnVM_Task", wrong).once());
    let job = lab.job();
    wait_until("it failed", mins(5), || !decided(&lab, &job, Decided::Failed).is_empty()).await;
    assert_eq!(lab.calls_of("PowerOnVM_Task"), 1, "at once");
}

/// D6: the disk of a spare that is no linked clone.
#[tokio::test(start_paused = true)]
async fn the_disk_of_a_spare_grows_with_the_claim() {
    let setup = Setup::new("hv1")
        .push("flavors", |entry| {
            entry.insert("name".into(), "roomy".into());
            entry.insert("cpus".into(), 2.into());
            entry.insert("memoryMB".into(), 2048.into());
            entry.insert("diskSizeGB".into(), 50.into());
        })
        .push("models", |entry| {
            entry.insert("modelVMWare".into(), "flat".into());
            entry.insert("username".into(), "cds".into());
            entry.insert("password".into(), "any".into());
        })
        .pool("flat", 1);
    let lab = Lab::of(setup).await;
    let template = TemplateOptions { snapshot: false, ..TemplateOptions::new("flat") };
    lab.vcenter.add_template(&template).unwrap();
    let path = "PROJ/github/org/repo/flat";
    let model = v2::Model {
        name: "flat".into(),
        os_arch: "linux/amd64".into(),
        model_type: "vsphere".into(),
        spec: v2::ModelSpec(json!({"image": "flat"})),
        ..v2::Model::default()
    };
    lab.cds.add_v2_model(&v2::AsCodePath::parse(path).unwrap(), model);
    sleep(mins(30)).await;
    wait_for_spare(&lab).await;
    let job = lab.v2_job(V2Demand::new(path).flavor("roomy"));
    lab.wait_for(&job, JobStatus::Building).await;
    let vm = lab.vcenter.vm(&lab.vm_of(&job).unwrap().name).unwrap();
    let disk = vm.devices.iter().find(|device| device.is_disk()).unwrap();
    assert_eq!(disk.capacity_in_kb, Some(50 << 20));
    lab.wait_for(&job, JobStatus::Success).await;
}

/// A run that was stopped while its worker's VM boots gets no worker.
#[tokio::test(start_paused = true)]
async fn a_job_that_was_stopped_while_its_vm_boots_is_not_launched() {
    let lab = Lab::new().await;
    for is_v1 in [false, true] {
        let job = if is_v1 { lab.v1_job(V1Demand::new().model(DEBIAN)) } else { lab.job() };
        wait_until("its VM is on", mins(10), || {
            lab.vm_of(&job).is_some_and(|vm| vm.power == Power::On)
        })
        .await;
        lab.cds.stop_job(&job);
        lab.wait_until_clean(0).await;
        assert_eq!(lab.guests.launches_of(&job).len(), 0, "{job}");
        let said = lab.verdict(&job).unwrap();
        assert!(said.to_string().contains("nobody waits for it any more"), "{said}");
        assert_eq!(lab.cds.job(&job).unwrap().releases(), [""; 0], "there is nothing to give back");
    }
}

/// People read in a job's log what happened in the order in which it happened, also when CDS is slow with the first message.
#[tokio::test(start_paused = true)]
async fn the_messages_of_a_start_stand_in_their_order() {
    let lab = Lab::new().await;
    lab.cds.inject(Fault::on("POST /v2/queue/*/job/*/info").nth(1).delay(secs(9)));
    lab.vcenter.faults().add(
        Rule::new("CloneVM_Task", Action::fail_task("NoDiskSpace", "the datastore is full"))
            .times(1),
    );
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    let infos = lab.cds.job(&job).unwrap().infos;
    let place = |words: &str| infos.iter().position(|info| info.contains(words));
    let (starts, fails) = (place("is starting the worker"), place("Error while Hatchery"));
    assert!(starts.is_some() && fails.is_some() && starts < fails, "{infos:#?}");
}
