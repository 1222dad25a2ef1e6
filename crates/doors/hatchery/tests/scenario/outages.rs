//! Servers that restart, forget, stall, break off and lie, and jobs that are done all the same.

use roost_cds::{JobStatus, WorkerStatus};
use roost_cds_sim::{EventFault, Fault, V1Demand, V2Demand};
use roost_fleet::{Decided, Query};
use roost_vcenter_sim::{Action, GuestBehaviour, Outage, Power, Rule, When};
use tokio::time::{Instant, sleep};

use crate::lab::{DEBIAN, Lab, Log, Note, Setup, mins, secs, wait_until};
use roost_hatchery::door::HATCHERY;

/// W9: CDS's hatchery logs in once, and after a restart of the vCenter every call fails until somebody restarts it as well.
#[tokio::test(start_paused = true)]
async fn a_vcenter_that_restarts_costs_nothing_but_time() {
    for refuses in [false, true] {
        let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
        lab.wait_for_spares(1).await;
        let jobs: Vec<_> =
            (0..4).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(5)))).collect();
        sleep(secs(20)).await;
        lab.vcenter.restart(Outage { lasts: mins(2), refuses });
        lab.wait_for_all(&jobs, JobStatus::Success).await;
        lab.wait_until_clean(1).await;
        let logins = lab.vcenter.counters().logins;
        assert!(logins <= 3, "{logins} logins: one for all, not one for each");
    }
}

/// W9
#[tokio::test(start_paused = true)]
async fn a_session_that_ends_is_renewed_once_for_everybody() {
    let lab = Lab::new().await;
    for _ in 0..5 {
        let job = lab.job();
        sleep(secs(25)).await;
        lab.vcenter.expire_sessions();
        lab.wait_for(&job, JobStatus::Success).await;
    }
    assert_eq!(lab.vcenter.counters().logins, 6);
    lab.wait_until_clean(0).await;
}

/// W3: a listing that failed was an empty list, so CDS disabled every worker and failed its job.
#[tokio::test(start_paused = true)]
async fn while_the_vcenter_is_away_no_worker_is_disabled_and_no_job_fails() {
    let lab = Lab::new().await;
    let v1: Vec<_> =
        (0..3).map(|_| lab.v1_job(V1Demand::new().model(DEBIAN).takes(mins(40)))).collect();
    lab.wait_for_all(&v1, JobStatus::Building).await;
    lab.vcenter.restart(Outage { lasts: mins(15), refuses: true });
    sleep(mins(16)).await;
    let disabled = || {
        let workers = lab.cds.workers();
        workers.iter().filter(|worker| worker.status == WorkerStatus::Disabled).count()
    };
    assert_eq!((disabled(), lab.cds.calls("POST /worker/*/disable")), (0, 0));
    lab.wait_for_all(&v1, JobStatus::Success).await;
}

/// Rule 6: nothing is decided on a view that is not whole, and the reason says so.
#[tokio::test(start_paused = true)]
async fn while_cds_does_not_list_workers_jobs_wait_and_know_why() {
    let lab = Lab::new().await;
    lab.cds.inject(Fault::on("GET /v2/worker").answer(500, 0));
    sleep(mins(2)).await;
    let job = lab.job();
    wait_until("it knows why", mins(2), || lab.bound_by(&job) == Some("views")).await;
    assert_eq!(lab.cds.job(&job).unwrap().holders(), Vec::<&str>::new());
    lab.cds.clear_faults();
    lab.wait_for(&job, JobStatus::Success).await;
}

/// The API is away for minutes, in the middle of everything.
#[tokio::test(start_paused = true)]
async fn a_cds_api_that_is_away_is_waited_for() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    let jobs = lab.jobs(3);
    sleep(secs(30)).await;
    lab.cds.go_down();
    sleep(mins(3)).await;
    lab.cds.come_back();
    let later = lab.jobs(2);
    lab.wait_for_all(&later, JobStatus::Success).await;
    for job in &jobs {
        wait_until("it has ended", mins(90), || lab.status(job).is_final()).await;
    }
    lab.wait_until_clean(1).await;
}

/// 1.3, 1.6: sessions end after an hour; a deleted service signs in again instead of dying.
#[tokio::test(start_paused = true)]
async fn sessions_that_cds_forgets_are_renewed() {
    let lab = Lab::new().await;
    for spoil in 0..3 {
        match spoil {
            0 => lab.cds.forget_sessions(),
            1 => lab.cds.delete_service("hv1"),
            _ => sleep(mins(130)).await,
        }
        let (v1, v2) = (lab.v1_job(V1Demand::new().model(DEBIAN)), lab.job());
        lab.wait_for_all(&[v1, v2], JobStatus::Success).await;
    }
    assert!(lab.hatchery().stopped().borrow().is_none());
}

/// W11, W12: any close code, and the filter is sent again; jobs are heard of at once and not at the next poll.
#[tokio::test(start_paused = true)]
async fn a_websocket_that_closes_is_opened_again_and_hears_of_jobs() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 2)).await;
    lab.wait_for_spares(2).await;
    for code in [1000, 1001, 1006, 1011] {
        lab.cds.close_websockets(code);
        sleep(secs(5)).await;
        assert_eq!(lab.cds.open_websockets(), 2, "after {code}");
        for job in [lab.v1_job(V1Demand::new().model(DEBIAN)), lab.job()] {
            let queued = Instant::now();
            wait_until("it is taken", secs(10), || {
                !lab.cds.job(&job).unwrap().holders().is_empty()
            })
            .await;
            assert!(queued.elapsed() < secs(3), "{:?} after {code}", queued.elapsed());
            lab.wait_for(&job, JobStatus::Success).await;
        }
    }
}

/// 2.1: the poll is there for what the websocket does not bring.
#[tokio::test(start_paused = true)]
async fn jobs_that_no_event_told_of_are_polled_and_those_told_twice_are_one() {
    let lab = Lab::new().await;
    lab.cds.inject_event(EventFault::lose());
    let unheard = lab.jobs(2);
    lab.wait_for_all(&unheard, JobStatus::Success).await;
    lab.cds.clear_faults();
    lab.cds.inject_event(EventFault::duplicate(5, secs(3)));
    let heard_often = lab.jobs(2);
    lab.wait_for_all(&heard_often, JobStatus::Success).await;
    assert_eq!(lab.guests.launches().len(), 4);
    for job in heard_often {
        assert_eq!(lab.cds.job(&job).unwrap().holders(), ["hv1"]);
    }
}

/// W5: an id whose job could not be read was ignored until the next restart.
#[tokio::test(start_paused = true)]
async fn a_job_that_could_not_be_read_is_asked_about_again() {
    let lab = Lab::new().await;
    lab.cds.inject(Fault::on("GET /v2/queue/*/job/*").first(9).answer(500, 0));
    lab.cds.inject(Fault::on("GET /queue/workflows/*/infos").first(9).cut());
    let jobs = [lab.job(), lab.v1_job(V1Demand::new().model(DEBIAN))];
    lab.wait_for_all(&jobs, JobStatus::Success).await;
}

/// A job that is gone when it is looked at leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_job_that_vanishes_is_dropped() {
    let lab = Lab::new().await;
    lab.cds.inject(Fault::on("GET /v2/queue/*/job/*").nth(1).vanish());
    lab.job();
    sleep(mins(2)).await;
    assert!(lab.own_vms().is_empty());
    lab.cds.inject(Fault::on("POST /v2/queue/*/job/*/hatchery/take").nth(1).vanish());
    lab.job();
    sleep(mins(5)).await;
    lab.wait_until_clean(0).await;
    assert_eq!(lab.hatchery().view().overview.capacity.workers.reserved, 0);
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
}

/// W21, D38: a task that never ends held up CDS's provisioning for ever.
#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_is_given_up_at_its_deadline() {
    let lab = Lab::of(Setup::new("hv1").pool("ubuntu24", 1)).await;
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", Action::HangTask).object("debian12").once());
    let job = lab.job();
    sleep(secs(5)).await;
    lab.vcenter.faults().clear();
    lab.wait_for_spares(1).await;
    let given_up = || {
        let of_job = Query::of(HATCHERY.about_request(job.to_string()));
        let failed = Query { verdict: Some(Decided::Failed), ..of_job };
        lab.hatchery().journal().find(&failed).first().map(|failed| failed.reason.to_string())
    };
    wait_until("it is given up", mins(11), || given_up().is_some()).await;
    let why = given_up().unwrap();
    assert!(why.contains("cloning took longer than 600s"), "{why}");
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().holders().len(), 2);
}

/// The same for a call that is never answered.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_answered_is_given_up() {
    for method in ["CloneVM_Task", "ReconfigVM_Task", "PowerOnVM_Task", "StartProgramInGuest"] {
        let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
        lab.wait_for_spares(1).await;
        lab.vcenter.faults().add(Rule::new(method, Action::Hang).once());
        let job = lab.job();
        lab.wait_for(&job, JobStatus::Success).await;
        lab.wait_until_clean(1).await;
        assert_eq!(lab.guests.launches_of(&job).len(), 1, "{method}");
    }
}

/// W23: CDS's hatchery asks without a pause while a guest boots or has the wrong address.
#[tokio::test(start_paused = true)]
async fn a_guest_that_takes_its_time_is_waited_for_without_asking() {
    let lab = Lab::new().await;
    let mute = GuestBehaviour { becomes_ready: false, ..GuestBehaviour::default() };
    lab.vcenter.set_guest_behaviour("debian12", mute).unwrap();
    let job = lab.job();
    wait_until("its VM is on", mins(2), || lab.vm_of(&job).is_some_and(|vm| vm.power == Power::On))
        .await;
    sleep(secs(10)).await;
    let before = lab.vcenter.counters();
    sleep(mins(2)).await;
    let asked = lab.vcenter.counters().total_calls() - before.total_calls();
    assert!(asked <= 15, "{asked} calls in two minutes of waiting");
}

/// W24: the clean-up of a start that failed has a budget of its own.
#[tokio::test(start_paused = true)]
async fn a_start_that_took_all_of_its_time_is_still_cleaned_up() {
    let lab = Lab::new().await;
    // Clone, boot and tools together are longer than the ten minutes that CDS gives to all of it.
    let delay = Rule::new("CloneVM_Task", Action::DelayTask(mins(9))).once();
    lab.vcenter.faults().add(delay);
    let mute = GuestBehaviour { becomes_ready: false, ..GuestBehaviour::default() };
    lab.vcenter.set_guest_behaviour("debian12", mute).unwrap();
    let job = lab.v1_job(V1Demand::new().model(DEBIAN));
    wait_until("the VM is there", mins(12), || lab.vm_of(&job).is_some()).await;
    lab.vcenter.set_guest_behaviour("debian12", GuestBehaviour::default()).unwrap();
    let first = lab.vm_of(&job).unwrap();
    wait_until("it is marked or gone", mins(6), || match lab.vm_named(&first.name) {
        None => true,
        Some(vm) => Note::of(&vm).unwrap().to_delete,
    })
    .await;
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
}

/// A host that the vCenter cannot reach takes its VMs out of sight, not out of the world.
#[tokio::test(start_paused = true)]
async fn vms_on_a_host_that_does_not_answer_are_kept() {
    use roost_vcenter_sim::HostConnection;
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(30)));
    lab.wait_for(&job, JobStatus::Building).await;
    let vm = lab.vm_of(&job).unwrap();
    let host = lab.vcenter.vm(&vm.name).unwrap().host;
    lab.vcenter.set_host_connection(&host, HostConnection::NotResponding).unwrap();
    sleep(mins(15)).await;
    assert!(lab.vm_named(&vm.name).is_some());
    lab.vcenter.set_host_connection(&host, HostConnection::Connected).unwrap();
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(1).await;
}

/// Late and lost answers to changes, one after the other: each is found out about and none is done twice.
#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_or_late_double_nothing() {
    let changes = ["CloneVM_Task", "ReconfigVM_Task", "PowerOnVM_Task", "StartProgramInGuest"];
    for action in [Action::CutAfter, Action::LateAnswer(secs(100)), Action::Delay(secs(20))] {
        let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
        lab.wait_for_spares(1).await;
        for method in changes {
            let rule = Rule::new(method, action.clone()).when(When::EveryNth(2)).times(2);
            lab.vcenter.faults().add(rule);
        }
        let jobs = lab.jobs(3);
        lab.wait_for_all(&jobs, JobStatus::Success).await;
        for job in &jobs {
            assert_eq!(lab.cds.job(job).unwrap().executions().len(), 1, "{action:?}");
        }
        lab.vcenter.faults().clear();
        lab.wait_until_clean(1).await;
    }
}

/// A clock that was set back froze the list of workers until it had caught up, silently.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_holds_up_nothing_and_is_said() {
    let (log, _guard) = Log::capture();
    let lab = Lab::new().await;
    // Set right afterwards, because a clock that is late makes tokens that have expired.
    lab.machine_clock.set_ahead(mins(60));
    sleep(mins(5)).await;
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    lab.machine_clock.set_back(mins(60));
    let before = lab.cds.calls("GET /v2/worker");
    sleep(mins(5)).await;
    let read = lab.cds.calls("GET /v2/worker") - before;
    assert!(read >= 10, "the workers were read {read} times in five minutes");
    let (first, later) = (lab.job(), lab.v2_job(V2Demand::new(DEBIAN).takes(mins(30))));
    lab.wait_for(&first, JobStatus::Success).await;
    let done = lab.vm_of(&first).map(|vm| vm.name);
    wait_until("the VM of the job that is done is gone", mins(10), || {
        done.as_ref().is_none_or(|name| lab.vm_named(name).is_none())
    })
    .await;
    // Off under its job: nobody but the guard decides that it goes.
    lab.wait_for(&later, JobStatus::Building).await;
    let vm = lab.vm_of(&later).unwrap();
    lab.vcenter.set_power(&vm.name, Power::Off).unwrap();
    wait_until("the VM that went off is gone", mins(10), || lab.vm_named(&vm.name).is_none()).await;
    assert!(log.text().contains("jumped back by 3600 s"), "{}", log.text());
}
