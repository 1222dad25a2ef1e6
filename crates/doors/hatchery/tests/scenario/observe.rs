//! What a hatchery shows of itself: `/mon/*`, gauges, heartbeats, views.

use std::collections::BTreeMap;

use roost_cds::{JobStatus, Level, MonitoringStatus};
use roost_cds_sim::{Fault, V2Demand};
use roost_fleet::{Decided, Phase};
use roost_hatchery::door::phase;
use roost_hatchery::planted::{Bug, plant};
use roost_hatchery::run::view::{Check, JobState, Stage, VmKind};
use roost_hatchery::run::{News, Stopped};
use roost_vcenter_sim::{Action, Outage, Power, Rule, VmGlance, When};
use tokio::time::{sleep, timeout};

use crate::lab::{
    CrashAt, DEBIAN, Lab, Service, Setup, Start, World, WorldOptions, mins, secs, wait_until,
};

fn lines(status: &MonitoringStatus) -> BTreeMap<String, (Level, String)> {
    let lines = status.lines.iter().flatten();
    lines.map(|line| (line.component.clone(), (line.status, line.value.clone()))).collect()
}

/// As the hatchery itself sees it.
async fn wait_full(lab: &Lab) {
    let window = lab.hatchery().window();
    let is_full = || window.pools().iter().all(|pool| pool.ready == pool.wanted);
    wait_until("the pools are full", mins(30), is_full).await;
}

fn gauge(metrics: &str, name: &str) -> Option<u64> {
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{")))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn at_rest_the_status_is_all_well_and_says_what_cds_operators_know() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    wait_full(&lab).await;
    sleep(mins(1)).await;
    let status = lab.hatchery().status();
    assert_eq!(status.level(), Level::Ok, "{status:#?}");
    let lines = lines(&status);
    let value = |component: &str| lines[component].1.as_str();
    assert_eq!((value("Workers"), value("Pools")), ("0/10", "full"));
    // Two templates, three strangers, one spare.
    assert_eq!(value("VirtualMachines"), "6");
    for task in [
        "V2QueuePolling",
        "queuePolling",
        "mainRoutine",
        "hatchery-vsphere-provisioning",
        "hatchery-vsphere-kill-awol-servers",
        "hatchery-vsphere-kill-disable-workers",
        "hatchery-vsphere-metrics",
        "registration",
    ] {
        assert_eq!(value(&format!("goroutine/{task}")), "Running");
    }
    assert!(!lines.contains_key("goroutine/opening"), "it came to its end");
    assert_eq!((value("Queue/V1"), value("Queue/V2")), ("pushed and polled", "pushed and polled"));
}

#[tokio::test(start_paused = true)]
async fn a_vcenter_that_is_away_is_an_alert_and_never_a_zero() {
    let lab = Lab::new().await;
    lab.vcenter.restart(Outage { lasts: mins(20), refuses: true });
    sleep(mins(5)).await;
    let status = lab.hatchery().status();
    assert_eq!(status.level(), Level::Alert);
    let seen = lines(&status);
    assert_eq!(seen["VirtualMachines"], (Level::Alert, "Error listing".to_owned()));
    assert_eq!(seen["Workers"].1, "?/10");
    assert_eq!(seen["vCenter"].0, Level::Warn);
    let window = lab.hatchery().window();
    assert!(window.readiness().iter().any(|check| check.name == "inventory" && !check.ok));
    assert!(window.liveness().iter().all(|check| check.ok), "a restart would not help");
    sleep(mins(20)).await;
    assert_eq!(lab.hatchery().status().level(), Level::Ok);
    assert!(window.readiness().iter().all(|check| check.ok));
}

/// `/livez` and the watchdog ask for this: a loop that neither ends nor goes on is as bad as one that is gone.
#[tokio::test(start_paused = true)]
async fn a_loop_that_hangs_is_named_and_the_service_does_not_count_as_alive() {
    let lab = Lab::new().await;
    let window = lab.hatchery().window();
    sleep(mins(30)).await;
    assert!(window.liveness().iter().all(|check| check.ok), "{:?}", window.liveness());
    plant(Some(Bug::CleanupHangs));
    sleep(mins(30)).await;
    plant(None);
    let dead: Vec<_> = window.liveness().into_iter().filter(|check| !check.ok).collect();
    let [check] = dead.as_slice() else { panic!("{dead:?}") };
    assert_eq!(check.name, "hatchery-vsphere-kill-awol-servers");
    assert!(check.words.starts_with("hangs: no progress for "), "{}", check.words);
    let status = lab.hatchery().status();
    assert_eq!(status.level(), Level::Alert);
    let (level, words) = &lines(&status)["goroutine/hatchery-vsphere-kill-awol-servers"];
    assert_eq!((*level, words.as_str()), (Level::Alert, check.words.as_str()));
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_panicked_is_not_alive_until_it_runs_again() {
    let lab = Lab::new().await;
    let window = lab.hatchery().window();
    let cleanup = || {
        let checks = window.liveness();
        let of = |check: &Check| check.name == "hatchery-vsphere-kill-awol-servers";
        checks.into_iter().find(of).unwrap()
    };
    assert_eq!((cleanup().ok, cleanup().words), (true, "running".to_owned()));
    plant(Some(Bug::CleanupPanics));
    wait_until("it is in the pause after a panic", mins(5), || !cleanup().ok).await;
    assert!(cleanup().words.starts_with("not running"), "{}", cleanup().words);
    plant(None);
    wait_until("it was begun anew", mins(5), || cleanup().ok).await;
    assert!(cleanup().words.starts_with("running, restarted "), "{}", cleanup().words);
}

/// Every loop waits at its own deadlines: nothing that others do makes it look as if it hung.
#[tokio::test(start_paused = true)]
async fn servers_that_do_not_answer_are_not_a_loop_that_hangs() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    let window = lab.hatchery().window();
    let alive = |when: &str| {
        let dead: Vec<_> = window.liveness().into_iter().filter(|check| !check.ok).collect();
        assert!(dead.is_empty(), "{when}: {dead:?}");
    };
    lab.cds.inject(Fault::on("GET /worker").delay(mins(10)));
    lab.cds.inject(Fault::on("GET /v2/hatchery").delay(mins(10)));
    for _ in 0..20 {
        sleep(mins(1)).await;
        alive("CDS does not answer");
    }
    lab.cds.clear_faults();
    lab.vcenter.restart(Outage { lasts: mins(40), refuses: false });
    for _ in 0..60 {
        sleep(mins(1)).await;
        alive("the vCenter does not answer");
    }
}

#[tokio::test(start_paused = true)]
async fn both_hearts_beat_every_half_minute() {
    let lab = Lab::new().await;
    let beats = || {
        (lab.cds.calls("POST /services/heartbeat"), lab.cds.calls("POST /v2/hatchery/heartbeat"))
    };
    let (v1, v2) = beats();
    sleep(mins(5)).await;
    // Each takes a moment, after which the half minute begins.
    for beats in [beats().0 - v1, beats().1 - v2] {
        assert!((9..=10).contains(&beats), "{beats}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_v1_heart_that_cds_does_not_hear_ends_the_service_and_a_v2_heart_does_not() {
    let lab = Lab::new().await;
    let mut stopped = lab.hatchery().stopped();
    lab.cds.inject(Fault::on("POST /v2/hatchery/heartbeat").answer(500, 1));
    sleep(mins(20)).await;
    assert!(stopped.borrow().is_none());
    assert!(lines(&lab.hatchery().status()).contains_key("Heartbeat/V2"));
    lab.cds.inject(Fault::on("POST /services/heartbeat").answer(500, 1));
    let ended = timeout(mins(10), stopped.wait_for(Option::is_some)).await;
    assert!(matches!(*ended.unwrap().unwrap(), Some(Stopped::Heartbeat(_))));
}

/// Whatever the datacenter holds: each minute of an hour, and the hour as a whole.
#[tokio::test(start_paused = true)]
async fn at_rest_the_vcenter_is_asked_at_most_four_times_a_minute() {
    let mut hours = Vec::new();
    for strangers in [10, 2_000, 10_000] {
        // Nobody looks on: that takes longer than the hour itself among so many.
        let world = World::start(WorldOptions { strangers, ..WorldOptions::default() });
        let mut service = Service::new(Setup::new("hv1").pool("debian12", 2));
        service.open(&world).await;
        let is_ready = |vm: &VmGlance| vm.power == Power::Off && vm.has_run;
        wait_until("the pool is full", mins(30), || {
            world.vms_of("hv1").iter().filter(|vm| is_ready(vm)).count() == 2
        })
        .await;
        sleep(mins(5)).await;
        let began = world.vcenter.counters();
        let mut before = began.total_calls();
        for minute in 0..60 {
            sleep(mins(1)).await;
            let after = world.vcenter.counters().total_calls();
            assert!(after - before <= 4, "{} calls in minute {minute}", after - before);
            before = after;
        }
        let calls = service.hatchery().view().overview.link.calls;
        assert!(calls.last_minute <= 4 && calls.logins == 1, "{calls:?}");
        hours.push(before - began.total_calls());
    }
    assert!(hours.iter().all(|calls| *calls <= 150), "2.5 a minute: {hours:?}");
    assert!(hours.iter().max().unwrap() - hours.iter().min().unwrap() <= 2, "{hours:?}");
}

#[tokio::test(start_paused = true)]
async fn gauges_show_workers_spares_addresses_and_the_resource_pool() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    wait_full(&lab).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).flavor("large").takes(mins(10)));
    lab.wait_for(&job, JobStatus::Building).await;
    wait_full(&lab).await;
    sleep(mins(1)).await;
    let metrics = lab.service.metrics();
    let gauge = |name: &str| gauge(&metrics, &format!("cds_hatchery_{name}"));
    assert_eq!(gauge("vsphere_vm_count"), Some(2));
    assert_eq!(gauge("vsphere_worker_vm_count"), Some(1));
    assert_eq!(gauge("vsphere_provision_ready_count"), Some(1));
    assert_eq!(gauge("vsphere_allocated_vcpus"), Some(8 + 2));
    assert!(gauge("vsphere_allocated_disk_gb").is_some_and(|gb| gb > 0), "{metrics}");
    assert_eq!(gauge("vsphere_ip_total_count"), Some(61));
    assert_eq!(
        (gauge("vsphere_ip_used_count"), gauge("vsphere_ip_active_count")),
        (Some(2), Some(1))
    );
    assert!(gauge("vsphere_resource_pool_cpu_usage_mhz").is_some());
    assert!(gauge("vsphere_resource_pool_memory_max_bytes").is_some_and(|bytes| bytes > 0));
    assert_eq!((gauge("building_workers"), gauge("pending_workers")), (Some(1), Some(0)));
    let worker = lab.vm_of(&job).unwrap().name;
    let is_row = |line: &str| {
        line.starts_with("cds_hatchery_vsphere_worker_disk_gb{")
            && line.contains(&format!("worker_name=\"{worker}\",worker_model=\"debian12\""))
    };
    assert!(metrics.lines().any(is_row), "{metrics}");
}

/// W31.
#[tokio::test(start_paused = true)]
async fn looking_at_the_workers_shows_both_sides_and_disables_nobody() {
    let lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(30)));
    wait_until("its VM is there", mins(10), || lab.vm_of(&job).is_some()).await;
    let worker = lab.vm_of(&job).unwrap().name.to_string();
    let window = lab.hatchery().window();
    let seen = |field: &str| {
        let workers = window.workers();
        let all = workers.as_array().unwrap();
        assert_eq!(all.len(), 1, "{workers}");
        assert_eq!(all[0]["name"], worker.as_str());
        all[0][field].as_str().map(str::to_owned)
    };
    assert_eq!((seen("status").as_deref(), seen("id")), (Some("Pending"), None));
    lab.wait_for(&job, JobStatus::Building).await;
    sleep(secs(30)).await;
    assert_eq!(seen("status").as_deref(), Some("Building"));
    // A VM that somebody deletes: the list says what CDS says, and leaves setting it right to those who do.
    lab.vcenter.kill_vm(&worker).unwrap();
    sleep(secs(5)).await;
    for _ in 0..10 {
        assert_eq!(seen("status").as_deref(), Some("Building"));
    }
    assert_eq!(lab.cds.calls("POST /worker/*/disable"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_is_seen_from_its_queue_to_its_end_and_explained_afterwards() {
    let lab = Lab::of(Setup::new("hv1").max_workers(1)).await;
    let window = lab.hatchery().window();
    let state = |job: &roost_cds::JobId| {
        window.jobs().into_iter().find(|seen| seen.id == *job).map(|seen| seen.state)
    };
    let first = lab.v2_job(V2Demand::new(DEBIAN).flavor("small").takes(mins(5)));
    wait_until("it starts", mins(1), || state(&first) == Some(JobState::Starting)).await;
    let second = lab.job();
    wait_until("it waits", mins(1), || state(&second) == Some(JobState::Waiting)).await;
    sleep(secs(30)).await;
    let view = window.view();
    assert_eq!((view.overview.queue.waiting, view.overview.capacity.workers.used), (1, 1));
    assert_eq!(view.overview.what_binds.unwrap().bound_by, Some("workers"));
    let lane: Vec<Stage> = view.overview.lanes.iter().map(|lane| lane.stage).collect();
    assert!(matches!(lane[..], [Stage::In(_)]), "{lane:?}");

    wait_until("it runs", mins(10), || state(&first) == Some(JobState::Running)).await;
    // Until whoever watched over its start has seen that too.
    sleep(secs(30)).await;
    let explained = window.explain(&first.to_string()).unwrap();
    let vm = explained.vm.unwrap();
    assert_eq!((vm.vm.kind, vm.vm.stage), (VmKind::Worker, Some(Stage::In(phase::WORKING))));
    assert_eq!((vm.vm.flavor.as_deref(), vm.vm.cpus), (Some("small"), 2));
    assert!(vm.vm.fate.starts_with("stays until"), "{}", vm.vm.fate);
    assert!(vm.timeline.iter().any(|step| step.phase == Phase::CLONING && step.took_ms.is_some()));
    assert!(vm.annotation.contains(&first.to_string()));
    assert_eq!(explained.decisions.last().unwrap().verdict, Decided::Spawned);
    assert!(explained.job.waited_secs.is_some_and(|secs| secs < 300));

    lab.wait_for(&second, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
    assert_eq!((state(&first), state(&second)), (Some(JobState::Ended), Some(JobState::Ended)));
    let over = window.explain(&first.to_string()).unwrap();
    assert!(over.vm.is_none() && !over.decisions.is_empty());
    let worker = over.job.worker.unwrap();
    let gone = window.vm_named(&worker).unwrap();
    assert_eq!(
        window.vm_name(&gone).as_deref(),
        Some(&*worker),
        "people ask by name, also afterwards"
    );
    assert!(window.explain("0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4").is_none());
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_vms_say_which_jobs_run() {
    let mut lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(30)));
    lab.wait_for(&job, JobStatus::Building).await;
    sleep(secs(10)).await;
    lab.restart().await;
    let seen = lab.hatchery().view().jobs;
    let states: Vec<_> = seen.iter().map(|seen| (seen.id.clone(), seen.state)).collect();
    assert_eq!(states, [(job, JobState::Running)]);
}

#[tokio::test(start_paused = true)]
async fn pools_show_what_is_missing_and_why() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 2).pool("windows", 1)).await;
    let window = lab.hatchery().window();
    wait_until("one pool is full", mins(30), || window.pools()[0].ready == 2).await;
    let pools = window.pools();
    assert_eq!((pools[0].ready, pools[0].missing, &pools[0].waiting), (2, 0, &None));
    assert_eq!((pools[1].ready, pools[1].missing), (0, 1));
    assert_eq!(pools[1].waiting.as_deref(), Some("there is no such template"));
    let status = lines(&lab.hatchery().status());
    let wanted = "below target: windows 0/1, there is no such template";
    assert_eq!(status["Pools"], (Level::Warn, wanted.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn changes_tell_of_decisions_and_of_the_inventory() {
    let lab = Lab::new().await;
    let mut changes = lab.hatchery().changes();
    let job = lab.job();
    let (mut spawned, mut changed) = (false, false);
    while !(spawned && changed) {
        let news = timeout(mins(10), changes.next()).await.expect("there is news");
        match news.expect("the hatchery lives") {
            News::Changed => changed = true,
            News::Decided(decision) => {
                let is_it = decision.subject.to_string() == format!("hatchery request {job}");
                spawned |= is_it && decision.verdict == Decided::Spawned;
            }
        }
    }
}

/// Otherwise the oldest waiting job would grow older for ever, and with it every alert on it.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_refused_as_it_is_does_not_count_as_waiting() {
    let lab = Lab::of(Setup::new("hv1")).await;
    lab.v2_job(V2Demand::new(DEBIAN).flavor("gigantic"));
    let queue = || lab.hatchery().view().overview.queue;
    wait_until("it is refused", mins(1), || queue().refused == 1).await;
    sleep(mins(2)).await;
    assert_eq!((queue().waiting, queue().oldest_waiting_secs, queue().refused), (0, None, 1));
    let metrics = lab.service.metrics();
    assert_eq!(gauge(&metrics, "roost_hatchery_waiting_jobs"), Some(0));
    assert_eq!(gauge(&metrics, "roost_hatchery_refused_jobs"), Some(1));
}

/// D39, D40, 6.5 and 7.7: names and labels as dashboards of CDS have them.
#[tokio::test(start_paused = true)]
async fn every_metric_of_cds_is_there_with_its_labels() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    wait_full(&lab).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(10)));
    lab.wait_for(&job, JobStatus::Building).await;
    sleep(mins(2)).await;
    let metrics = lab.service.metrics();
    let labels = r#"{service_name="hv1",service_type="hatchery"}"#;
    let vsphere = [
        "allocated_vcpus",
        "allocated_memory_mb",
        "allocated_disk_gb",
        "vm_count",
        "worker_vm_count",
        "provisioned_vm_count",
        "provision_ready_count",
        "provision_starting_count",
        "provision_dying_count",
        "provision_inflight_count",
        "template_vcpus",
        "template_memory_mb",
        "template_count",
        "pool_total_vcpus",
        "pool_total_memory_mb",
        "pool_total_vm_count",
        "resource_pool_cpu_max_mhz",
        "resource_pool_cpu_usage_mhz",
        "resource_pool_cpu_unreserved_mhz",
        "resource_pool_memory_max_bytes",
        "resource_pool_memory_usage_bytes",
        "resource_pool_memory_unreserved_bytes",
        "ip_used_count",
        "ip_active_count",
        "ip_reserved_count",
        "ip_total_count",
    ]
    .map(|name| format!("vsphere_{name}"));
    let framework = [
        "jobs_count",
        "jobs_websocket_count",
        "jobs_processed_count",
        "spawned_worker_count",
        "spawning_worker_count",
        "spawning_worker_errors_count",
        "chan_v1_job_add_count",
        "chan_v2_job_add_count",
        "chan_worker_starter_job_pop",
        "job_received_in_queue_polling_ws_v1_count",
        "job_received_in_queue_polling_ws_v2_count",
        "pending_workers",
        "registering_workers",
        "waiting_workers",
        "checking_workers",
        "building_workers",
        "disabled_workers",
    ]
    .map(str::to_owned);
    for name in vsphere.iter().chain(&framework) {
        let series = format!("cds_hatchery_{name}{labels} ");
        assert!(metrics.lines().any(|line| line.starts_with(&series)), "{series}\n{metrics}");
    }
    let worker = lab.vm_of(&job).unwrap().name;
    for name in ["worker_vcpus", "worker_memory_mb", "worker_disk_gb"] {
        let series = format!("cds_hatchery_vsphere_{name}{{");
        let row = metrics.lines().find(|line| line.starts_with(&series) && line.contains(&*worker));
        let row = row.unwrap_or_else(|| panic!("{name} of {worker}\n{metrics}"));
        for label in [
            "service_name=\"hv1\"",
            "service_type=\"hatchery\"",
            &format!("worker_name=\"{worker}\""),
            "worker_model=\"debian12\"",
        ] {
            assert!(row.contains(label), "{label} in {row}");
        }
        assert_eq!(row.matches('=').count(), 4, "{row}");
    }
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(1).await;
    sleep(mins(1)).await;
    let metrics = lab.service.metrics();
    assert!(!metrics.contains(&*worker), "what is gone is gone with the next cycle: {metrics}");
}

/// What CDS shows of a hatchery that has just started, or runs at another version than its own: nothing to warn of.
#[tokio::test(start_paused = true)]
async fn cds_has_nothing_to_warn_of_from_the_first_heartbeat_on() {
    let mut options = WorldOptions::default();
    options.cds.version = "0.58.3".to_owned();
    let mut lab = Lab::closed(options, Setup::new("hv1"));
    lab.vcenter.faults().add(
        Rule::new("WaitForUpdatesEx", Action::Delay(secs(40))).when(When::Chance(1.0)).times(1),
    );
    let never = CrashAt { call: u64::MAX, arrives: true };
    assert!(matches!(lab.start_to_die(never).await, Start::Runs));
    let lines =
        || lab.cds.services().first().and_then(|service| service.monitoring_status.lines.clone());
    wait_until("it beats", mins(5), || lines().is_some_and(|lines| !lines.is_empty())).await;
    for _ in 0..20 {
        let seen = lines().unwrap_or_default();
        let bad: Vec<_> = seen.iter().filter(|line| line.status != Level::Ok).collect();
        assert!(bad.is_empty(), "{bad:?}");
        sleep(secs(10)).await;
    }
    let said = |component: &str| {
        let lines = lines().unwrap();
        lines.into_iter().find(|line| line.component == component).map(|line| line.value)
    };
    assert_eq!(said("Version").as_deref(), Some("0.58.3"), "its own");
    assert_eq!(said("Roost").as_deref(), Some("0.57.0"), "ours");
}

/// Both protocols, models, spares: at most 20 calls a minute when nothing happens.
#[tokio::test(start_paused = true)]
async fn at_rest_cds_is_asked_at_most_20_times_a_minute() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 2)).await;
    lab.wait_for_spares(2).await;
    sleep(mins(5)).await;
    let before = lab.cds.calls("**");
    sleep(mins(30)).await;
    let calls = lab.cds.calls("**") - before;
    assert!(calls <= 20 * 30, "{calls} calls in half an hour");
}
