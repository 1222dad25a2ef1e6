//! A running hatchery: what a warm job costs, how soon a spare is replaced, how long a restart takes.

use std::collections::BTreeMap;
use std::time::Duration;

use roost_cds::JobId;
use roost_cds_sim::V2Demand;
use roost_fleet::Decided;
use roost_vcenter_sim::Timings;
use tokio::time::{Instant, sleep};

use crate::lab::{DEBIAN, Service, Setup, World, WorldOptions, mins};
use crate::{ms, quantile};

/// As many as there are addresses, so that none is left for a refill and all calls that follow are those of the jobs.
const SPARES: usize = 61;
const JOBS: usize = 50;

fn world(vms: usize) -> World {
    World::start(WorldOptions {
        strangers: vms,
        timings: Timings::instant(),
        ..WorldOptions::default()
    })
}

fn setup() -> Setup {
    Setup::new("hv1")
        .pool("debian12", i64::try_from(SPARES).unwrap_or(i64::MAX))
        .set("workerProvisioningPoolSize", 10)
        .max_workers(100)
}

fn long_job(world: &World) -> JobId {
    world.v2_job(V2Demand::new(DEBIAN).takes(mins(60)))
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        sleep(Duration::from_micros(200)).await;
    }
}

fn ready(service: &Service) -> u64 {
    service.hatchery().window().pools().iter().map(|pool| pool.ready).sum()
}

fn has_started(service: &Service, job: &JobId) -> bool {
    service.verdict(job).is_some_and(|decision| decision.verdict == Decided::Spawned)
}

fn calls(world: &World) -> BTreeMap<String, u64> {
    world.vcenter.counters().calls.into_iter().collect()
}

/// From a job in the queue to its script started, one job at a time.
pub(crate) async fn warm_jobs(vms: usize) {
    let world = world(vms);
    let mut service = Service::new(setup().addresses("10.9.0.0/26", "10.9.0.1", "255.255.255.192"));
    service.open(&world).await;
    until(|| ready(&service) >= SPARES as u64).await;
    // The client tidies up behind the clones for a moment.
    sleep(Duration::from_secs(5)).await;
    let before = calls(&world);
    let mut times = Vec::new();
    for _ in 0..JOBS {
        let began = Instant::now();
        let job = long_job(&world);
        until(|| has_started(&service, &job)).await;
        times.push(began.elapsed());
        // The worker registers, and what is told of it arrives.
        sleep(Duration::from_millis(20)).await;
    }
    let after = calls(&world);
    let made: Vec<(String, u64)> = after
        .into_iter()
        .map(|(method, count)| (method.clone(), count - before.get(&method).copied().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let waiting = |method: &str| method == "WaitForUpdatesEx";
    let per_job = |keep: &dyn Fn(&str) -> bool| {
        let sum: u64 = made.iter().filter(|(method, _)| keep(method)).map(|(_, n)| *n).sum();
        #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
        let per_job = sum as f64 / JOBS as f64;
        per_job
    };
    let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    println!(
        "warm job, {vms} VMs: {:.1} calls (bound 6) and {:.1} answers of the shared long poll; queue to script p50 {}, p99 {} (bound 50 ms)",
        per_job(&|method| !waiting(method)),
        per_job(&waiting),
        ms(p50),
        ms(p99)
    );
    println!("  {made:?}");
}

/// From the claim of a spare to the clone that takes its place.
pub(crate) async fn refill() {
    let world = world(100);
    let mut service = Service::new(Setup::new("hv1").pool("debian12", 5).max_workers(60));
    service.open(&world).await;
    until(|| ready(&service) >= 5).await;
    let mut times = Vec::new();
    for _ in 0..20 {
        let before = calls(&world);
        let count = |method: &str| {
            calls(&world).get(method).copied().unwrap_or(0)
                - before.get(method).copied().unwrap_or(0)
        };
        let job = long_job(&world);
        // A clone may begin before the claim is sent: both follow from the reservation.
        until(|| count("ReconfigVM_Task") > 0 || count("CloneVM_Task") > 0).await;
        let claimed = Instant::now();
        until(|| count("CloneVM_Task") > 0).await;
        times.push(claimed.elapsed());
        until(|| has_started(&service, &job) && ready(&service) >= 5).await;
    }
    let (p50, worst) = (quantile(&mut times, 0.5), quantile(&mut times, 1.0));
    println!(
        "refill: the next clone is sent p50 {}, worst of 20 {} after the claim (bound 100 ms)",
        ms(p50),
        ms(worst)
    );
}

/// From the start of a process to its first decision, with workers and spares of the one before it.
pub(crate) async fn restart(vms: usize) {
    let world = world(vms);
    let mut service = Service::new(Setup::new("hv1").pool("debian12", 10).max_workers(60));
    service.open(&world).await;
    until(|| ready(&service) >= 10).await;
    let jobs: Vec<JobId> = (0..20).map(|_| long_job(&world)).collect();
    until(|| jobs.iter().all(|job| has_started(&service, job))).await;
    until(|| ready(&service) >= 10).await;
    let before = world.vms_of("hv1").len();
    service.crash();
    let began = Instant::now();
    service.open(&world).await;
    let took = began.elapsed();
    sleep(Duration::from_secs(2)).await;
    let after = world.vms_of("hv1").len();
    println!(
        "restart, {vms} VMs of which {before} are ours: open after {} (bound 5 s); {after} are ours afterwards",
        ms(took)
    );
}
