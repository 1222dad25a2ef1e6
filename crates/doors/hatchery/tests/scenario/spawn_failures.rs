//! A worker that does not come: its VM goes, its job is given back, and it is said why.

use roost_cds::{JobId, JobStatus};
use roost_cds_sim::{Fault, V2Demand};
use roost_fleet::{Decided, Query};
use roost_vcenter_sim::{
    Action, AddressBehaviour, GuestBehaviour, HostConnection, Outage, Rule, When,
};
use tokio::time::{Instant, sleep};

use crate::lab::{Conduct, DEBIAN, Lab, Note, Setup, mins, secs, wait_until};
use roost_hatchery::door::HATCHERY;

/// Why starts for a job failed so far.
fn failures(lab: &Lab, job: &JobId) -> Vec<String> {
    let subject = HATCHERY.about_request(job.to_string());
    let query = Query { verdict: Some(Decided::Failed), ..Query::of(subject) };
    lab.hatchery().journal().find(&query).iter().map(|found| found.reason.to_string()).collect()
}

async fn wait_for_failure(lab: &Lab, job: &JobId) -> String {
    wait_until("the start failed", mins(30), || !failures(lab, job).is_empty()).await;
    failures(lab, job).remove(0)
}

fn is_template_failing(lab: &Lab) -> bool {
    lab.service.metrics().contains("roost_hatchery_template_failures{")
}

fn well() -> GuestBehaviour {
    let credentials = roost_vcenter_sim::Credentials {
        user: "cds".into(),
        password: "guest-password-0815".into(),
    };
    GuestBehaviour { credentials: Some(credentials), ..GuestBehaviour::default() }
}

/// W23: every wait has a name and a deadline, and says what it saw.
#[tokio::test(start_paused = true)]
async fn a_guest_without_tools_is_given_up_at_its_deadline_and_the_job_goes_on_elsewhere() {
    let lab = Lab::new().await;
    let dead = GuestBehaviour { starts_tools: false, ..well() };
    lab.vcenter.set_guest_behaviour("debian12", dead).unwrap();
    let job = lab.job();
    let why = wait_for_failure(&lab, &job).await;
    assert!(
        why.contains("booting took longer than 180s; it is on, its guest is not ready"),
        "{why}"
    );
    lab.vcenter.set_guest_behaviour("debian12", well()).unwrap();
    lab.wait_for(&job, JobStatus::Success).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!(report.releases(), ["hv1"]);
    assert!(
        report.infos.iter().any(|info| info.contains("Error while Hatchery hv1 spawns worker")),
        "{:?}",
        report.infos
    );
    lab.wait_until_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_with_another_address_than_its_own_gets_no_worker() {
    let lab = Lab::new().await;
    let wrong = AddressBehaviour::Wrong("10.99.0.9".parse().unwrap());
    lab.vcenter
        .set_guest_behaviour("debian12", GuestBehaviour { address: wrong, ..well() })
        .unwrap();
    let job = lab.job();
    let why = wait_for_failure(&lab, &job).await;
    assert!(why.contains("10.99.0.9") && why.contains("it was given 10."), "{why}");
    assert!(lab.guests.launches().is_empty());
    lab.vcenter.set_guest_behaviour("debian12", well()).unwrap();
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
}

/// The task fails, and the VM is there all the same.
#[tokio::test(start_paused = true)]
async fn a_clone_that_fails_at_its_power_on_leaves_nothing_behind() {
    let lab = Lab::new().await;
    let job = lab.job();
    wait_until("it is being cloned", mins(5), || lab.calls_of("CloneVM_Task") > 0).await;
    let hosts = ["DC0_C0_H0", "DC0_C0_H1", "DC0_C0_H2"];
    for host in hosts {
        lab.vcenter.set_host_connection(host, HostConnection::NotResponding).unwrap();
    }
    let why = wait_for_failure(&lab, &job).await;
    assert!(!lab.own_vms().is_empty(), "{why}");
    for host in hosts {
        lab.vcenter.set_host_connection(host, HostConnection::Connected).unwrap();
    }
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_fails_costs_its_job_one_release_and_nothing_else() {
    let lab = Lab::new().await;
    let full = Action::fail_task("NoDiskSpace", "the datastore is full");
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", full).once());
    let job = lab.job();
    let why = wait_for_failure(&lab, &job).await;
    assert!(why.contains("NoDiskSpace"), "{why}");
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().releases(), ["hv1"]);
    lab.wait_until_clean(0).await;
}

/// CDS fails a V2 job at its fifth release. A datastore that is full for an hour must not cost a whole queue its jobs.
#[tokio::test(start_paused = true)]
async fn behind_a_full_datastore_one_job_at_a_time_finds_out_and_none_is_lost() {
    let lab = Lab::new().await;
    let full = Action::fail_task("NoDiskSpace", "the datastore is full");
    let rule = lab.vcenter.faults().add(Rule::new("CloneVM_Task", full));
    let jobs = lab.jobs(8);
    sleep(mins(40)).await;
    let releases: Vec<usize> =
        jobs.iter().map(|job| lab.cds.job(job).unwrap().releases().len()).collect();
    assert!(releases.iter().all(|number| *number < 5), "{releases:?}");
    let reasons: Vec<_> = jobs.iter().filter_map(|job| lab.bound_by(job)).collect();
    assert!(reasons.contains(&"template-fails"), "{reasons:?}");
    assert!(is_template_failing(&lab), "it can be seen");

    assert!(lab.vcenter.faults().remove(rule));
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    assert!(!is_template_failing(&lab));
    lab.wait_until_clean(0).await;
}

/// What fails fast is not tried five times before somebody can look.
#[tokio::test(start_paused = true)]
async fn between_two_attempts_of_a_job_there_is_a_pause_that_grows() {
    let lab = Lab::new().await;
    let full = Action::fail_task("NoDiskSpace", "the datastore is full");
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", full));
    let job = lab.job();
    let mut seen = Vec::new();
    for number in 1..=3 {
        let what = format!("attempt {number}");
        wait_until(&what, mins(10), || failures(&lab, &job).len() >= number).await;
        seen.push(Instant::now());
    }
    assert!(seen[1] - seen[0] >= secs(25) && seen[2] - seen[1] >= secs(55), "{seen:?}");
}

/// A vCenter that goes away is not held against the template that was being cloned.
#[tokio::test(start_paused = true)]
async fn a_lost_link_is_no_fault_of_the_template() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 2)).await;
    wait_until("a spare is being made", mins(5), || lab.calls_of("CloneVM_Task") > 0).await;
    lab.vcenter.restart(Outage { lasts: mins(2), ..Outage::default() });
    sleep(mins(3)).await;
    assert!(!is_template_failing(&lab));
    lab.wait_for_spares(2).await;
}

/// At most one launch for each VM, whatever is lost.
#[tokio::test(start_paused = true)]
async fn a_launch_whose_answer_is_lost_is_found_in_the_guest() {
    let lab = Lab::new().await;
    // The first is the probe.
    let lost = Rule::new("StartProgramInGuest", Action::CutAfter).when(When::Nth(2)).once();
    lab.vcenter.faults().add(lost);
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.guests.launches_of(&job).len(), 1);
    assert_eq!(lab.cds.job(&job).unwrap().releases(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_never_arrived_is_not_repeated_in_the_same_vm() {
    let lab = Lab::new().await;
    let lost = Rule::new("StartProgramInGuest", Action::CutBefore).when(When::Nth(2)).once();
    lab.vcenter.faults().add(lost);
    let job = lab.job();
    let why = wait_for_failure(&lab, &job).await;
    assert!(why.contains("does not run"), "{why}");
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.guests.launches_of(&job).len(), 1);
    lab.wait_until_clean(0).await;
}

/// Not only when `workerRegistrationTTL` is over.
#[tokio::test(start_paused = true)]
async fn a_script_that_has_ended_is_not_waited_for() {
    let lab = Lab::new().await;
    let mut first = true;
    lab.guests.conduct(move |_| {
        if std::mem::replace(&mut first, false) { Conduct::ScriptFails } else { Conduct::Obedient }
    });
    let job = lab.job();
    wait_until("it was launched", mins(10), || !lab.guests.launches().is_empty()).await;
    let launched = Instant::now();
    let why = wait_for_failure(&lab, &job).await;
    assert!(why.contains("the launch script ended with exit code 1"), "{why}");
    assert!(launched.elapsed() < secs(75), "{:?}", launched.elapsed());
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().releases(), ["hv1"]);
    lab.wait_until_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_goes_down_without_a_worker_gives_its_job_back_at_once() {
    let lab = Lab::new().await;
    let mut first = true;
    lab.guests.conduct(move |_| {
        if std::mem::replace(&mut first, false) { Conduct::GoesDown } else { Conduct::Obedient }
    });
    let job = lab.job();
    wait_until("it was launched", mins(10), || !lab.guests.launches().is_empty()).await;
    let launched = Instant::now();
    let why = wait_for_failure(&lab, &job).await;
    assert!(why.contains("powered off before its worker registered"), "{why}");
    assert!(launched.elapsed() < secs(45), "{:?}", launched.elapsed());
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_its_time_is_waited_for() {
    let lab = Lab::new().await;
    lab.guests.conduct(|_| Conduct::Slow(mins(5)));
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!((report.releases().len(), report.executions().len()), (0, 1));
    lab.wait_until_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_done_between_two_looks_has_not_failed() {
    let lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(std::time::Duration::from_millis(50)));
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
    assert_eq!(failures(&lab, &job), [""; 0]);
}

/// W24: the failure has a budget of its own, long after that of the start is spent.
#[tokio::test(start_paused = true)]
async fn a_failure_is_cleaned_up_also_when_the_vcenter_is_away_at_that_moment() {
    // By its age alone its VM would stay for an hour.
    let lab = Lab::of(Setup::new("hv1").set("finishedWorkerGracePeriod", 3_600)).await;
    let dead = GuestBehaviour { starts_tools: false, ..well() };
    lab.vcenter.set_guest_behaviour("debian12", dead).unwrap();
    let job = lab.job();
    wait_until("the clone is there", mins(10), || lab.vm_of(&job).is_some()).await;
    sleep(secs(170)).await;
    let first = lab.vm_of(&job).unwrap();
    lab.vcenter.restart(Outage { lasts: mins(2), refuses: true });
    wait_for_failure(&lab, &job).await;
    wait_until("its VM is marked or gone", mins(3), || {
        let vm = lab.vcenter.glance().into_iter().find(|vm| vm.moref == first.moref);
        vm.is_none_or(|vm| Note::of(&vm).is_some_and(|note| note.to_delete))
    })
    .await;
    lab.vcenter.set_guest_behaviour("debian12", well()).unwrap();
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
}

/// A clone of which nothing was heard for its ten minutes comes after all.
#[tokio::test(start_paused = true)]
async fn a_vm_that_comes_too_late_is_put_down_when_it_comes() {
    let lab = Lab::of(Setup::new("hv1")).await;
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", Action::DelayTask(mins(13))).once());
    let job = lab.job();
    wait_for_failure(&lab, &job).await;
    lab.wait_for(&job, JobStatus::Success).await;
    sleep(mins(10)).await;
    lab.wait_until_clean(0).await;
    assert_eq!(lab.guests.launches_of(&job).len(), 1);
}

/// D6: the spare's disk is read before the job is taken.
#[tokio::test(start_paused = true)]
async fn a_disk_that_cannot_grow_costs_the_job_nothing() {
    let setup = Setup::new("hv1").pool("debian12", 1).push("flavors", |entry| {
        entry.insert("name".into(), "huge".into());
        entry.insert("cpus".into(), 2.into());
        entry.insert("memoryMB".into(), 2048.into());
        entry.insert("diskSizeGB".into(), 500.into());
    });
    let lab = Lab::of(setup).await;
    sleep(mins(5)).await;
    lab.wait_for_spares(1).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).flavor("huge"));
    let refused = || {
        let verdict = lab.verdict(&job).filter(|verdict| verdict.verdict == Decided::Refused);
        verdict.map(|verdict| verdict.reason.to_string())
    };
    wait_until("it is refused", mins(5), || refused().is_some()).await;
    let why = refused().unwrap();
    assert!(why.contains("is a linked clone's, which vSphere does not grow to 500 GB"), "{why}");
    assert_eq!(lab.cds.job(&job).unwrap().holders(), [""; 0]);
    assert_eq!(lab.ready_spares().len(), 1, "the spare is as it was");
}

/// The failure stood before the start when CDS took its time with the first message.
#[tokio::test(start_paused = true)]
async fn the_log_of_a_job_reads_in_the_order_in_which_it_happened() {
    let lab = Lab::new().await;
    lab.cds.inject(Fault::on("POST /v2/queue/*/job/*/info").first(1).delay(secs(4)));
    let full = Action::fault("NoDiskSpace", "the datastore is full");
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", full).once());
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    let infos = lab.cds.job(&job).unwrap().infos;
    let at = |words: &str| infos.iter().position(|info| info.contains(words));
    let order = [at("is starting the worker"), at("will use"), at("the datastore is full")];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} in {infos:#?}");
}
