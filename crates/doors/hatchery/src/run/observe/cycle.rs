//! Once in a while all gauges of the specification are taken anew and replace those before, all at once (W33).

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_fleet::{Mirror, PoolId, PoolUsage, Vm};
use roost_supervise::{Chain, Tasks};
use roost_vim::Observer;
use tokio::time::{sleep, timeout};

use super::super::scheduler::lock;
use super::super::spare_view::in_flight;
use super::disks::Disks;
use super::overview::queue;
use crate::annotation::Annotation;
use crate::door::HATCHERY;
use crate::metrics::{Cycle, CycleFacts, Metrics, PoolReading, VmRow};
use crate::run::about::About;
use crate::run::lifecycle::Lifecycle;
use crate::run::observe::StateReader;
use crate::run::recorder::Recorder;
use crate::run::scheduler::Scheduler;
use crate::run::workers::Workers;
use crate::spares::PoolStanding;
use crate::status::task;

/// As often as CDS's own hatchery.
const INTERVAL: Duration = Duration::from_secs(30);
/// What the resource pool uses is asked for in every second cycle: nothing else is asked for at rest, and four calls a minute are all that there may be.
const USAGE_EVERY: u64 = 2;
/// A vCenter that does not answer holds up two gauges and not all of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes the gauges.
#[derive(Debug)]
pub(in crate::run) struct Gauges {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) lifecycle: Arc<Lifecycle>,
    pub(in crate::run) metrics: Arc<Metrics>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) pool: PoolId,
    pub(in crate::run) reader: Arc<StateReader>,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) standing: Arc<Mutex<Vec<PoolStanding>>>,
    pub(in crate::run) vcenter: Observer,
    pub(in crate::run) workers: Arc<Workers>,
}

/// At rest it asks the vCenter one thing: what the resource pool uses, which nothing else tells. Disks are asked about when a VM of ours has
/// changed.
pub(crate) async fn keep_counting(gauges: Arc<Gauges>, tasks: Arc<Tasks>) {
    gauges.lifecycle.opened().await;
    let (mut disks, mut usage) = (Disks::default(), None);
    for cycle in 0_u64.. {
        tasks.beat(task::METRICS, gauges.about.patience() + INTERVAL);
        if cycle % USAGE_EVERY == 0 {
            usage = read_usage(&gauges).await;
        }
        learn_disks(&gauges, &mut disks).await;
        gauges.metrics.replace(collect(&gauges, &disks, usage));
        sleep(INTERVAL).await;
    }
}

async fn read_usage(gauges: &Gauges) -> Option<PoolUsage> {
    match timeout(PATIENCE, PoolUsage::read(&gauges.vcenter, &gauges.pool)).await {
        Ok(Ok(usage)) => usage,
        Ok(Err(error)) => {
            tracing::debug!("what the resource pool uses is not known: {}", Chain(&error));
            None
        }
        Err(_) => None,
    }
}

async fn learn_disks(gauges: &Gauges, disks: &mut Disks) {
    let snapshot = gauges.mirror.snapshot();
    let ours: Vec<Arc<Vm>> = snapshot
        .owned_by(HATCHERY, gauges.about.hatchery())
        .filter(|vm| !vm.template)
        .cloned()
        .collect();
    if let Ok(Err(error)) = timeout(PATIENCE, disks.learn(&gauges.vcenter, &ours)).await {
        tracing::debug!("the sizes of disks are not known: {}", Chain(&error));
    }
}

fn collect(gauges: &Gauges, disks: &Disks, usage: Option<PoolUsage>) -> Cycle {
    let now = gauges.about.now();
    let snapshot = gauges.mirror.snapshot();
    let pool = gauges.workers.join(&snapshot, now).ok();
    let levels = gauges.reader.levels(&snapshot, now);
    let standing = lock(&gauges.standing).clone();
    let (queue, spares_in_flight) = {
        let scheduler = gauges.scheduler.lock();
        (
            queue(&scheduler, &gauges.recorder.journal, now).0,
            in_flight(&snapshot, &scheduler).len() as u64,
        )
    };
    let vms = snapshot.vms().map(|vm| (vm, Annotation::of(vm), reported(vm)));
    let vms: Vec<_> = vms.collect();
    let rows = vms.iter().map(|(vm, annotation, addresses)| VmRow {
        name: &vm.name,
        annotation: annotation.as_deref(),
        is_template: vm.template,
        power: vm.power,
        cpus: vm.cpus,
        memory_mb: vm.memory_mb,
        disk_gb: disks.get(&vm.id),
        addresses,
    });
    let facts = CycleFacts {
        hatchery: gauges.about.hatchery(),
        plan: &gauges.about.config.addresses,
        pool: pool.as_ref(),
        resource_pool: resource_pool(gauges, usage),
        spares_in_flight,
        spares: &standing,
        oldest_waiting_secs: queue.oldest_waiting_secs,
        waiting_jobs: queue.waiting,
        refused_jobs: queue.refused,
        levels: &levels,
    };
    Cycle::collect(rows, facts)
}

/// What the guest itself says, not what it was given.
fn reported(vm: &Vm) -> Vec<IpAddr> {
    let nics = vm.guest.nics.iter().flat_map(|nic| nic.addresses.iter());
    nics.chain(&vm.guest.address).copied().collect()
}

/// `None` without any word of the resource pool.
fn resource_pool(gauges: &Gauges, usage: Option<PoolUsage>) -> Option<PoolReading> {
    let pool = gauges.mirror.pool(&gauges.pool);
    if pool.is_none() && usage.is_none() {
        return None;
    }
    let (cpu, memory) = pool.map(|pool| (pool.cpu_mhz, pool.memory_bytes)).unwrap_or_default();
    Some(PoolReading {
        cpu_max_mhz: cpu.max,
        cpu_usage_mhz: usage.map(|usage| usage.cpu_mhz),
        cpu_unreserved_mhz: cpu.unreserved,
        memory_max_bytes: memory.max,
        memory_usage_bytes: usage.map(|usage| usage.memory_bytes),
        memory_unreserved_bytes: memory.unreserved,
    })
}
