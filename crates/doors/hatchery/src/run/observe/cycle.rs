//! Once in a while all gauges of the specification are taken anew and replace those before, all at once (W33).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{PoolUsage, Vm};
use roost_supervise::{Chain, Tasks};
use tokio::time::{sleep, timeout};

use super::super::desk::lock;
use super::super::nest::Nest;
use super::super::spare_view::in_flight;
use super::disks::Disks;
use super::overview::queue;
use crate::annotation::Annotation;
use crate::door::HATCHERY;
use crate::metrics::{Cycle, CycleFacts, PoolReading, VmRow};
use crate::status::task;

/// As often as CDS's own hatchery.
const INTERVAL: Duration = Duration::from_secs(30);
/// A vCenter that does not answer holds up two gauges and not all of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// At rest it asks the vCenter one thing in each cycle: what the resource pool uses, which nothing else tells. Disks are asked about when a
/// VM of ours has changed.
pub(crate) async fn keep_counting(nest: Arc<Nest>, tasks: Arc<Tasks>) {
    nest.opened().await;
    let mut disks = Disks::default();
    loop {
        tasks.beat(task::METRICS, nest.patience() + INTERVAL);
        let usage = read_usage(&nest).await;
        learn_disks(&nest, &mut disks).await;
        nest.metrics.replace(collect(&nest, &disks, usage));
        sleep(INTERVAL).await;
    }
}

async fn read_usage(nest: &Nest) -> Option<PoolUsage> {
    match timeout(PATIENCE, PoolUsage::read(&nest.vcenter, &nest.pool)).await {
        Ok(Ok(usage)) => usage,
        Ok(Err(error)) => {
            tracing::debug!("what the resource pool uses is not known: {}", Chain(&error));
            None
        }
        Err(_) => None,
    }
}

async fn learn_disks(nest: &Nest, disks: &mut Disks) {
    let snapshot = nest.mirror.snapshot();
    let ours: Vec<Arc<Vm>> =
        snapshot.owned_by(HATCHERY, nest.hatchery()).filter(|vm| !vm.template).cloned().collect();
    if let Ok(Err(error)) = timeout(PATIENCE, disks.learn(&nest.vcenter, &ours)).await {
        tracing::debug!("the sizes of disks are not known: {}", Chain(&error));
    }
}

fn collect(nest: &Nest, disks: &Disks, usage: Option<PoolUsage>) -> Cycle {
    let now = nest.now();
    let snapshot = nest.mirror.snapshot();
    let pool = nest.join_workers(&snapshot, now).ok();
    let levels = nest.levels(&snapshot, now);
    let standing = lock(&nest.standing).clone();
    let (queue, spares_in_flight) = {
        let desk = nest.desk();
        (queue(&desk, &nest.journal, now).0, in_flight(&snapshot, &desk).len() as u64)
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
        hatchery: nest.hatchery(),
        plan: &nest.config.addresses,
        pool: pool.as_ref(),
        resource_pool: resource_pool(nest, usage),
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
fn resource_pool(nest: &Nest, usage: Option<PoolUsage>) -> Option<PoolReading> {
    let pool = nest.mirror.pool(&nest.pool);
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
