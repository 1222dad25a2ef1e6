//! What one look at the fleet amounts to, as the gauges of reference 6.5 and 7.7 want it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use roost_fleet::{AddressPlan, Power};

use super::levels::Levels;
use crate::annotation::Annotation;
use crate::names::VmName;
use crate::pool::{Pool, PoolStatus};
use crate::spares::PoolStanding;

/// One VM of the datacenter, anybody's.
#[derive(Debug, Clone, Copy)]
pub struct VmRow<'a> {
    pub name: &'a str,
    pub annotation: Option<&'a Annotation>,
    pub is_template: bool,
    pub power: Power,
    pub cpus: u32,
    pub memory_mb: u64,
    /// Of all its disks, if that is known.
    pub disk_gb: Option<u64>,
    /// Those that its guest reports.
    pub addresses: &'a [IpAddr],
}

/// What the VMs alone do not say.
#[derive(Debug, Clone, Copy)]
pub struct CycleFacts<'a> {
    pub hatchery: &'a str,
    pub plan: &'a AddressPlan,
    /// `None` while one side cannot be counted: no number is better than a wrong one.
    pub pool: Option<&'a Pool>,
    /// `None` when the resource pool cannot be read; its gauges are then left out.
    pub resource_pool: Option<PoolReading>,
    /// Clones of spares that the inventory does not show yet.
    pub spares_in_flight: u64,
    pub spares: &'a [PoolStanding],
    /// Seconds since the oldest job that waits was queued.
    pub oldest_waiting_secs: Option<u64>,
    pub waiting_jobs: u64,
    /// In the queue, and not served as they are.
    pub refused_jobs: u64,
    pub levels: &'a Levels,
}

/// The resource pool's own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolReading {
    pub cpu_max_mhz: Option<u64>,
    pub cpu_usage_mhz: Option<u64>,
    pub cpu_unreserved_mhz: Option<u64>,
    pub memory_max_bytes: Option<u64>,
    pub memory_usage_bytes: Option<u64>,
    pub memory_unreserved_bytes: Option<u64>,
}

/// One worker or spare of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRow {
    pub name: String,
    pub model: String,
    pub vcpus: u64,
    pub memory_mb: u64,
    pub disk_gb: Option<u64>,
}

/// Addresses of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddressTally {
    /// In an annotation or reported by a guest.
    pub used: u64,
    /// Reported by a guest.
    pub active: u64,
    /// In an annotation.
    pub reserved: u64,
    pub total: u64,
}

/// All gauges of one cycle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cycle {
    pub workers: Vec<WorkerRow>,
    pub(super) totals: Totals,
    pub(super) by_status: Option<[u64; 6]>,
    pub(super) resource_pool: Option<PoolReading>,
    /// `None` without a plan.
    pub addresses: Option<AddressTally>,
    pub(super) spares: Vec<PoolStanding>,
    pub(super) oldest_waiting_secs: Option<u64>,
    pub(super) waiting_jobs: u64,
    pub(super) refused_jobs: u64,
    pub(super) levels: Levels,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Totals {
    allocated_vcpus: u64,
    allocated_memory_mb: u64,
    allocated_disk_gb: Option<u64>,
    vms: u64,
    worker_vms: u64,
    spares: u64,
    spares_ready: u64,
    spares_starting: u64,
    spares_dying: u64,
    spares_in_flight: u64,
    template_vcpus: u64,
    template_memory_mb: u64,
    templates: u64,
    all_vcpus: u64,
    all_memory_mb: u64,
    all_vms: u64,
}

impl Cycle {
    pub fn collect<'a>(vms: impl IntoIterator<Item = VmRow<'a>>, facts: CycleFacts<'_>) -> Self {
        let mut cycle = Self {
            by_status: facts
                .pool
                .map(|pool| STATUSES.map(|(status, ..)| pool.count(status) as u64)),
            resource_pool: facts.resource_pool,
            spares: facts.spares.to_vec(),
            oldest_waiting_secs: facts.oldest_waiting_secs,
            waiting_jobs: facts.waiting_jobs,
            refused_jobs: facts.refused_jobs,
            levels: facts.levels.clone(),
            ..Self::default()
        };
        cycle.totals.spares_in_flight = facts.spares_in_flight;
        let (mut active, mut reserved) = (BTreeSet::new(), BTreeSet::new());
        for vm in vms {
            cycle.add(vm, facts.hatchery);
            if !vm.is_template {
                reserved.extend(vm.annotation.and_then(Annotation::address));
                active.extend(vm.addresses.iter().copied());
            }
        }
        cycle.addresses = (!facts.plan.is_dhcp()).then(|| {
            let of_plan =
                |address: &&IpAddr| matches!(address, IpAddr::V4(v4) if facts.plan.contains(*v4));
            AddressTally {
                used: active.union(&reserved).filter(of_plan).count() as u64,
                active: active.iter().filter(of_plan).count() as u64,
                reserved: reserved.iter().filter(of_plan).count() as u64,
                total: facts.plan.total(),
            }
        });
        cycle
    }

    fn add(&mut self, vm: VmRow<'_>, hatchery: &str) {
        let (vcpus, memory_mb) = (u64::from(vm.cpus), vm.memory_mb);
        let totals = &mut self.totals;
        totals.all_vcpus += vcpus;
        totals.all_memory_mb += memory_mb;
        totals.all_vms += 1;
        let Some(annotation) = vm.annotation.filter(|annotation| annotation.is_of(hatchery)) else {
            return;
        };
        if annotation.model || vm.is_template {
            totals.template_vcpus += vcpus;
            totals.template_memory_mb += memory_mb;
            totals.templates += 1;
            return;
        }
        totals.allocated_vcpus += vcpus;
        totals.allocated_memory_mb += memory_mb;
        if let Some(disk_gb) = vm.disk_gb {
            *totals.allocated_disk_gb.get_or_insert(0) += disk_gb;
        }
        totals.vms += 1;
        if VmName::of(vm.name).counts_as_worker() {
            totals.worker_vms += 1;
        } else {
            totals.spares += 1;
            let state = if annotation.doomed.is_some() {
                &mut totals.spares_dying
            } else if vm.power == Power::Off {
                &mut totals.spares_ready
            } else {
                &mut totals.spares_starting
            };
            *state += 1;
        }
        self.workers.push(WorkerRow {
            name: vm.name.to_owned(),
            model: annotation.worker_model_path.clone(),
            vcpus,
            memory_mb,
            disk_gb: vm.disk_gb,
        });
    }

    /// Name, help and value of each gauge that has CDS's two labels only.
    pub(super) fn gauges(&self) -> Vec<(&'static str, &'static str, Option<u64>)> {
        let totals = &self.totals;
        let pool = self.resource_pool.unwrap_or_default();
        let ip = |of: fn(&AddressTally) -> u64| self.addresses.as_ref().map(of);
        let mut gauges = vec![
            (
                "cds_hatchery_vsphere_allocated_vcpus",
                "vCPUs that VMs of this hatchery have",
                Some(totals.allocated_vcpus),
            ),
            (
                "cds_hatchery_vsphere_allocated_memory_mb",
                "memory in MB that VMs of this hatchery have",
                Some(totals.allocated_memory_mb),
            ),
            (
                "cds_hatchery_vsphere_allocated_disk_gb",
                "disk space in GB that VMs of this hatchery have",
                totals.allocated_disk_gb,
            ),
            (
                "cds_hatchery_vsphere_vm_count",
                "VMs of this hatchery, spares included",
                Some(totals.vms),
            ),
            (
                "cds_hatchery_vsphere_worker_vm_count",
                "VMs of this hatchery that serve a job",
                Some(totals.worker_vms),
            ),
            (
                "cds_hatchery_vsphere_provisioned_vm_count",
                "spares in any state",
                Some(totals.spares),
            ),
            (
                "cds_hatchery_vsphere_provision_ready_count",
                "spares that can be claimed",
                Some(totals.spares_ready),
            ),
            (
                "cds_hatchery_vsphere_provision_starting_count",
                "spares that are still being made",
                Some(totals.spares_starting),
            ),
            (
                "cds_hatchery_vsphere_provision_dying_count",
                "spares on their way out",
                Some(totals.spares_dying),
            ),
            (
                "cds_hatchery_vsphere_provision_inflight_count",
                "spares asked for and not yet seen",
                Some(totals.spares_in_flight),
            ),
            (
                "cds_hatchery_vsphere_template_vcpus",
                "vCPUs of all templates",
                Some(totals.template_vcpus),
            ),
            (
                "cds_hatchery_vsphere_template_memory_mb",
                "memory in MB of all templates",
                Some(totals.template_memory_mb),
            ),
            ("cds_hatchery_vsphere_template_count", "templates", Some(totals.templates)),
            (
                "cds_hatchery_vsphere_pool_total_vcpus",
                "vCPUs of everything in the datacenter",
                Some(totals.all_vcpus),
            ),
            (
                "cds_hatchery_vsphere_pool_total_memory_mb",
                "memory in MB of everything in the datacenter",
                Some(totals.all_memory_mb),
            ),
            (
                "cds_hatchery_vsphere_pool_total_vm_count",
                "everything in the datacenter, templates included",
                Some(totals.all_vms),
            ),
            (
                "cds_hatchery_vsphere_resource_pool_cpu_max_mhz",
                "CPU that the resource pool may use, in MHz",
                pool.cpu_max_mhz,
            ),
            (
                "cds_hatchery_vsphere_resource_pool_cpu_usage_mhz",
                "CPU that the resource pool uses, in MHz",
                pool.cpu_usage_mhz,
            ),
            (
                "cds_hatchery_vsphere_resource_pool_cpu_unreserved_mhz",
                "CPU that VMs of the resource pool can still reserve, in MHz",
                pool.cpu_unreserved_mhz,
            ),
            (
                "cds_hatchery_vsphere_resource_pool_memory_max_bytes",
                "memory that the resource pool may use, in bytes",
                pool.memory_max_bytes,
            ),
            (
                "cds_hatchery_vsphere_resource_pool_memory_usage_bytes",
                "memory that the resource pool uses, in bytes",
                pool.memory_usage_bytes,
            ),
            (
                "cds_hatchery_vsphere_resource_pool_memory_unreserved_bytes",
                "memory that VMs of the resource pool can still reserve, in bytes",
                pool.memory_unreserved_bytes,
            ),
            (
                "cds_hatchery_vsphere_ip_used_count",
                "addresses of the ranges that are taken",
                ip(|ip| ip.used),
            ),
            (
                "cds_hatchery_vsphere_ip_active_count",
                "addresses of the ranges that guests report",
                ip(|ip| ip.active),
            ),
            (
                "cds_hatchery_vsphere_ip_reserved_count",
                "addresses of the ranges that annotations hold",
                ip(|ip| ip.reserved),
            ),
            ("cds_hatchery_vsphere_ip_total_count", "addresses in the ranges", ip(|ip| ip.total)),
        ];
        gauges.extend(STATUSES.iter().enumerate().map(|(index, (_, name, help))| {
            (*name, *help, self.by_status.map(|counts| counts[index]))
        }));
        gauges
    }

    /// The gauges that also name the worker.
    pub(super) fn worker_gauges() -> [WorkerGauge; 3] {
        [
            ("cds_hatchery_vsphere_worker_vcpus", "vCPUs of the VM", |row| Some(row.vcpus)),
            ("cds_hatchery_vsphere_worker_memory_mb", "memory of the VM in MB", |row| {
                Some(row.memory_mb)
            }),
            ("cds_hatchery_vsphere_worker_disk_gb", "disk space of the VM in GB", |row| {
                row.disk_gb
            }),
        ]
    }

    pub(super) fn definitions() -> Vec<Definition> {
        let workers = Self::worker_gauges();
        let per_worker =
            workers.iter().map(|(name, help, _)| Definition { name, help, per_worker: true });
        let gauges = Self::default().gauges();
        let plain =
            gauges.into_iter().map(|(name, help, _)| Definition { name, help, per_worker: false });
        per_worker.chain(plain).collect()
    }
}

/// Name, help, and what it shows of a row.
pub(super) type WorkerGauge = (&'static str, &'static str, fn(&WorkerRow) -> Option<u64>);

pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) per_worker: bool,
}

/// The six gauges of workers by status.
const STATUSES: [(PoolStatus, &str, &str); 6] = [
    (PoolStatus::Pending, "cds_hatchery_pending_workers", "workers that have not registered yet"),
    (PoolStatus::Registering, "cds_hatchery_registering_workers", "workers that register a model"),
    (PoolStatus::Waiting, "cds_hatchery_waiting_workers", "registered workers without a job"),
    (PoolStatus::Checking, "cds_hatchery_checking_workers", "workers in the old state Checking"),
    (PoolStatus::Building, "cds_hatchery_building_workers", "workers with a job"),
    (PoolStatus::Disabled, "cds_hatchery_disabled_workers", "workers that CDS has disabled"),
];
