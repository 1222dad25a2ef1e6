//! How many workers, how large, and which jobs wait for room.

use roost_cds::JobStatus;
use roost_cds::v1::RequirementType;
use roost_cds_sim::{Fault, V1Demand, V2Demand};
use roost_fleet::Decided;
use roost_vcenter_sim::{Power, VmGlance};
use tokio::time::sleep;

use crate::lab::{DEBIAN, GoVm, Lab, Setup, UBUNTU, WorldOptions, mins, secs, wait_until};

/// Workers that run at the same time, at most, until all jobs are done.
async fn most_at_once(
    lab: &Lab,
    jobs: &[roost_cds::JobId],
    count: impl Fn(&[VmGlance]) -> u64,
) -> u64 {
    let mut most = 0;
    wait_until("all jobs are done", mins(180), || {
        let on: Vec<VmGlance> =
            lab.own_vms().into_iter().filter(|vm| vm.power == Power::On).collect();
        most = most.max(count(&on));
        jobs.iter().all(|job| lab.status(job) == JobStatus::Success)
    })
    .await;
    most
}

/// 6.3
#[tokio::test(start_paused = true)]
async fn no_more_workers_than_max_worker_run_and_all_jobs_get_their_turn() {
    let lab = Lab::of(Setup::new("hv1").max_workers(2)).await;
    let jobs = lab.jobs(7);
    sleep(secs(30)).await;
    let waiting = jobs.iter().filter(|job| lab.bound_by(job) == Some("workers")).count();
    assert_eq!(waiting, 5, "the others know what they wait for");
    assert_eq!(most_at_once(&lab, &jobs, |on| on.len() as u64).await, 2);
    lab.wait_until_clean(0).await;
}

/// 6.3
#[tokio::test(start_paused = true)]
async fn no_more_workers_than_max_concurrent_provisioning_start_at_once() {
    let setup = Setup::new("hv1").max_workers(8).provision("maxConcurrentProvisioning", 2);
    let lab = Lab::of(setup).await;
    let jobs: Vec<_> = (0..6).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(15)))).collect();
    sleep(secs(30)).await;
    assert_eq!(jobs.iter().filter(|job| lab.bound_by(job) == Some("pending")).count(), 4);
    let most = most_at_once(&lab, &jobs, |on| on.len() as u64).await;
    assert_eq!(most, 6, "a worker that has registered makes room for the next");
}

/// 1.9: `maxWorker = 0`.
#[tokio::test(start_paused = true)]
async fn max_worker_zero_is_no_limit() {
    let setup = Setup::new("hv1").max_workers(0).provision("maxConcurrentProvisioning", 40);
    let lab = Lab::of(setup).await;
    let jobs: Vec<_> = (0..25).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(10)))).collect();
    assert_eq!(most_at_once(&lab, &jobs, |on| on.len() as u64).await, 25);
    let status = lab.hatchery().status();
    let workers = status.lines.iter().flatten().find(|line| line.component == "Workers").unwrap();
    assert!(workers.value.ends_with("/unlimited"), "{}", workers.value);
}

/// W2: a burst passes the same room once, so nobody takes a job that it has to give back.
#[tokio::test(start_paused = true)]
async fn a_burst_of_jobs_takes_only_what_there_is_room_for_and_gives_nothing_back() {
    let setup = Setup::new("hv1").max_workers(20).set("maxCpus", 8);
    let lab = Lab::of(setup).await;
    let demand = || V2Demand::new(DEBIAN).flavor("small").takes(mins(12));
    let jobs: Vec<_> = (0..12).map(|_| lab.v2_job(demand())).collect();
    for after in [20, 150, 480] {
        sleep(secs(after)).await;
        let taken = jobs.iter().filter(|job| lab.status(job) != JobStatus::Waiting).count();
        assert_eq!(taken, 4, "four times two CPUs are eight");
    }
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    for job in &jobs {
        let report = lab.cds.job(job).unwrap();
        assert_eq!((report.holders().len(), report.releases().len()), (1, 0), "{job}");
    }
}

/// D9, D14, D15.
#[tokio::test(start_paused = true)]
async fn cpus_and_memory_of_running_workers_stay_within_their_limits() {
    let setup = Setup::new("hv1").max_workers(20).set("maxCpus", 20).set("maxMemoryMB", 34 * 1024);
    let lab = Lab::of(setup).await;
    let flavors = ["large", "small", "medium", "small", "large", "medium"];
    let jobs: Vec<_> = flavors
        .iter()
        .map(|flavor| lab.v2_job(V2Demand::new(DEBIAN).flavor(flavor).takes(mins(5))))
        .collect();
    let memory = |on: &[VmGlance]| on.iter().map(|vm| u64::try_from(vm.memory_mb).unwrap()).sum();
    assert!(most_at_once(&lab, &jobs, memory).await <= 34 * 1024);
    let gates = ["cpus", "memory"];
    let waited = lab.hatchery().journal().find(&roost_fleet::Query::default());
    let bound = waited.iter().filter_map(|decision| decision.bound_by);
    assert!(bound.clone().all(|gate| gates.contains(&gate)), "{:?}", bound.collect::<Vec<_>>());
}

/// D14: a powered-off VM takes neither CPU nor memory, so spares do not block their own claim.
#[tokio::test(start_paused = true)]
async fn spares_that_are_off_take_nothing_of_the_static_limits() {
    let setup = Setup::new("hv1")
        .pool("debian12", 4)
        .set("workerProvisioningPoolSize", 1)
        .set("maxCpus", 4);
    let lab = Lab::of(setup).await;
    lab.wait_for_spares(4).await;
    let jobs = lab.jobs(2);
    wait_until("two workers of two CPUs run", mins(3), || {
        lab.own_vms().iter().filter(|vm| vm.power == Power::On && vm.cpus == 2).count() == 2
    })
    .await;
    lab.wait_for_all(&jobs, JobStatus::Success).await;
}

/// D12, W16: a template is found by its name; CDS's hatchery looked for an annotation that V2 templates do not have, and counted nothing.
#[tokio::test(start_paused = true)]
async fn without_a_flavor_the_templates_own_size_counts() {
    let lab = Lab::of(Setup::new("hv1").set("maxMemoryMB", 9000)).await;
    // Templates have 2048 and 4096 MB.
    let jobs = [DEBIAN, UBUNTU, UBUNTU, DEBIAN].map(|model| lab.v2_job(V2Demand::new(model)));
    let memory = |on: &[VmGlance]| on.iter().map(|vm| u64::try_from(vm.memory_mb).unwrap()).sum();
    let most = most_at_once(&lab, &jobs, memory).await;
    assert!((8192..=9000).contains(&most), "{most}");
}

/// D13: what is kept for the smallest flavor is kept of CPU and, unlike in CDS's hatchery, of memory.
#[tokio::test(start_paused = true)]
async fn a_large_worker_leaves_room_for_small_ones() {
    for limit in [("maxCpus", 8), ("maxMemoryMB", 16384)] {
        let setup = Setup::new("hv1").set("countSmallerFlavorToKeep", 1).set(limit.0, limit.1);
        let lab = Lab::of(setup).await;
        let large = lab.v2_job(V2Demand::new(DEBIAN).flavor("large"));
        let medium = lab.v2_job(V2Demand::new(DEBIAN).flavor("medium").takes(mins(20)));
        let small = lab.v2_job(V2Demand::new(DEBIAN).flavor("small"));
        lab.wait_for(&small, JobStatus::Success).await;
        assert_eq!(lab.status(&large), JobStatus::Waiting, "{limit:?}");
        lab.wait_for(&medium, JobStatus::Success).await;
        lab.wait_until_clean(0).await;
        assert_eq!(lab.status(&large), JobStatus::Waiting, "it fits alone, and leaves no room");
        let bound = lab.bound_by(&large);
        assert!(matches!(bound, Some("cpu-reserve" | "memory-reserve")), "{bound:?}");
    }
}

/// D2, D5: runs-on, then the model, then the requirement, then the default.
#[tokio::test(start_paused = true)]
async fn the_flavor_of_a_job_is_the_size_of_its_vm() {
    let lab = Lab::of(Setup::new("hv1").set("defaultFlavor", "small")).await;
    let named = lab.v2_job(V2Demand::new(DEBIAN).flavor("LARGE").takes(mins(5)));
    let unnamed = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(5)));
    let required = lab.v1_job(V1Demand::new().model(DEBIAN).flavor("medium").takes(mins(5)));
    for (job, cpus, memory) in [(named, 8, 16384), (unnamed, 2, 4096), (required, 4, 8192)] {
        lab.wait_for(&job, JobStatus::Building).await;
        let vm = lab.vm_of(&job).unwrap();
        assert_eq!((vm.cpus, vm.memory_mb), (cpus, memory), "{}", vm.name);
    }
}

/// D3: refused by name before the job is taken, and whoever waits for it is told.
#[tokio::test(start_paused = true)]
async fn an_unknown_flavor_is_refused_before_the_job_is_taken() {
    let lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).flavor("gigantic"));
    sleep(mins(5)).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!((report.status, report.holders()), (JobStatus::Waiting, Vec::<&str>::new()));
    let told = report.infos.iter().filter(|info| info.contains("gigantic")).count();
    assert_eq!(told, 1, "once: {:?}", report.infos);
    let verdict = lab.verdict(&job).unwrap();
    assert_eq!((verdict.verdict, verdict.bound_by), (Decided::Refused, Some("unknown-flavor")));
    assert!(lab.own_vms().is_empty());
}

/// A job that asks for what VMs do not have stays in the queue for somebody who has it.
#[tokio::test(start_paused = true)]
async fn requirements_that_vms_do_not_offer_are_skipped_and_explained() {
    let lab = Lab::new().await;
    let service =
        V1Demand::new().model(DEBIAN).requirement(RequirementType::Service, "postgres:14");
    let memory = V1Demand::new().model(DEBIAN).requirement(RequirementType::Memory, "4096");
    let region = V1Demand::new().model(DEBIAN).region("mars");
    for (demand, gate) in [
        (service, "unsupported-requirement"),
        (memory, "unsupported-requirement"),
        (region, "other-region"),
    ] {
        let job = lab.v1_job(demand);
        wait_until(gate, mins(3), || lab.bound_by(&job) == Some(gate)).await;
        assert_eq!(lab.status(&job), JobStatus::Waiting);
    }
    assert!(lab.own_vms().is_empty());
}

/// 2.3, step 4.
#[tokio::test(start_paused = true)]
async fn a_hatchery_of_a_region_takes_its_jobs_and_may_ignore_those_without() {
    let setup =
        Setup::new("hv1").provision("region", "default").provision("ignoreJobWithNoRegion", true);
    let lab = Lab::of(setup).await;
    let ours = lab.v1_job(V1Demand::new().model(DEBIAN).region("default"));
    let nobodys = lab.v1_job(V1Demand::new().model(DEBIAN));
    lab.wait_for(&ours, JobStatus::Success).await;
    assert_eq!(lab.status(&nobodys), JobStatus::Waiting);

    // CDS keeps what a service said at its first sign-in, and goes on offering them: they are looked at here as well.
    let setup = |ignores: bool| {
        let setup = Setup::new("hv1").provision("region", "default");
        setup.provision("ignoreJobWithNoRegion", ignores)
    };
    let mut lab = Lab::of(setup(false)).await;
    lab.restart_with(setup(true)).await;
    let nobodys = lab.v1_job(V1Demand::new().model(DEBIAN));
    wait_until("it is left alone", mins(2), || lab.bound_by(&nobodys) == Some("no-region")).await;
}

/// W4, D37: ten unrelated VMs held up a hatchery of CDS for good.
#[tokio::test(start_paused = true)]
async fn vms_of_strangers_take_no_workers_slot() {
    let options = WorldOptions { strangers: 25, ..WorldOptions::default() };
    let mut lab = Lab::closed(options, Setup::new("hv1").max_workers(1));
    // Another hatchery's worker is a stranger too.
    let colleague = lab.colleague("svc-hv9@vsphere.local").await;
    let annotation =
        r#"{"hatchery_name":"hv9","worker_name":"keen-bohr","job_id":"77"}"#.to_owned();
    let theirs = GoVm { name: "keen-bohr", annotation, power: Power::On, address: None };
    lab.make_vm(&colleague, theirs).await;
    lab.open().await;
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
    lab.truth.others_are_untouched(&lab);
}

/// D27, D44: without a free address nothing is taken, and the reason says when the next is expected. A spare has its address already.
#[tokio::test(start_paused = true)]
async fn a_job_waits_for_an_address_untaken_unless_a_spare_has_one() {
    // .1 to .5 are free: not the network, the broadcast or the gateway address.
    let setup = Setup::new("hv1")
        .addresses("10.9.0.0/29", "10.9.0.6", "255.255.255.248")
        .pool("debian12", 1);
    let lab = Lab::of(setup).await;
    lab.wait_for_spares(1).await;
    let long: Vec<_> = (0..5).map(|_| lab.v2_job(V2Demand::new(UBUNTU).takes(mins(30)))).collect();
    wait_until("one has no address", mins(5), || {
        long.iter().any(|job| lab.bound_by(job) == Some("address"))
    })
    .await;
    let left = long.iter().find(|job| lab.bound_by(job) == Some("address")).unwrap();
    assert_eq!(lab.cds.job(left).unwrap().holders(), Vec::<&str>::new());
    let warm = lab.job();
    lab.wait_for(&warm, JobStatus::Success).await;
    assert_eq!(lab.bound_by(left), Some("address"), "the warm one did not wait for it");
    lab.wait_for_all(&long, JobStatus::Success).await;
}

/// W27, 7.4
#[tokio::test(start_paused = true)]
async fn network_broadcast_and_gateway_addresses_are_never_given_out() {
    let setup = Setup::new("hv1").addresses("10.9.0.0/29", "10.9.0.6", "255.255.255.248");
    let lab = Lab::of(setup).await;
    let jobs: Vec<_> = (0..5).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(10)))).collect();
    lab.wait_for_all(&jobs, JobStatus::Building).await;
    let mut given: Vec<String> =
        lab.own_vms().iter().filter_map(|vm| Some(vm.ip?.to_string())).collect();
    given.sort();
    assert_eq!(given, ["10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5"]);
}

/// D24
#[tokio::test(start_paused = true)]
async fn further_networks_are_used_when_the_first_is_full() {
    let setup = Setup::new("hv1").addresses("10.9.0.0/30", "10.9.0.2", "255.255.255.252").network(
        "10.9.1.0/29",
        "10.9.1.6",
        "255.255.255.248",
    );
    let lab = Lab::of(setup).await;
    let jobs: Vec<_> = (0..3).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(10)))).collect();
    lab.wait_for_all(&jobs, JobStatus::Building).await;
    let mut given: Vec<String> =
        lab.own_vms().iter().filter_map(|vm| Some(vm.ip?.to_string())).collect();
    given.sort();
    assert_eq!(given, ["10.9.0.1", "10.9.1.1", "10.9.1.2"]);
}

/// 7.4: an address rests after its VM is gone, so that nobody meets what was said to the one before.
#[tokio::test(start_paused = true)]
async fn an_address_rests_before_it_is_given_out_again() {
    let setup = Setup::new("hv1").addresses("10.9.0.0/29", "10.9.0.6", "255.255.255.248");
    let lab = Lab::of(setup).await;
    let first = lab.job();
    lab.wait_for(&first, JobStatus::Building).await;
    let before = lab.vm_of(&first).unwrap().ip.unwrap();
    lab.wait_until_clean(0).await;
    let second = lab.job();
    lab.wait_for(&second, JobStatus::Building).await;
    assert_ne!(lab.vm_of(&second).unwrap().ip.unwrap(), before);
}

/// D10, D11: the pool's own limits hold where the file has none.
#[tokio::test(start_paused = true)]
async fn a_resource_pool_without_memory_left_defers_jobs() {
    let options = WorldOptions { host_memory_gb: Some(8), ..WorldOptions::default() };
    let lab = Lab::in_world(options, Setup::new("hv1").max_workers(40)).await;
    let jobs: Vec<_> = (0..6).map(|_| lab.v2_job(V2Demand::new(DEBIAN).flavor("large"))).collect();
    sleep(mins(1)).await;
    let started = jobs.iter().filter(|job| lab.status(job) != JobStatus::Waiting).count();
    assert!(started < 6, "three hosts of 8 GB hold no six workers of 16 GB");
    let bound: Vec<_> = jobs.iter().filter_map(|job| lab.bound_by(job)).collect();
    assert!(bound.iter().all(|gate| gate.contains("pool")), "{bound:?}");
}

/// A project with many jobs does not hold up another's only one (2.1).
#[tokio::test(start_paused = true)]
async fn projects_take_turns() {
    let lab = Lab::of(Setup::new("hv1").max_workers(1)).await;
    let many: Vec<_> = (0..6).map(|_| lab.v2_job(V2Demand::new(DEBIAN).project("MANY"))).collect();
    sleep(secs(5)).await;
    let single = lab.v2_job(V2Demand::new(DEBIAN).project("SINGLE"));
    lab.wait_for(&single, JobStatus::Success).await;
    let done = many.iter().filter(|job| lab.status(job) == JobStatus::Success).count();
    assert!(done <= 2, "{done} of the many went first");
    lab.wait_for_all(&many, JobStatus::Success).await;
}

/// 2.6: five attempts, then a V1 job fails with words that CDS users know.
#[tokio::test(start_paused = true)]
async fn a_v1_job_fails_after_its_last_attempt() {
    let lab = Lab::of(Setup::new("hv1").provision("maxAttemptsNumberBeforeFailure", 2)).await;
    lab.vcenter.faults().add(roost_vcenter_sim::Rule::new(
        "CloneVM_Task",
        roost_vcenter_sim::Action::fail_task("NoDiskSpace", "the datastore is full"),
    ));
    let job = lab.v1_job(V1Demand::new().model(DEBIAN));
    lab.wait_for(&job, JobStatus::Fail).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!(report.holders().len(), 2);
    let reason = format!("{:?}", report.history.last().unwrap());
    assert!(reason.contains("failed to start worker after 2 attempts"), "{reason}");
}

/// A run that ended meanwhile is purged, and CDS then refuses to speak of its jobs.
#[tokio::test(start_paused = true)]
async fn a_v1_job_that_is_gone_when_it_is_to_fail_is_not_asked_about_again() {
    let lab = Lab::of(Setup::new("hv1").provision("maxAttemptsNumberBeforeFailure", 2)).await;
    lab.vcenter.faults().add(roost_vcenter_sim::Rule::new(
        "CloneVM_Task",
        roost_vcenter_sim::Action::fail_task("NoDiskSpace", "the datastore is full"),
    ));
    lab.cds.inject(Fault::on("POST /queue/workflows/*/result").vanish());
    let job = lab.v1_job(V1Demand::new().model(DEBIAN));
    let words =
        || lab.verdict(&job).map(|decision| decision.reason.to_string()).unwrap_or_default();
    wait_until("it is known to be gone", mins(30), || {
        words().ends_with("after 2 attempts; CDS has it no more")
    })
    .await;
    sleep(mins(10)).await;
    assert_eq!(lab.cds.calls("POST /queue/workflows/*/result"), 1);
}

/// 3.3: a V2 job is never failed by a hatchery, which only leaves it alone for an hour.
#[tokio::test(start_paused = true)]
async fn a_v2_job_is_left_alone_after_its_last_attempt() {
    let lab = Lab::of(Setup::new("hv1").provision("maxAttemptsNumberBeforeFailure", 2)).await;
    lab.vcenter.faults().add(roost_vcenter_sim::Rule::new(
        "CloneVM_Task",
        roost_vcenter_sim::Action::fail_task("NoDiskSpace", "the datastore is full"),
    ));
    let job = lab.job();
    wait_until("it has had enough", mins(30), || lab.bound_by(&job) == Some("attempts")).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!((report.holders().len(), report.status), (2, JobStatus::Waiting));
    sleep(mins(20)).await;
    assert_eq!(lab.cds.job(&job).unwrap().holders().len(), 2);
}
