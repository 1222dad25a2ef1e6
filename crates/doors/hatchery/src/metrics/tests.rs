use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use roost_cds::{WorkerStatus, v1};
use roost_fleet::{
    AddressCounts, AddressPlan, Amounts, Decided, Ended, LedgerUse, Limit, Limits, Phase,
    PhaseHook as _, Power,
};
use roost_vim::{Hooks as _, LoginOutcome};

use super::*;
use crate::annotation::Annotation;
use crate::config::{SpareKind, SpareModel};
use crate::door::{PENDING, WORKERS, phase};
use crate::pool::{Listed, Pool, StartedVm, Views};
use crate::spares::PoolStanding;

fn plan() -> AddressPlan {
    AddressPlan::of_range("10.0.0.0/29".parse().unwrap()).unwrap()
}

fn ours(worker_model_path: &str, ip_address: &str) -> Annotation {
    Annotation {
        hatchery_name: "h1".into(),
        worker_model_path: worker_model_path.into(),
        ip_address: ip_address.into(),
        ..Annotation::default()
    }
}

fn vm<'a>(name: &'a str, annotation: Option<&'a Annotation>, power: Power) -> VmRow<'a> {
    VmRow {
        name,
        annotation,
        is_template: false,
        power,
        cpus: 2,
        memory_mb: 4096,
        disk_gb: Some(20),
        addresses: &[],
    }
}

fn standing() -> PoolStanding {
    let kind = SpareKind { model: SpareModel::V2("debian12".into()), flavor: Some("large".into()) };
    PoolStanding { kind, wanted: 5, ready: 2, coming: 1, waiting: None }
}

fn levels() -> Levels {
    let by_vms = Amounts { cpus: 8, memory_mb: 16_384, ..Amounts::default() };
    let by_vms = by_vms.count(WORKERS, 1);
    let promised = Amounts { cpus: 2, memory_mb: 4096, ..Amounts::default() };
    let promised = promised.count(WORKERS, 1).count(PENDING, 1);
    let addresses = AddressCounts { total: 6, used: 4, promised: 1, resting: 1, free: 0 };
    Levels {
        links: Links { vcenter: true, inventory: false, cds_v1: None, cds_v2: Some(true) },
        taken: LedgerUse { by_vms, promised, reservations: 1, addresses },
        limits: Limits { cpus: Limit::At(64), ..Limits::default() }.quota(WORKERS, Limit::At(10)),
        failing: vec![(SpareModel::V2("debian12".into()), 3)],
    }
}

fn facts<'a>(
    plan: &'a AddressPlan,
    pool: Option<&'a Pool>,
    spares: &'a [PoolStanding],
    levels: &'a Levels,
) -> CycleFacts<'a> {
    CycleFacts {
        hatchery: "h1",
        plan,
        pool,
        resource_pool: None,
        spares_in_flight: 1,
        spares,
        oldest_waiting_secs: Some(42),
        waiting_jobs: 3,
        refused_jobs: 1,
        levels,
    }
}

fn small_fleet() -> Cycle {
    let (worker, spare, making) =
        (ours("shared.infra/debian12", "10.0.0.1"), ours("", "10.0.0.2"), ours("", ""));
    let mut dying = ours("", "10.0.0.3");
    dying.doom("no address");
    let mut model = ours("shared.infra/debian12", "10.0.0.4");
    model.model = true;
    let theirs = Annotation { hatchery_name: "h2".into(), ..ours("", "10.0.0.5") };
    let guest: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "192.168.1.1".parse().unwrap()];
    let workers = [v1::Worker {
        name: "keen-bohr".into(),
        status: WorkerStatus::Building,
        ..v1::Worker::default()
    }];
    let started = vec![StartedVm { name: "keen-bohr", is_leaving: false }];
    let views =
        Views { vms: Listed::Whole(started), v1: Listed::Whole(&workers), v2: Listed::NotSpoken };
    let pool = Pool::join(&views).unwrap();
    let (plan, spares, levels) = (plan(), [standing()], levels());
    let facts = CycleFacts {
        resource_pool: Some(PoolReading {
            cpu_max_mhz: Some(48_000),
            cpu_usage_mhz: Some(12_000),
            cpu_unreserved_mhz: Some(36_000),
            memory_max_bytes: Some(1 << 37),
            memory_usage_bytes: Some(1 << 35),
            memory_unreserved_bytes: Some(1 << 36),
        }),
        ..facts(&plan, Some(&pool), &spares, &levels)
    };
    Cycle::collect(
        [
            VmRow { addresses: &guest, ..vm("keen-bohr", Some(&worker), Power::On) },
            vm("provision-v2-ip-10-0-0-2-a", Some(&spare), Power::Off),
            vm("provision-v2-b", Some(&making), Power::On),
            vm("retired-v2-c", Some(&dying), Power::Off),
            VmRow { is_template: true, ..vm("debian12", Some(&model), Power::Off) },
            vm("other", Some(&theirs), Power::On),
            vm("by-hand", None, Power::On),
        ],
        facts,
    )
}

fn registered() -> (Registry, Metrics) {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, "h1");
    (registry, metrics)
}

#[test]
fn every_name_of_cds_is_exposed_as_cds_spells_it() {
    // One of each kind: the library keeps several in no order.
    let (registry, metrics) = registered();
    metrics.replace(small_fleet());
    metrics.counters.count(Counted::Jobs);
    metrics.counters.count(Counted::Jobs);
    metrics.own.ended(Phase::WAITING_FOR_ADDRESS, Ended::Done, Duration::from_secs(7));
    metrics.own.job_waited(Start::Warm, Duration::from_secs(4));
    metrics.own.decided(Decided::Refused, "unknown-flavor");
    metrics.own.deleted("finished");
    metrics.own.called_cds("GET /worker", "done");
    metrics.own.fault("PowerOnVM_Task", "InvalidPowerState");
    metrics.own.stream_resynced();
    metrics.own.task_restarted("mainRoutine");
    metrics.own.deletion_is_frozen(true);
    metrics.http.answered("/mon/status", 0, 900, Duration::from_millis(3));
    insta::assert_snapshot!(exposition(&registry).unwrap());
}

#[test]
fn a_phase_that_was_not_done_is_counted_and_not_timed() {
    let (registry, metrics) = registered();
    metrics.own.ended(Phase::BOOTING, Ended::Overdue, Duration::from_mins(3));
    metrics.own.login(LoginOutcome::Refused);
    let text = exposition(&registry).unwrap();
    assert!(text.contains(r#"phase="booting",ended="overdue"} 1"#), "{text}");
    assert!(text.contains(r#"server="vcenter",call="login",outcome="refused"} 1"#), "{text}");
    assert!(!text.contains("phase_seconds_bucket"), "{text}");
}

#[test]
fn reference_7_7_numbers_are_counted_as_cds_counts_them() {
    let text = {
        let (registry, metrics) = registered();
        metrics.replace(small_fleet());
        exposition(&registry).unwrap()
    };
    let value = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{")))
            .unwrap_or_else(|| panic!("{name} is missing"));
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let vsphere = |name: &str| value(&format!("cds_hatchery_vsphere_{name}"));
    assert_eq!(vsphere("vm_count"), 4, "worker and spares, no template, no strangers");
    assert_eq!(vsphere("allocated_vcpus"), 8, "powered-off spares included");
    assert_eq!((vsphere("provisioned_vm_count"), vsphere("worker_vm_count")), (3, 1));
    assert_eq!(vsphere("provision_ready_count"), 1);
    assert_eq!(vsphere("provision_starting_count"), 1);
    assert_eq!(vsphere("provision_dying_count"), 1, "also under its new name");
    assert_eq!((vsphere("template_count"), vsphere("pool_total_vm_count")), (1, 7));
    assert_eq!(vsphere("ip_total_count"), 6);
    assert_eq!(
        (vsphere("ip_used_count"), vsphere("ip_reserved_count")),
        (4, 4),
        "D39: templates hold none"
    );
    assert_eq!(vsphere("ip_active_count"), 1);
    assert_eq!(value("cds_hatchery_building_workers"), 1);
}

#[test]
fn w33_a_cycle_replaces_the_one_before_and_workers_that_are_gone_are_gone() {
    let (registry, metrics) = registered();
    metrics.replace(small_fleet());
    assert!(exposition(&registry).unwrap().contains("worker_name=\"keen-bohr\""));
    metrics.replace(Cycle::default());
    let text = exposition(&registry).unwrap();
    assert!(!text.contains("worker_name"), "{text}");
    assert!(!text.contains("vsphere_ip_"), "no range, no gauge");
    assert!(!text.contains("resource_pool"), "unreadable, so left out");
    assert!(!text.contains("pending_workers"), "not countable, so left out");
    assert!(!text.contains("hatchery_addresses"), "no range, no addresses");
    assert!(!text.contains("template_failures"), "none fails");
    assert!(text.contains(r#"link="vcenter"} 0"#), "nothing was heard yet: {text}");
}

#[test]
fn two_hundred_workers_among_ten_thousand_vms_stay_within_the_budget_of_series() {
    let (registry, metrics) = registered();
    let annotation = ours("shared.infra/debian12", "");
    let names: Vec<String> = (0..200).map(|number| format!("worker-{number}")).collect();
    let workers = names.iter().map(|name| vm(name, Some(&annotation), Power::On));
    let strangers = std::iter::repeat_n(vm("by-hand", None, Power::On), 9_800);
    let (plan, spares, levels) = (plan(), vec![standing(); 20], levels());
    let facts = facts(&plan, None, &spares, &levels);
    metrics.replace(Cycle::collect(workers.chain(strangers), facts));
    for phase in phase::ALL {
        metrics.own.ended(phase, Ended::Done, Duration::from_secs(1));
        metrics.own.ended(phase, Ended::Failed, Duration::from_secs(1));
    }
    for handler in
        ["/mon/status", "/mon/version", "/mon/workers", "/mon/metrics", "/mon/metrics/all"]
    {
        metrics.http.answered(handler, 0, 900, Duration::from_millis(3));
    }
    let text = exposition(&registry).unwrap();
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 1_250, "{series} series, and 2,000 are the budget for everything");
}

#[test]
fn the_list_of_metrics_has_the_names_of_cds() {
    let described = describe();
    let names: BTreeSet<_> = described.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names.len(), described.len());
    for name in [
        "cds/hatchery/jobs_count",
        "cds/hatchery/chan_worker_starter_job_pop",
        "cds/hatchery/pending_workers",
        "cds/hatchery/vsphere/worker_vcpus",
        "cds/hatchery/vsphere/ip_used_count",
    ] {
        assert!(names.contains(name), "{name}");
    }
    let worker = described.iter().find(|entry| entry.name.ends_with("worker_vcpus")).unwrap();
    assert_eq!(
        serde_json::to_string(worker).unwrap(),
        concat!(
            r#"{"name":"cds/hatchery/vsphere/worker_vcpus","description":"vCPUs of the VM","#,
            r#""tags":["service_name","service_type","worker_name","worker_model"],"dimension":"1","aggregagtion":"LastValue"}"#
        )
    );
}
