//! One pass over a long queue beside a large inventory.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::JobId;
use roost_cds::v2::VsphereSpec;
use roost_clock::{Clock as _, SimClock};
use roost_fleet::{
    AddressPlan, Amounts, Holding, Ledger, Limit, Mirror, PoolId, Power, Vm, VmId, Wrote,
};
use roost_hatchery::annotation::HatcheryVms;
use roost_hatchery::attempts::Attempts;
use roost_hatchery::cold::ColdStarts;
use roost_hatchery::door::{HATCHERY, PENDING, WORKERS};
use roost_hatchery::job::{Job, ModelRequest};
use roost_hatchery::model::{ModelAsCode, WorkerModel};
use roost_hatchery::plan::{Candidate, Choice, Facts, Turn, turn};
use tokio::time::Instant;

use crate::lab::Setup;
use crate::{ms, quantile};

const VMS: usize = 10_000;
const OWN: usize = 200;
const JOBS: usize = 1_000;
const REPEAT: usize = 21;

pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let clock = Arc::new(SimClock::new());
        let mirror = Mirror::new(vec![Arc::new(HatcheryVms)], clock.clone());
        let template = Wrote::new().name("debian12").template(true).cpus(2).memory_mb(4096);
        mirror.created(&VmId::new("vm-0"), template);
        for number in 1..VMS {
            let annotation = if number <= OWN {
                format!(r#"{{"hatchery_name":"hv1","job_id":"{number}","ip_address":"10.1.{}.{}"}}"#, number / 250, number % 250)
            } else {
                "web server, ask the platform team".to_owned()
            };
            let vm = Wrote::new().name(format!("vm-{number}")).annotation(annotation);
            let vm = vm.power(Power::On).cpus(2).memory_mb(4096);
            mirror.created(&VmId::new(format!("vm-{number}")), vm);
        }
        let jobs: Vec<Candidate> = (0..JOBS).map(candidate).collect();
        for (case, workers) in [("none fits", OWN as u64), ("all fit", 10_000)] {
            let mut times: Vec<Duration> =
                (0..REPEAT).map(|_| pass(&mirror, &clock, &jobs, workers)).collect();
            let (p50, worst) = (quantile(&mut times, 0.5), quantile(&mut times, 1.0));
            println!(
                "planner, {VMS} VMs, {JOBS} jobs, {case}: median {}, worst of {REPEAT} {} (bound 100 ms)",
                ms(p50),
                ms(worst)
            );
        }
    });
}

fn pass(mirror: &Mirror, clock: &SimClock, jobs: &[Candidate], workers: u64) -> Duration {
    let config = Setup::new("hv1").dhcp().load();
    let limits = config.ledger_limits().quota(WORKERS, Limit::At(workers));
    let limits = limits.quota(PENDING, Limit::Unlimited);
    let mut ledger = Ledger::default().with_account(HATCHERY, limits, AddressPlan::default());
    let mut attempts = Attempts::new(Some(5));
    let mut cold = ColdStarts::default();
    let pool = PoolId::new("resgroup-1");
    let hold = |vm: &Vm| Holding {
        own: vm.owner().is_some_and(|owner| **owner == *"hv1"),
        request: vm.request().cloned(),
        amounts: Amounts::default().count(WORKERS, vm.owner().is_some().into()),
        ends: None,
    };
    // A running hatchery has looked before; only what changed since is looked at again.
    ledger.observe(HATCHERY, &mirror.snapshot(), clock.now(), hold);
    let began = Instant::now();
    let snapshot = mirror.snapshot();
    ledger.observe(HATCHERY, &snapshot, clock.now(), hold);
    let facts =
        Facts { config: &config, snapshot: &snapshot, models: None, spares: &[], pool: &pool };
    let mut granted = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let name = format!("worker-{number}").into();
        if let Turn::Start { reservation, .. } =
            turn(job, facts, &mut ledger, &mut attempts, &mut cold, &name, clock.now())
        {
            granted.push(reservation);
        }
    }
    let took = began.elapsed();
    assert!(granted.is_empty() || granted.len() == jobs.len(), "{} were granted", granted.len());
    took
}

fn candidate(number: usize) -> Candidate {
    let model = ModelAsCode {
        path: "P/github/org/repo/debian12".into(),
        name: "debian12".into(),
        os_arch: "linux/amd64".into(),
        spec: VsphereSpec { image: "debian12".into(), ..VsphereSpec::default() },
    };
    let job = Job {
        id: JobId::V2(format!("00000000-0000-4000-8000-{number:012}")),
        queued: None,
        project: format!("P{}", number % 20),
        workflow: "w".into(),
        region: None,
        requirements: Vec::new(),
        model: ModelRequest::Any,
        flavor: Some("small".into()),
        groups: Vec::new(),
    };
    let model = Choice::Fixed(Arc::new(WorkerModel::V2(Box::new(model))));
    Candidate { job: Arc::new(job), model }
}
