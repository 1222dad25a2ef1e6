//! Spares: made ahead, claimed, refilled, removed.

use roost_cds::JobStatus;
use roost_cds_sim::V2Demand;
use roost_fleet::Decided;
use roost_vcenter_sim::{Action, GuestBehaviour, Power, Rule};
use tokio::time::sleep;

use crate::lab::{DEBIAN, Lab, Note, Setup, UBUNTU, WorldOptions, mins, secs, wait_until};
use roost_hatchery::door::HATCHERY;

fn one_pool(number: i64) -> Setup {
    Setup::new("hv1").pool("debian12", number).set("workerProvisioningPoolSize", 4)
}

/// D26, D42, W8: a spare is one by name, annotation and power; its address stands in its name, where a CDS hatchery looks for it.
#[tokio::test(start_paused = true)]
async fn spares_are_made_ahead_powered_off_and_named_after_their_address() {
    let lab = Lab::of(one_pool(3)).await;
    lab.wait_for_spares(3).await;
    for vm in lab.own_vms() {
        let note = Note::of(&vm).unwrap();
        let address = note.ip_address.replace('.', "-");
        assert!(vm.name.starts_with(&format!("provision-v2-ip-{address}-")), "{}", vm.name);
        assert_eq!((note.worker_name.as_str(), note.job_id.as_str()), (&*vm.name, ""));
        assert_eq!(note.vmware_model_path, "debian12");
        assert_eq!(note.worker_start_time, "0001-01-01T00:00:00Z");
    }
    let before = lab.own_names();
    sleep(mins(60)).await;
    assert_eq!(lab.own_names(), before, "what is complete is left alone");
}

/// D31: CDS's hatchery cut the power of spares that had just booted, and their file systems were dirty at the claim.
#[tokio::test(start_paused = true)]
async fn a_spare_is_shut_down_by_its_guest_and_cut_off_only_if_that_does_not_help() {
    let lab = Lab::of(one_pool(1)).await;
    lab.wait_for_spares(1).await;
    assert_eq!((lab.calls_of("ShutdownGuest"), lab.calls_of("PowerOffVM_Task")), (1, 0));

    let mut lab = Lab::closed(WorldOptions::default(), one_pool(1));
    let deaf = GuestBehaviour { obeys: false, ..GuestBehaviour::default() };
    lab.vcenter.set_guest_behaviour("debian12", deaf).unwrap();
    lab.open().await;
    lab.wait_for_spares(1).await;
    assert_eq!((lab.calls_of("ShutdownGuest"), lab.calls_of("PowerOffVM_Task")), (1, 1));
}

/// D4: a neutral spare takes any flavor; it is resized while it is off, in the same change that claims it.
#[tokio::test(start_paused = true)]
async fn a_spare_takes_the_size_of_the_job_that_claims_it() {
    let lab = Lab::of(one_pool(2)).await;
    lab.wait_for_spares(2).await;
    let clones = lab.calls_of("CloneVM_Task");
    let jobs = ["large", "small"]
        .map(|flavor| lab.v2_job(V2Demand::new(DEBIAN).flavor(flavor).takes(mins(5))));
    for (job, cpus, memory) in [(&jobs[0], 8, 16384), (&jobs[1], 2, 4096)] {
        lab.wait_for(job, JobStatus::Building).await;
        let vm = lab.vm_of(job).unwrap();
        assert_eq!((vm.cpus, vm.memory_mb), (cpus, memory));
    }
    let made = lab.calls_of("CloneVM_Task") - clones;
    assert_eq!(made, 2, "both clones are refills");
}

/// D28: the refill begins with the claim, not at the next tick.
#[tokio::test(start_paused = true)]
async fn a_claim_is_followed_by_its_refill_at_once() {
    let lab = Lab::of(one_pool(1).set("workerProvisioningInterval", 3600)).await;
    lab.wait_for_spares(1).await;
    let clones = lab.calls_of("CloneVM_Task");
    lab.job();
    wait_until("the refill is asked for", secs(2), || lab.calls_of("CloneVM_Task") > clones).await;
    lab.wait_for_spares(1).await;
}

/// D28, D43: no more at once than `workerProvisioningPoolSize`, and no pool waits for another to be full.
#[tokio::test(start_paused = true)]
async fn spares_are_made_a_few_at_a_time_and_for_all_pools_in_turn() {
    let setup = Setup::new("hv1")
        .pool("debian12", 3)
        .pool("ubuntu24", 3)
        .set("workerProvisioningPoolSize", 2);
    let lab = Lab::of(setup).await;
    let mut most = 0;
    wait_until("two are made", mins(5), || {
        let on = lab.own_vms().iter().filter(|vm| vm.power == Power::On).count();
        most = most.max(on);
        lab.ready_spares().len() == 2
    })
    .await;
    assert_eq!(most, 2);
    let mut templates: Vec<String> =
        lab.ready_spares().iter().map(|vm| Note::of(vm).unwrap().vmware_model_path).collect();
    templates.sort();
    assert_eq!(templates, ["debian12", "ubuntu24"]);
    lab.wait_for_spares(6).await;
}

/// D29: what an operator no longer asks for goes, the rest stays.
#[tokio::test(start_paused = true)]
async fn excess_spares_and_those_of_no_pool_are_removed() {
    let setup = one_pool(3).pool("ubuntu24", 1);
    let mut lab = Lab::of(setup).await;
    lab.wait_for_spares(4).await;
    lab.restart_with(one_pool(1)).await;
    lab.wait_until_clean(1).await;
    assert_eq!(Note::of(&lab.own_vms()[0]).unwrap().vmware_model_path, "debian12");
    lab.restart_with(Setup::new("hv1")).await;
    lab.wait_until_clean(0).await;
}

/// W17: removal and claim go through the same ledger, so the one that a job has is never the one that goes.
#[tokio::test(start_paused = true)]
async fn a_spare_that_is_being_claimed_is_no_excess() {
    let mut lab = Lab::of(one_pool(4)).await;
    lab.wait_for_spares(4).await;
    let jobs = lab.jobs(3);
    lab.restart_with(one_pool(1)).await;
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    for job in &jobs {
        assert!(lab.cds.job(job).unwrap().releases().is_empty());
    }
    lab.wait_until_clean(1).await;
}

/// D30: CDS's hatchery counted what it had left half-made for ever and used it never.
#[tokio::test(start_paused = true)]
async fn half_made_spares_are_finished_by_the_next_process() {
    for after in [5, 20, 50, 70, 85] {
        let mut lab = Lab::of(one_pool(2)).await;
        sleep(secs(after)).await;
        lab.restart().await;
        lab.wait_for_spares(2).await;
        lab.wait_until_clean(2).await;
        let made = lab.calls_of("CloneVM_Task");
        assert_eq!(made, 2, "after {after} s they were finished and not made anew");
    }
}

/// D34, W6: without addresses the whole process of CDS's hatchery fell.
#[tokio::test(start_paused = true)]
async fn without_an_address_range_guests_ask_a_dhcp_server() {
    let lab = Lab::of(one_pool(1).dhcp()).await;
    lab.wait_for_spares(1).await;
    let (warm, cold) = (lab.job(), lab.v2_job(V2Demand::new(UBUNTU)));
    lab.wait_for_all(&[warm, cold], JobStatus::Success).await;
    assert!(lab.own_vms().iter().all(|vm| Note::of(vm).unwrap().ip_address.is_empty()));
    lab.wait_until_clean(1).await;
}

/// D17: as CDS does from 0.57, if the operator wants it.
#[tokio::test(start_paused = true)]
async fn with_only_provisioned_jobs_wait_for_spares() {
    let lab = Lab::of(one_pool(1).set("onlyProvisioned", true)).await;
    lab.wait_for_spares(1).await;
    let jobs = lab.jobs(2);
    wait_until("one waits for a spare", mins(2), || {
        jobs.iter().any(|job| lab.bound_by(job) == Some("spare"))
    })
    .await;
    let none = lab.v2_job(V2Demand::new(UBUNTU));
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    assert_eq!(lab.bound_by(&none), Some("spare"), "nobody keeps spares of it");
    let fresh = lab.guests.launches();
    assert!(fresh.iter().all(|launch| launch.job.as_ref() != Some(&none)));
}

/// Amendment C: spares of a size serve jobs of that size and no others.
#[tokio::test(start_paused = true)]
async fn a_pool_of_a_flavor_serves_that_flavor() {
    let setup = Setup::new("hv1").flavored_pool("debian12", "large", 1);
    let lab = Lab::of(setup).await;
    lab.wait_for_spares(1).await;
    let spare = lab.ready_spares().remove(0);
    assert_eq!((spare.cpus, spare.memory_mb), (8, 16384));
    let small = lab.v2_job(V2Demand::new(DEBIAN).flavor("small"));
    lab.wait_for(&small, JobStatus::Success).await;
    assert_eq!(lab.ready_spares()[0].moref, spare.moref, "it is not for this one");
    let large = lab.v2_job(V2Demand::new(DEBIAN).flavor("large"));
    lab.wait_for(&large, JobStatus::Building).await;
    assert_eq!(lab.vm_of(&large).unwrap().moref, spare.moref);
}

/// CDS's hatchery tried a template that always fails again at every pass.
#[tokio::test(start_paused = true)]
async fn a_template_that_always_fails_is_tried_ever_more_seldom_and_the_others_go_on() {
    let mut lab = Lab::closed(WorldOptions::default(), one_pool(1).pool("ubuntu24", 1));
    let broken = GuestBehaviour { starts_tools: false, ..GuestBehaviour::default() };
    lab.vcenter.set_guest_behaviour("debian12", broken).unwrap();
    lab.open().await;
    lab.wait_for_spares(1).await;
    assert_eq!(Note::of(&lab.ready_spares()[0]).unwrap().vmware_model_path, "ubuntu24");
    let clones = lab.calls_of("CloneVM_Task");
    sleep(mins(60)).await;
    let more = lab.calls_of("CloneVM_Task") - clones;
    assert!((2..=8).contains(&more), "{more} tries in an hour");
    let verdict = lab.hatchery().journal().latest(&HATCHERY.about_pool("debian12")).unwrap();
    assert_eq!(verdict.verdict, Decided::Failed, "{verdict}");
    lab.vcenter.set_guest_behaviour("debian12", GuestBehaviour::default()).unwrap();
    lab.wait_for_spares(2).await;
    lab.wait_until_clean(2).await;
}

/// W7: a spare that failed says so itself, so that neither this process nor the next claims it while its deletion fails.
#[tokio::test(start_paused = true)]
async fn a_spare_that_failed_is_never_claimed_even_if_it_cannot_be_deleted() {
    let mut lab = Lab::closed(WorldOptions::default(), one_pool(1));
    let mute = GuestBehaviour { becomes_ready: false, ..GuestBehaviour::default() };
    lab.vcenter.set_guest_behaviour("debian12", mute).unwrap();
    let rule = Rule::new("Destroy_Task", Action::fail_task("ResourceInUse", "a backup runs"));
    let rule = lab.vcenter.faults().add(rule);
    lab.open().await;
    wait_until("it is marked", mins(10), || {
        lab.own_vms().iter().any(|vm| Note::of(vm).unwrap().to_delete)
    })
    .await;
    lab.vcenter.set_guest_behaviour("debian12", GuestBehaviour::default()).unwrap();
    let broken = lab.own_vms().into_iter().find(|vm| Note::of(vm).unwrap().to_delete).unwrap();
    let note = Note::of(&broken).unwrap();
    let is_retired = broken.name.starts_with("retired-") && !note.provisioning;
    assert!(is_retired, "a CDS hatchery would not claim it either");
    lab.restart().await;
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Building).await;
    assert_ne!(lab.vm_of(&job).unwrap().moref, broken.moref);
    assert!(lab.vcenter.faults().remove(rule));
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(1).await;
}

/// The request for its clone hung and was repeated. The spare that one of them made failed and was renamed, and the next one that was carried out made a
/// second VM with its name and its address.
#[tokio::test(start_paused = true)]
async fn a_spare_that_failed_has_no_twin_when_requests_for_its_clone_are_late() {
    let mut lab = Lab::closed(WorldOptions::default(), one_pool(1));
    let late = Rule::new("CloneVM_Task", Action::Delay(secs(88)));
    lab.vcenter.faults().add(late.times(5));
    lab.vcenter.faults().add(Rule::new("ShutdownGuest", Action::Status(503)).times(3));
    lab.open().await;
    wait_until("a spare has failed", mins(10), || {
        lab.own_names().iter().any(|name| name.starts_with("retired-"))
    })
    .await;
    lab.wait_for_spares(1).await;
    lab.wait_until_clean(1).await;
}

/// Spares wait for room as jobs do, and go after them.
#[tokio::test(start_paused = true)]
async fn spares_stay_within_the_static_limits_while_they_are_made() {
    let setup = one_pool(4).set("maxCpus", 4);
    let lab = Lab::of(setup).await;
    let mut most = 0;
    wait_until("all spares are ready", mins(30), || {
        let on = lab.own_vms().into_iter().filter(|vm| vm.power == Power::On);
        most = most.max(on.map(|vm| vm.cpus).sum());
        lab.ready_spares().len() == 4
    })
    .await;
    assert_eq!(most, 4);
}

/// D37: nor do they take a worker's slot, while they are made or later.
#[tokio::test(start_paused = true)]
async fn spares_take_no_workers_slot() {
    let lab = Lab::of(one_pool(3).max_workers(1)).await;
    wait_until("spares are being made", mins(5), || {
        lab.own_vms().iter().filter(|vm| vm.power == Power::On).count() == 3
    })
    .await;
    let job = lab.v2_job(V2Demand::new(UBUNTU));
    wait_until("it is taken", secs(30), || lab.status(&job) != JobStatus::Waiting).await;
    lab.wait_for(&job, JobStatus::Success).await;
}

/// Somebody deletes a spare by hand.
#[tokio::test(start_paused = true)]
async fn a_spare_that_vanishes_is_replaced() {
    let lab = Lab::of(one_pool(2)).await;
    lab.wait_for_spares(2).await;
    lab.vcenter.kill_vm(&lab.own_names()[0]).unwrap();
    lab.wait_for_spares(1).await;
    lab.wait_for_spares(2).await;
}
