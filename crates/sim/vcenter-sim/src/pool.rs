//! What resource pools have, what is taken of it, and whether a VM may still power on.
//!
//! A powered-on VM takes its configured memory and a share of a core per virtual CPU, or its reservation where that is more.
//! vCenter itself only counts reservations; the simulated one is stricter, so that a pool fills up without every test
//! having to reserve. What a pool takes of its parent is its reservation, or what its VMs take where that is more and
//! the reservation may expand.

use roost_vim_wire::types::{
    ResourceAllocationInfo, ResourceConfigSpec, ResourcePoolResourceUsage, ResourcePoolRuntimeInfo,
    SharesInfo,
};
use roost_vim_wire::{Element, Fault, MoRef};

use crate::call::Failure;
use crate::inventory::Inventory;
use crate::vm::Settings;

/// Eight virtual CPUs to a core of 2,400 MHz.
const MHZ_PER_VCPU: i64 = 300;

/// An amount of memory in bytes and of CPU in MHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Demand {
    pub memory: i64,
    pub mhz: i64,
}

impl Demand {
    pub(crate) fn of(cpus: i32, memory_mb: i32, settings: &Settings) -> Self {
        let reserved = |allocation: &ResourceAllocationInfo| allocation.reservation.unwrap_or(0);
        let memory_mb = i64::from(memory_mb).max(reserved(&settings.memory_allocation));
        let mhz = (i64::from(cpus) * MHZ_PER_VCPU).max(reserved(&settings.cpu_allocation));
        Self { memory: memory_mb.saturating_mul(1 << 20), mhz }
    }
}

impl std::ops::AddAssign for Demand {
    fn add_assign(&mut self, other: Self) {
        self.memory += other.memory;
        self.mhz += other.mhz;
    }
}

impl std::ops::SubAssign for Demand {
    fn sub_assign(&mut self, other: Self) {
        self.memory -= other.memory;
        self.mhz -= other.mhz;
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub name: std::sync::Arc<str>,
    /// A pool, or the compute resource of a root pool.
    pub parent: MoRef,
    pub owner: MoRef,
    pub pools: Vec<MoRef>,
    pub config: ResourceConfigSpec,
    /// What a vApp is beyond a pool.
    pub app: Option<Box<App>>,
    /// What the powered-on VMs directly in it take.
    pub demand: Demand,
    /// The numbers that watchers were last told of.
    pub announced: ResourcePoolRuntimeInfo,
}

/// A pool whose VMs are one application: they are started and stopped together.
#[derive(Debug, Clone)]
pub(crate) struct App {
    /// The folder that it belongs to, beside the pool that it is in.
    pub folder: MoRef,
    /// A `VmConfigInfo`: products, properties and the like.
    pub config: Element,
    pub annotation: String,
    pub uuid: String,
}

/// The allocation of a pool that nobody has limited.
pub(crate) fn unlimited(shares: i32) -> ResourceAllocationInfo {
    ResourceAllocationInfo {
        reservation: Some(0),
        expandable_reservation: Some(true),
        limit: Some(-1),
        shares: Some(SharesInfo { shares, level: "normal".into() }),
        overhead_limit: None,
    }
}

impl Pool {
    pub(crate) fn new(
        name: &str,
        parent: &MoRef,
        owner: &MoRef,
        mut config: ResourceConfigSpec,
        this: &MoRef,
    ) -> Self {
        config.entity = Some(this.clone());
        Self {
            name: name.into(),
            parent: parent.clone(),
            owner: owner.clone(),
            pools: Vec::new(),
            config,
            app: None,
            demand: Demand::default(),
            announced: ResourcePoolRuntimeInfo::default(),
        }
    }

    fn is_root(&self) -> bool {
        self.parent == self.owner
    }
}

/// One of the two resources; what is said of a pool is said of both alike.
#[derive(Debug, Clone, Copy)]
enum Resource {
    Memory,
    Cpu,
}

impl Resource {
    fn of(self, demand: Demand) -> i64 {
        match self {
            Self::Memory => demand.memory,
            Self::Cpu => demand.mhz,
        }
    }

    fn allocation(self, pool: &Pool) -> &ResourceAllocationInfo {
        match self {
            Self::Memory => &pool.config.memory_allocation,
            Self::Cpu => &pool.config.cpu_allocation,
        }
    }

    /// Memory is configured in MB and reported in bytes.
    fn scaled(self, amount: i64) -> i64 {
        match self {
            Self::Memory => amount.saturating_mul(1 << 20),
            Self::Cpu => amount,
        }
    }

    fn reservation(self, pool: &Pool) -> i64 {
        self.scaled(self.allocation(pool).reservation.unwrap_or(0))
    }

    fn limit(self, pool: &Pool) -> Option<i64> {
        self.allocation(pool).limit.filter(|limit| *limit >= 0).map(|limit| self.scaled(limit))
    }

    fn is_expandable(self, pool: &Pool) -> bool {
        self.allocation(pool).expandable_reservation.unwrap_or(true)
    }
}

impl Inventory {
    /// The sum over the hosts of a compute resource that can run VMs.
    pub(crate) fn capacity(&self, compute: &MoRef) -> Demand {
        let mut capacity = Demand::default();
        for host in self.computes.get(compute).into_iter().flat_map(|compute| &compute.hosts) {
            if let Some(host) = self.hosts.get(host).filter(|host| host.is_usable()) {
                capacity += host.capacity();
            }
        }
        capacity
    }

    pub(crate) fn pool_runtime(&self, pool: &MoRef) -> ResourcePoolRuntimeInfo {
        let usage = |resource| self.usage(pool, resource).unwrap_or_default();
        let (memory, cpu) = (usage(Resource::Memory), usage(Resource::Cpu));
        let is_overcommitted = memory.unreserved_for_vm < 0 || cpu.unreserved_for_vm < 0;
        let overall_status = if is_overcommitted { "red" } else { "green" }.into();
        ResourcePoolRuntimeInfo { memory, cpu, overall_status }
    }

    fn usage(&self, pool: &MoRef, resource: Resource) -> Option<ResourcePoolResourceUsage> {
        let row = self.pools.get(pool)?;
        Some(ResourcePoolResourceUsage {
            reservation_used: self.used(row, resource),
            reservation_used_for_vm: resource.of(row.demand),
            unreserved_for_pool: self.unreserved(row, resource),
            unreserved_for_vm: self.unreserved(row, resource),
            overall_usage: self.running(row, resource),
            max_usage: self.max_usage(row, resource),
        })
    }

    /// What its VMs and child pools hold.
    fn used(&self, pool: &Pool, resource: Resource) -> i64 {
        let children = pool.pools.iter().filter_map(|child| self.pools.get(child));
        let held = |child: &Pool| {
            let own = resource.reservation(child);
            if resource.is_expandable(child) { own.max(self.used(child, resource)) } else { own }
        };
        resource.of(pool.demand) + children.map(held).sum::<i64>()
    }

    /// What all VMs below it take, whoever reserved it.
    fn running(&self, pool: &Pool, resource: Resource) -> i64 {
        let children = pool.pools.iter().filter_map(|child| self.pools.get(child));
        resource.of(pool.demand) + children.map(|child| self.running(child, resource)).sum::<i64>()
    }

    /// What a VM in this pool could still get: from the pool's own reservation, and from its parent where that may expand.
    fn unreserved(&self, pool: &Pool, resource: Resource) -> i64 {
        let used = self.used(pool, resource);
        if pool.is_root() {
            return resource.of(self.capacity(&pool.owner)) - used;
        }
        let own = resource.reservation(pool) - used;
        let free = match self.pools.get(&pool.parent) {
            // What the own reservation does not cover comes out of the parent and is missing there already.
            Some(parent) if resource.is_expandable(pool) => {
                own.max(0) + self.unreserved(parent, resource)
            }
            _ => own,
        };
        resource.limit(pool).map_or(free, |limit| free.min(limit - self.running(pool, resource)))
    }

    fn max_usage(&self, pool: &Pool, resource: Resource) -> i64 {
        let above = match self.pools.get(&pool.parent) {
            Some(parent) if !pool.is_root() => self.max_usage(parent, resource),
            _ => resource.of(self.capacity(&pool.owner)),
        };
        resource.limit(pool).map_or(above, |limit| limit.min(above))
    }

    /// Whether a VM that takes `demand` may power on in `pool`.
    pub(crate) fn admit(&self, pool: &MoRef, demand: Demand) -> Result<(), Failure> {
        let Some(row) = self.pools.get(pool) else { return Err(Failure::not_found(pool)) };
        let checks = [
            (Resource::Memory, "InsufficientMemoryResourcesFault", "memory"),
            (Resource::Cpu, "InsufficientCpuResourcesFault", "CPU"),
        ];
        for (resource, class, what) in checks {
            let (unreserved, requested) = (self.unreserved(row, resource), resource.of(demand));
            if requested > unreserved {
                let fault =
                    Fault::of(class).with("unreserved", &unreserved).with("requested", &requested);
                let message = format!(
                    "The available {what} resources in the parent resource pool are insufficient for the operation."
                );
                return Err(Failure::new(fault, message));
            }
        }
        Ok(())
    }

    /// Moves what a VM takes between its place before and after a change. Either may be nothing.
    pub(crate) fn shift_demand(
        &mut self,
        before: (Option<&MoRef>, Option<&MoRef>, Demand),
        after: (Option<&MoRef>, Option<&MoRef>, Demand),
    ) {
        let mut owners: Vec<MoRef> = Vec::new();
        for (pool, host, demand, is_after) in
            [(before.0, before.1, before.2, false), (after.0, after.1, after.2, true)]
        {
            if let Some(row) = pool.and_then(|pool| self.pools.get_mut(pool)) {
                if is_after {
                    row.demand += demand;
                } else {
                    row.demand -= demand;
                }
                if !owners.contains(&row.owner) {
                    owners.push(row.owner.clone());
                }
            }
            if let Some(row) = host.and_then(|host| self.hosts.get_mut(host)) {
                if is_after { row.demand += demand } else { row.demand -= demand }
            }
        }
        if before != after {
            for host in [before.1, after.1].into_iter().flatten() {
                self.changes.modified(host, HOST_USAGE_PATHS);
            }
            for owner in owners {
                self.announce_pools(&owner);
            }
        }
    }

    /// Tells watchers that a compute resource has more or fewer hosts to run VMs on.
    pub(crate) fn announce_capacity(&mut self, owner: &MoRef) {
        let summary =
            ["summary.effectiveCpu", "summary.effectiveMemory", "summary.numEffectiveHosts"];
        self.changes.modified(owner, summary);
        if let Some(root) = self.computes.get(owner).map(|compute| compute.pool.clone()) {
            self.changes.modified(&root, ["config", "summary.config"]);
        }
        self.announce_pools(owner);
    }

    /// Tells watchers of every number that changed in the pools of a compute resource: a VM in one pool takes from its
    /// siblings, too.
    pub(crate) fn announce_pools(&mut self, owner: &MoRef) {
        let pools: Vec<MoRef> = self
            .pools
            .iter()
            .filter(|(_, pool)| pool.owner == *owner)
            .map(|(moref, _)| moref.clone())
            .collect();
        for moref in pools {
            let now = self.pool_runtime(&moref);
            let Some(pool) = self.pools.get_mut(&moref) else { continue };
            let paths = changed_paths(&pool.announced, &now);
            pool.announced = now;
            if !paths.is_empty() {
                self.changes.modified(&moref, paths);
            }
        }
    }
}

const HOST_USAGE_PATHS: [&str; 2] =
    ["summary.quickStats.overallCpuUsage", "summary.quickStats.overallMemoryUsage"];

fn changed_paths(before: &ResourcePoolRuntimeInfo, after: &ResourcePoolRuntimeInfo) -> Vec<String> {
    let mut paths = Vec::new();
    for (part, old, new) in
        [("memory", &before.memory, &after.memory), ("cpu", &before.cpu, &after.cpu)]
    {
        let fields = [
            ("reservationUsed", old.reservation_used, new.reservation_used),
            ("reservationUsedForVm", old.reservation_used_for_vm, new.reservation_used_for_vm),
            ("unreservedForPool", old.unreserved_for_pool, new.unreserved_for_pool),
            ("unreservedForVm", old.unreserved_for_vm, new.unreserved_for_vm),
            ("overallUsage", old.overall_usage, new.overall_usage),
            ("maxUsage", old.max_usage, new.max_usage),
        ];
        for (field, old, new) in fields {
            if old != new {
                paths.push(format!("runtime.{part}.{field}"));
                paths.push(format!("summary.runtime.{part}.{field}"));
            }
        }
    }
    if before.overall_status != after.overall_status {
        paths.extend(["runtime.overallStatus".into(), "summary.runtime.overallStatus".into()]);
    }
    if before.memory.overall_usage != after.memory.overall_usage {
        paths.push("summary.quickStats.guestMemoryUsage".into());
        paths.push("summary.quickStats.hostMemoryUsage".into());
        paths.push("summary.configuredMemoryMB".into());
    }
    if before.cpu.overall_usage != after.cpu.overall_usage {
        paths.push("summary.quickStats.overallCpuUsage".into());
    }
    paths
}
