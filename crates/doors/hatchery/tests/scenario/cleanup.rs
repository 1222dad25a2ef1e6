//! What has served goes; what serves stays, whatever a server says about it in a bad moment.

use roost_cds::{JobStatus, WorkerStatus};
use roost_cds_sim::{Fault, Outcome, V1Demand, V2Demand};
use roost_clock::Clock as _;
use roost_fleet::{Query, Resume};
use roost_vcenter_sim::{Action, GuestBehaviour, Power, Rule, When};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::lab::{Conduct, DEBIAN, GoVm, Lab, Note, Setup, WorldOptions, mins, secs, wait_until};

/// From when it is true that the worker has ended to when its VM is gone.
async fn until_gone(lab: &Lab, name: &str, patience: u64) -> std::time::Duration {
    let began = Instant::now();
    let what = format!("{name} is gone");
    wait_until(&what, mins(patience), || lab.vm_named(name).is_none()).await;
    began.elapsed()
}

/// D20, D21: a worker that is off and that CDS still knows has gone down under its job.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_vm_went_off_is_deleted_soon() {
    let lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(30)));
    lab.wait_for(&job, JobStatus::Building).await;
    let vm = lab.vm_of(&job).unwrap();
    lab.vcenter.set_power(&vm.name, Power::Off).unwrap();
    let took = until_gone(&lab, &vm.name, 10).await;
    assert!(took < mins(4), "{took:?}");
}

/// D21: one that is off and that CDS does not know has finished.
#[tokio::test(start_paused = true)]
async fn a_finished_worker_is_deleted_after_its_grace_period() {
    let setup = Setup::new("hv1").set("finishedWorkerGracePeriod", 600);
    let lab = Lab::of(setup).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(secs(10)));
    lab.wait_for(&job, JobStatus::Success).await;
    let vm = lab.vm_of(&job).unwrap();
    let start: jiff::Timestamp = Note::of(&vm).unwrap().worker_start_time.parse().unwrap();
    until_gone(&lab, &vm.name, 20).await;
    let age = lab.clock.now().duration_since(start);
    assert!(age >= jiff::SignedDuration::from_mins(10), "{age:?}");
    assert!(age <= jiff::SignedDuration::from_mins(13), "{age:?}");
}

/// D21
#[tokio::test(start_paused = true)]
async fn a_worker_that_lives_too_long_is_deleted() {
    let lab = Lab::of(Setup::new("hv1").set("workerTTL", 30)).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).ends(Outcome::Hang));
    lab.wait_for(&job, JobStatus::Building).await;
    let vm = lab.vm_of(&job).unwrap();
    sleep(mins(25)).await;
    assert!(lab.vm_named(&vm.name).is_some());
    let took = until_gone(&lab, &vm.name, 20).await;
    assert!(took < mins(10), "{took:?}");
}

/// D21: awol from the first minute on.
#[tokio::test(start_paused = true)]
async fn a_worker_that_never_registers_is_deleted_and_its_job_served_by_another() {
    let setup = Setup::new("hv1").set("workerRegistrationTTL", 6);
    let lab = Lab::of(setup).await;
    let mut first = true;
    lab.guests.conduct(move |_| {
        let conduct = if first { Conduct::Hangs } else { Conduct::Obedient };
        first = false;
        conduct
    });
    // Somebody who is at work elsewhere: a list of workers with nobody on it proves nothing.
    let other = lab.v2_job(V2Demand::new(DEBIAN).takes(secs(1)));
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(2)));
    wait_until("both are done", mins(60), || {
        [&other, &job].iter().all(|job| lab.status(job) == JobStatus::Success)
    })
    .await;
    lab.wait_until_clean(0).await;
    assert_eq!(lab.guests.launches().len(), 3);
}

/// D23: without the release CDS stops the job for good.
#[tokio::test(start_paused = true)]
async fn a_v2_job_whose_vm_vanished_is_given_back_and_done_by_another_worker() {
    let lab = Lab::new().await;
    let (job, other) = (
        lab.v2_job(V2Demand::new(DEBIAN).takes(mins(8))),
        lab.v2_job(V2Demand::new(DEBIAN).takes(mins(30))),
    );
    lab.wait_for_all(&[job.clone(), other.clone()], JobStatus::Building).await;
    lab.vcenter.kill_vm(&lab.vm_of(&job).unwrap().name).unwrap();
    lab.wait_for_all(&[job.clone(), other], JobStatus::Success).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!((report.releases().len(), report.executions().len()), (1, 2));
    lab.wait_until_clean(0).await;
}

/// D23: so is that of one whose VM somebody switched off.
#[tokio::test(start_paused = true)]
async fn a_v2_job_whose_vm_was_switched_off_is_given_back() {
    let lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(8)));
    lab.wait_for(&job, JobStatus::Building).await;
    lab.vcenter.set_power(&lab.vm_of(&job).unwrap().name, Power::Off).unwrap();
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().releases(), ["hv1"]);
    lab.wait_until_clean(0).await;
}

/// W28: a V1 worker without a VM holds a slot until CDS is told.
#[tokio::test(start_paused = true)]
async fn a_v1_worker_whose_vm_vanished_is_disabled() {
    let lab = Lab::new().await;
    let demand = || V1Demand::new().model(DEBIAN).takes(mins(30));
    let (job, other) = (lab.v1_job(demand()), lab.v1_job(demand()));
    lab.wait_for_all(&[job.clone(), other.clone()], JobStatus::Building).await;
    let vm = lab.vm_of(&job).unwrap();
    lab.vcenter.kill_vm(&vm.name).unwrap();
    let is_disabled = || {
        let workers = lab.cds.workers();
        workers.iter().any(|w| *w.name == *vm.name && w.status == WorkerStatus::Disabled)
    };
    wait_until("its worker is disabled", mins(4), is_disabled).await;
    assert_eq!(lab.status(&job), JobStatus::Fail, "which is what CDS makes of it");
    lab.wait_for(&other, JobStatus::Success).await;
}

/// CDS disables a worker: its VM goes.
#[tokio::test(start_paused = true)]
async fn the_vm_of_a_disabled_worker_is_deleted() {
    let lab = Lab::new().await;
    for job in [
        lab.v1_job(V1Demand::new().model(DEBIAN).ends(Outcome::Hang)),
        lab.v2_job(V2Demand::new(DEBIAN).ends(Outcome::Hang)),
    ] {
        lab.wait_for(&job, JobStatus::Building).await;
        let vm = lab.vm_of(&job).unwrap();
        lab.cds.disable_worker(&vm.name);
        until_gone(&lab, &vm.name, 20).await;
    }
}

/// W22: one failing VM aborted CDS's whole pass.
#[tokio::test(start_paused = true)]
async fn a_vm_that_cannot_be_deleted_holds_up_no_other_and_is_tried_again() {
    let lab = Lab::new().await;
    let jobs = lab.jobs(3);
    lab.wait_for_all(&jobs, JobStatus::Building).await;
    let stuck = lab.vm_of(&jobs[0]).unwrap().name;
    let rule = Rule::new("Destroy_Task", Action::fail_task("ResourceInUse", "a backup runs"));
    let rule = lab.vcenter.faults().add(rule.object(&*stuck));
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    wait_until("only that one is left", mins(20), || lab.own_names() == [&*stuck]).await;
    let tries = lab.vcenter.faults().fired(rule);
    sleep(mins(30)).await;
    let more = lab.vcenter.faults().fired(rule) - tries;
    assert!((1..=30).contains(&more), "{more} tries in half an hour");
    assert!(lab.vcenter.faults().remove(rule));
    lab.wait_until_clean(0).await;
}

/// W7, W14: the mark is in the VM, not in memory.
#[tokio::test(start_paused = true)]
async fn a_mark_for_deletion_outlives_the_process() {
    // By its age alone it would stay for an hour.
    let mut lab = Lab::of(Setup::new("hv1").set("finishedWorkerGracePeriod", 3_600)).await;
    let broken = GuestBehaviour { starts_tools: false, ..GuestBehaviour::default() };
    lab.vcenter.set_guest_behaviour("debian12", broken).unwrap();
    let rule = Rule::new("Destroy_Task", Action::Status(503));
    let rule = lab.vcenter.faults().add(rule);
    lab.job();
    wait_until("it is marked", mins(10), || {
        lab.own_vms().iter().any(|vm| Note::of(vm).unwrap().to_delete)
    })
    .await;
    lab.crash();
    lab.vcenter.set_guest_behaviour("debian12", GuestBehaviour::default()).unwrap();
    assert!(lab.vcenter.faults().remove(rule));
    let doomed = lab.own_vms().into_iter().find(|vm| Note::of(vm).unwrap().to_delete).unwrap();
    lab.open().await;
    until_gone(&lab, &doomed.name, 10).await;
}

/// Rule 6: an empty list of workers never deletes anything.
#[tokio::test(start_paused = true)]
async fn an_empty_list_of_workers_deletes_nobody() {
    let setup = Setup::new("hv1").set("workerRegistrationTTL", 5);
    let lab = Lab::of(setup).await;
    let demand = || V2Demand::new(DEBIAN).takes(mins(60));
    let jobs: Vec<_> = (0..4).map(|_| lab.v2_job(demand())).collect();
    lab.wait_for_all(&jobs, JobStatus::Building).await;
    sleep(mins(8)).await;
    for route in ["GET /worker", "GET /v2/worker"] {
        lab.cds.inject(Fault::on(route).empty_list());
    }
    sleep(mins(30)).await;
    assert_eq!(lab.own_vms().iter().filter(|vm| vm.power == Power::On).count(), 4);
    lab.cds.clear_faults();
    lab.wait_for_all(&jobs, JobStatus::Success).await;
}

/// Rule 6: nor does one that fails, or an inventory that comes back empty.
#[tokio::test(start_paused = true)]
async fn lists_that_fail_delete_nobody_and_disable_nobody() {
    let setup = Setup::new("hv1").set("workerRegistrationTTL", 5);
    let lab = Lab::of(setup).await;
    let v1 = lab.v1_job(V1Demand::new().model(DEBIAN).takes(mins(60)));
    let v2 = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(60)));
    lab.wait_for_all(&[v1.clone(), v2.clone()], JobStatus::Building).await;
    lab.cds.inject(Fault::on("GET /v2/worker").answer(500, 0));
    lab.vcenter.faults().add(Rule::new("RetrievePropertiesEx", Action::EmptyList));
    lab.vcenter
        .faults()
        .add(Rule::new("WaitForUpdatesEx", Action::Status(503)).when(When::EveryNth(2)));
    lab.vcenter.expire_sessions();
    sleep(mins(30)).await;
    lab.cds.clear_faults();
    lab.vcenter.faults().clear();
    lab.wait_for_all(&[v1, v2], JobStatus::Success).await;
    assert_eq!(lab.guests.launches().len(), 2);
    lab.wait_until_clean(0).await;
}

/// Rule 6: when many would go at once on the word of a list, a person is asked. CDS does not even know their jobs.
#[tokio::test(start_paused = true)]
async fn deletion_freezes_when_too_many_would_go_and_waits_for_a_person() {
    let mut lab = Lab::closed(WorldOptions::default(), Setup::new("hv1").max_workers(30));
    let colleague = lab.colleague("svc-before").await;
    let names: Vec<String> = (1..=8).map(|number| format!("keen-bohr-{number}")).collect();
    let an_hour_ago = (lab.clock.now() - jiff::SignedDuration::from_hours(1)).to_string();
    for (number, name) in names.iter().enumerate() {
        let annotation = json!({
            "hatchery_name": "hv1",
            "worker_name": name,
            "vmware_model_path": "debian12",
            "created": an_hour_ago,
            "worker_start_time": an_hour_ago,
            "job_id": (9_000 + number).to_string(),
        });
        let annotation = annotation.to_string();
        let vm = GoVm { name, annotation, power: Power::On, address: None };
        lab.make_vm(&colleague, vm).await;
    }
    lab.open().await;
    // Those who work make the list one that says something.
    let at_work: Vec<_> =
        (0..2).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(90)))).collect();
    lab.wait_for_all(&at_work, JobStatus::Building).await;
    let frozen = || lab.hatchery().view().overview.deletions.frozen.is_some();
    wait_until("deletion is frozen", mins(40), frozen).await;
    sleep(mins(15)).await;
    let left = || names.iter().filter(|name| lab.vm_named(name).is_some()).count();
    assert!(left() >= 5, "{} wait for a person", left());
    lab.hatchery().resume_deletions(Resume::Approve);
    wait_until("they are gone", mins(15), || left() == 0).await;
    lab.wait_for_all(&at_work, JobStatus::Success).await;
}

/// Rule 5: every deletion says why.
#[tokio::test(start_paused = true)]
async fn every_deletion_is_a_decision_with_its_gates() {
    let lab = Lab::new().await;
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
    let deleted = lab
        .hatchery()
        .journal()
        .find(&Query { verdict: Some(roost_fleet::Decided::Deleted), ..Query::default() });
    assert_eq!(deleted.len(), 1);
    let gates: Vec<&str> = deleted[0].gates.iter().map(|gate| gate.name).collect();
    for gate in ["own", "inventory-view", "demand-view", "sightings"] {
        assert!(gates.contains(&gate), "{gates:?}");
    }
}

/// D31: a teardown does not ask the guest.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_deleted_is_cut_off() {
    let lab = Lab::new().await;
    lab.guests.conduct(|_| Conduct::StaysOn);
    let job = lab.v2_job(V2Demand::new(DEBIAN).ends(Outcome::Hang));
    lab.wait_for(&job, JobStatus::Building).await;
    let vm = lab.vm_of(&job).unwrap();
    lab.cds.disable_worker(&vm.name);
    until_gone(&lab, &vm.name, 20).await;
    assert_eq!((lab.calls_of("ShutdownGuest"), lab.calls_of("PowerOffVM_Task")), (0, 1));
}

/// D22: how often it is looked is the operator's.
#[tokio::test(start_paused = true)]
async fn the_clean_up_looks_as_often_as_the_file_says() {
    for (interval, is_soon) in [(20, true), (3_000, false)] {
        let lab = Lab::of(Setup::new("hv1").set("killAwolServersInterval", interval)).await;
        // Of V1: a V2 job is given back at once, and its VM goes with that.
        let job = lab.v1_job(V1Demand::new().model(DEBIAN).takes(mins(60)));
        lab.wait_for(&job, JobStatus::Building).await;
        sleep(mins(1)).await;
        let vm = lab.vm_of(&job).unwrap();
        lab.vcenter.set_power(&vm.name, Power::Off).unwrap();
        sleep(mins(2)).await;
        assert_eq!(lab.vm_named(&vm.name).is_none(), is_soon, "every {interval} s");
        wait_until("it is gone", mins(60), || lab.vm_named(&vm.name).is_none()).await;
    }
}

/// Rule 6: after a long absence many workers are too old at once. That may be so, or the clock may be wrong; a person knows.
#[tokio::test(start_paused = true)]
async fn many_that_are_too_old_at_once_wait_for_a_person_who_is_told_the_way_out() {
    let mut lab = Lab::of(Setup::new("hv1").max_workers(12)).await;
    let hung: Vec<_> =
        (0..12).map(|_| lab.v2_job(V2Demand::new(DEBIAN).ends(Outcome::Hang))).collect();
    lab.wait_for_all(&hung, JobStatus::Building).await;
    lab.crash();
    sleep(mins(180)).await;
    lab.open().await;
    let frozen = || lab.hatchery().view().overview.deletions.frozen;
    wait_until("deletion is frozen", mins(10), || frozen().is_some()).await;
    sleep(mins(20)).await;
    assert_eq!(lab.own_vms().len(), 12);
    let status = lab.hatchery().status();
    let line = status.lines.iter().flatten().find(|line| line.component == "Deletion").unwrap();
    let words = "12 of 12 VMs would go as expired within a minute, 5 may; \
                 a person must approve them or have everything looked at anew";
    assert!(line.value.contains(words), "{}", line.value);
    let kept = lab
        .hatchery()
        .journal()
        .find(&Query { verdict: Some(roost_fleet::Decided::Kept), ..Query::default() });
    let frozen_ones = kept.iter().filter(|kept| kept.bound_by == Some("freeze")).count();
    assert_eq!(frozen_ones, 12, "each says what holds it up");
    let done = lab.hatchery().controls().resume_deletions("jo", Resume::Approve);
    assert!(done.starts_with("12 VMs may be deleted: 12 of 12"), "{done}");
    let names: Vec<String> = lab.own_names();
    wait_until("they are gone", mins(15), || names.iter().all(|name| lab.vm_named(name).is_none()))
        .await;
    assert!(frozen().is_none());
    for job in &hung {
        lab.cds.stop_job(job);
    }
}

/// CDS deletes the row of a V2 worker that signs out without a result within seconds, and stops its job for good at the next full minute. The job
/// is given back as soon as the VM is off. Only a guest that takes the rest of the minute to shut down is too late.
#[tokio::test(start_paused = true)]
async fn a_v2_job_whose_worker_signs_out_without_a_result_is_given_back_in_time() {
    let (mut saved, mut told) = (0, Vec::new());
    for number in 0..6 {
        let mut lab = Lab::new().await;
        let takes = mins(2) + secs(10 * number);
        let job = lab.v2_job(V2Demand::new(DEBIAN).takes(takes).ends(Outcome::Leave));
        lab.wait_for(&job, JobStatus::Building).await;
        if number % 2 == 1 {
            sleep(secs(40)).await;
            lab.restart().await;
        }
        let report = || lab.cds.job(&job).unwrap();
        wait_until("its worker is gone", mins(10), || {
            report().status == JobStatus::Stopped || !report().releases().is_empty()
        })
        .await;
        saved += report().releases().len();
        told.push(report());
        lab.cds.stop_job(&job);
        lab.wait_until_clean(0).await;
    }
    assert!(saved >= 4, "{saved} of 6: {told:#?}");
}

/// CDS purges the rows of ended V1 runs and then refuses to speak of them. A guest that does not shut down was kept until workerTTL for that.
#[tokio::test(start_paused = true)]
async fn a_vm_whose_v1_job_was_purged_goes_without_waiting_for_its_time_to_live() {
    let lab = Lab::of(Setup::new("hv1").set("workerRegistrationTTL", 6)).await;
    lab.guests.conduct(|_| Conduct::StaysOn);
    let job = lab.v1_job(V1Demand::new().model(DEBIAN).takes(secs(20)));
    let other = lab.v1_job(V1Demand::new().model(DEBIAN).takes(mins(40)));
    lab.wait_for(&job, JobStatus::Success).await;
    let vm = lab.vm_of(&job).unwrap();
    let took = until_gone(&lab, &vm.name, 30).await;
    assert!(took < mins(15), "{took:?} of the two hours that a worker may live");
    assert_eq!(lab.status(&other), JobStatus::Building, "nobody else was touched");
    let asked = lab.cds.calls("GET /queue/workflows/*/infos");
    sleep(mins(10)).await;
    assert_eq!(
        lab.cds.calls("GET /queue/workflows/*/infos"),
        asked,
        "it is not asked about for ever"
    );
}

/// 500 short jobs left 440 dead VMs that held addresses, because 60 a minute could go.
#[tokio::test(start_paused = true)]
async fn workers_that_finish_together_go_as_fast_as_the_vcenter_takes_them() {
    const WORKERS: usize = 100;
    let setup = Setup::new("hv1").dhcp().max_workers(100).set("killAwolServersInterval", 10);
    let options =
        WorldOptions { host_cores: Some(400), host_memory_gb: Some(4_000), ..Default::default() };
    let lab = Lab::in_world(options, setup).await;
    let jobs: Vec<_> =
        (0..WORKERS).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(90)))).collect();
    lab.wait_for_all(&jobs, JobStatus::Building).await;
    let names = lab.own_names();
    assert_eq!(names.len(), WORKERS);
    // What is given back would be cloned anew meanwhile, and the vCenter would be busy with that.
    lab.hatchery().controls().pause("a test");
    for name in &names {
        lab.vcenter.set_power(name, Power::Off).unwrap();
    }
    let gone = || names.iter().filter(|name| lab.vm_named(name).is_none()).count();
    wait_until("the first is gone", mins(5), || gone() > 0).await;
    let began = Instant::now();
    wait_until("all are gone", mins(5), || gone() == WORKERS).await;
    let took = began.elapsed();
    // With a budget of 60 a minute the last go a minute after the first.
    assert!(took < secs(60), "{took:?}");
    lab.hatchery().controls().resume("a test");
}
