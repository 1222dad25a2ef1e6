//! A hatchery to which everything has happened, so that every metric has a value.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::registry::Registry;
use roost_cds::{WorkerStatus, v1};
use roost_fleet::{
    AddressCounts, AddressPlan, Amounts, Decided, Ended, LedgerUse, Limit, Limits, PhaseHook as _,
    Power,
};
use roost_hatchery::annotation::Annotation;
use roost_hatchery::config::{SpareKind, SpareModel};
use roost_hatchery::door::{WORKERS, phase};
use roost_hatchery::metrics::{
    Counted, Cycle, CycleFacts, Levels, Links, Metrics, PoolReading, Start, VmRow, exposition,
};
use roost_hatchery::pool::{Listed, Pool, StartedVm, Views};
use roost_hatchery::spares::PoolStanding;
use roost_vim::{CallClass, CallRecord, Hooks as _, LoginOutcome, Outcome};

pub(crate) struct Everything {
    registry: Registry,
    metrics: Metrics,
    /// How often everything has happened.
    times: AtomicUsize,
}

impl Everything {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, "h1");
        metrics.replace(cycle());
        metrics.own.deletion_is_frozen(true);
        let everything = Self { registry, metrics, times: AtomicUsize::new(0) };
        everything.happens();
        everything
    }

    /// Each event once more.
    pub(crate) fn happens(&self) {
        let Metrics { counters, own, http, .. } = &self.metrics;
        own.other_process(true);
        own.deletion_backlog(50 + self.times.fetch_add(1, Ordering::Relaxed));
        for counted in Counted::ALL {
            counters.count(counted);
        }
        for phase in phase::ALL {
            for ended in Ended::ALL {
                own.ended(phase, ended, Duration::from_secs(7));
            }
        }
        own.job_waited(Start::Warm, Duration::from_secs(4));
        own.job_waited(Start::Cold, Duration::from_secs(70));
        for verdict in Decided::ALL {
            own.decided(verdict, "cpus");
        }
        own.deleted("finished");
        own.called_cds("GET /worker", "done");
        for outcome in [Outcome::Done, Outcome::Fault] {
            own.call_finished(&CallRecord {
                method: "PowerOnVM_Task",
                class: CallClass::Submit,
                took: Duration::from_millis(20),
                bytes_sent: 900,
                bytes_received: 700,
                outcome,
            });
        }
        own.fault("PowerOnVM_Task", "InvalidPowerState");
        own.login(LoginOutcome::LoggedIn);
        own.stream_resynced();
        own.task_restarted("mainRoutine");
        own.log_line_dropped();
        http.answered("/mon/status", 0, 900, Duration::from_millis(3));
    }

    /// The text of `/mon/metrics`.
    pub(crate) fn text(&self) -> String {
        exposition(&self.registry).unwrap()
    }
}

/// A worker, a ready spare, a spare too few, and everything a little too full.
fn cycle() -> Cycle {
    let ours = |worker_model_path: &str, ip_address: &str| Annotation {
        hatchery_name: "h1".into(),
        worker_model_path: worker_model_path.into(),
        ip_address: ip_address.into(),
        ..Annotation::default()
    };
    let (worker, spare) = (ours("shared.infra/debian12", "10.0.0.1"), ours("", "10.0.0.2"));
    let guest: [IpAddr; 1] = ["10.0.0.1".parse().unwrap()];
    let row = |name, annotation, power| VmRow {
        name,
        annotation: Some(annotation),
        is_template: false,
        power,
        cpus: 2,
        memory_mb: 4096,
        disk_gb: Some(20),
        addresses: &guest,
    };
    let workers = [v1::Worker {
        name: "keen-bohr".into(),
        status: WorkerStatus::Building,
        ..v1::Worker::default()
    }];
    let started = vec![StartedVm { name: "keen-bohr", is_leaving: false }];
    let views =
        Views { vms: Listed::Whole(started), v1: Listed::Whole(&workers), v2: Listed::NotSpoken };
    let debian = SpareModel::V2("debian12".into());
    let spares = [PoolStanding {
        kind: SpareKind { model: debian.clone(), flavor: Some("large".into()) },
        wanted: 5,
        ready: 2,
        coming: 1,
        waiting: None,
    }];
    let by_vms = Amounts { cpus: 2, memory_mb: 4096, ..Amounts::default() }.count(WORKERS, 1);
    let levels = Levels {
        links: Links { vcenter: true, inventory: false, cds_v1: Some(true), cds_v2: Some(false) },
        taken: LedgerUse {
            by_vms: by_vms.clone(),
            promised: by_vms,
            reservations: 1,
            addresses: AddressCounts { total: 6, used: 4, promised: 1, resting: 1, free: 0 },
        },
        limits: Limits { cpus: Limit::At(64), ..Limits::default() }.quota(WORKERS, Limit::At(10)),
        failing: vec![(debian, 3)],
    };
    let facts = CycleFacts {
        hatchery: "h1",
        plan: &AddressPlan::of_range("10.0.0.0/29".parse().unwrap()).unwrap(),
        pool: Some(&Pool::join(&views).unwrap()),
        resource_pool: Some(PoolReading {
            cpu_max_mhz: Some(48_000),
            cpu_usage_mhz: Some(47_000),
            cpu_unreserved_mhz: Some(36_000),
            memory_max_bytes: Some(1 << 37),
            memory_usage_bytes: Some(1 << 35),
            memory_unreserved_bytes: Some(1 << 34),
        }),
        spares_in_flight: 1,
        spares: &spares,
        oldest_waiting_secs: Some(1_200),
        waiting_jobs: 3,
        refused_jobs: 1,
        levels: &levels,
    };
    let rows = [
        row("keen-bohr", &worker, Power::On),
        row("provision-v2-ip-10-0-0-2-a", &spare, Power::Off),
    ];
    Cycle::collect(rows, facts)
}
