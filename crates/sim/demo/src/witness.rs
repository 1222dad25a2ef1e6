//! Looks at what is true in the two servers, past everything that the hatchery believes, and remembers what should never be.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roost_cds::{JobId, WorkerStatus};
use roost_fleet::Limits;
use roost_hatchery::names::VmName;
use roost_vcenter_sim::{Power, VmGlance};
use roost_vim::wire::MoRef;
use tokio::time::sleep;

use super::beside::is_theirs;
use super::demand::Queued;
use super::world::World;

/// Shorter than anything that a VM goes through.
const LOOK: Duration = Duration::from_secs(1);

/// What was seen so far. A handle; clones share it.
#[derive(Debug, Clone)]
pub(super) struct Witness {
    world: World,
    limits: Limits,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// What was there before us, and whether it ran.
    foreign: BTreeMap<MoRef, Power>,
    own: BTreeMap<MoRef, OwnVm>,
    jobs: Vec<Queued>,
    all_queued: bool,
    most: Most,
    shared_addresses: BTreeSet<IpAddr>,
}

/// A VM that the hatchery made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnVm {
    name: Arc<str>,
    /// It was a spare before it became a worker.
    was_spare: bool,
    power: Power,
    is_gone: bool,
}

/// The most that there ever was at one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Most {
    pub(super) workers: u64,
    pub(super) cpus: u64,
    pub(super) memory_mb: u64,
    pub(super) own_vms: u64,
}

/// What has become of the VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct VmCounts {
    pub(super) made: u64,
    pub(super) deleted: u64,
    /// Off and named as spares: what a pool holds.
    pub(super) spares: u64,
    /// There, and no spare at rest.
    pub(super) others: u64,
    pub(super) foreign: u64,
    /// Gone, or not as they were.
    pub(super) foreign_touched: u64,
}

impl Witness {
    /// Takes all that is there now for somebody else's.
    pub(super) fn new(world: World, limits: Limits) -> Self {
        let foreign = world.vcenter.glance().into_iter().map(|vm| (vm.moref, vm.power)).collect();
        let seen = Seen { foreign, ..Seen::default() };
        Self { world, limits, seen: Arc::new(Mutex::new(seen)) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn keep_looking(self) {
        loop {
            self.look();
            sleep(LOOK).await;
        }
    }

    /// Remembers what is true now.
    fn look(&self) -> Vec<VmGlance> {
        let vms = self.world.vcenter.glance();
        let at_work = |status| matches!(status, WorkerStatus::Waiting | WorkerStatus::Building);
        let workers = self.world.cds.workers();
        let workers = workers.iter().filter(|worker| at_work(worker.status)).count() as u64;
        self.seen().note(&vms, workers);
        vms
    }

    pub(super) fn queued(&self, job: Queued) {
        self.seen().jobs.push(job);
    }

    pub(super) fn all_queued(&self) {
        self.seen().all_queued = true;
    }

    pub(super) fn have_all_arrived(&self) -> bool {
        self.seen().all_queued
    }

    pub(super) fn jobs(&self) -> Vec<Queued> {
        self.seen().jobs.clone()
    }

    pub(super) fn most(&self) -> Most {
        self.seen().most
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn shared_addresses(&self) -> Vec<IpAddr> {
        self.seen().shared_addresses.iter().copied().collect()
    }

    /// Whether the worker of this name came from a pool. `None` if its VM was never seen.
    pub(super) fn was_warm(&self, worker: &str) -> Option<bool> {
        self.seen().own.values().find(|vm| *vm.name == *worker).map(|vm| vm.was_spare)
    }

    pub(super) fn vms(&self) -> VmCounts {
        let now = self.look();
        self.seen().count(&now.into_iter().map(|vm| (vm.moref, vm.power)).collect())
    }

    /// Jobs of the demo that no worker has ended yet and that can be served.
    pub(super) fn unfinished(&self) -> Vec<JobId> {
        let jobs = self.jobs().into_iter().filter(|job| job.impossible.is_none());
        let is_open =
            |job: &JobId| self.world.cds.job(job).is_some_and(|report| !report.status.is_final());
        jobs.map(|job| job.id).filter(is_open).collect()
    }
}

impl Seen {
    fn note(&mut self, vms: &[VmGlance], workers: u64) {
        let of_roost: Vec<&VmGlance> =
            vms.iter().filter(|vm| !self.foreign.contains_key(&vm.moref)).collect();
        let mut addresses = BTreeSet::new();
        for vm in of_roost.iter().filter(|vm| vm.power == Power::On) {
            self.shared_addresses.extend(vm.ip.filter(|ip| !addresses.insert(*ip)));
        }
        // Limits are those of the hatchery's account.
        let own: Vec<&VmGlance> = of_roost.into_iter().filter(|vm| !is_theirs(&vm.name)).collect();
        let mut most = Most { workers, own_vms: own.len() as u64, ..Most::default() };
        for vm in &own {
            if vm.power == Power::On {
                most.cpus += u64::try_from(vm.cpus).unwrap_or(0);
                most.memory_mb += u64::try_from(vm.memory_mb).unwrap_or(0);
            }
            let was_spare = self
                .own
                .get(&vm.moref)
                .is_some_and(|known| known.was_spare || is_spare(&known.name));
            let known = OwnVm {
                name: Arc::clone(&vm.name),
                was_spare: was_spare && !is_spare(&vm.name),
                power: vm.power,
                is_gone: false,
            };
            self.own.insert(vm.moref.clone(), known);
        }
        let there: BTreeSet<&MoRef> = own.iter().map(|vm| &vm.moref).collect();
        for (moref, vm) in &mut self.own {
            vm.is_gone = !there.contains(moref);
        }
        self.most.raise(most);
    }

    fn count(&self, now: &BTreeMap<MoRef, Power>) -> VmCounts {
        let mut counts = VmCounts { made: self.own.len() as u64, ..VmCounts::default() };
        for vm in self.own.values() {
            if vm.is_gone {
                counts.deleted += 1;
            } else if is_spare(&vm.name) && vm.power == Power::Off {
                counts.spares += 1;
            } else {
                counts.others += 1;
            }
        }
        counts.foreign = self.foreign.len() as u64;
        let is_as_before = |(vm, power): &(&MoRef, &Power)| now.get(*vm) == Some(*power);
        counts.foreign_touched =
            counts.foreign - self.foreign.iter().filter(is_as_before).count() as u64;
        counts
    }
}

impl Most {
    fn raise(&mut self, other: Self) {
        self.workers = self.workers.max(other.workers);
        self.cpus = self.cpus.max(other.cpus);
        self.memory_mb = self.memory_mb.max(other.memory_mb);
        self.own_vms = self.own_vms.max(other.own_vms);
    }
}

fn is_spare(name: &str) -> bool {
    VmName::of(name).is_spare()
}

#[cfg(test)]
mod tests {
    use roost_vim::wire::MoType;

    use super::*;

    fn vm(number: u32, name: &str, power: Power, ip: Option<&str>) -> VmGlance {
        VmGlance {
            moref: MoRef::new(MoType::VirtualMachine, format!("vm-{number}")),
            name: name.into(),
            annotation: None,
            template: false,
            power,
            cpus: 4,
            memory_mb: 8192,
            ip: ip.map(|ip| ip.parse().unwrap()),
            has_run: power == Power::On,
        }
    }

    #[test]
    fn a_claimed_spare_is_a_warm_worker_and_a_clone_is_a_cold_one() {
        let foreign = vm(1, "web", Power::On, None);
        let mut seen =
            Seen { foreign: [(foreign.moref.clone(), Power::On)].into(), ..Seen::default() };
        let spare = vm(2, "provision-v2-debian12", Power::Off, None);
        seen.note(&[foreign.clone(), spare], 0);
        let (warm, cold) =
            (vm(2, "keen-bohr", Power::On, None), vm(3, "calm-curie", Power::On, None));
        seen.note(&[foreign.clone(), warm, cold], 2);
        let warm: Vec<_> = seen.own.values().map(|vm| (&*vm.name, vm.was_spare)).collect();
        assert_eq!(warm, [("keen-bohr", true), ("calm-curie", false)]);
        assert_eq!((seen.most.workers, seen.most.cpus, seen.most.memory_mb), (2, 8, 16384));

        seen.note(std::slice::from_ref(&foreign), 0);
        let counts = seen.count(&[(foreign.moref, Power::Off)].into());
        assert_eq!((counts.made, counts.deleted, counts.foreign_touched), (2, 2, 1));
        assert_eq!(seen.most.workers, 2, "what was is remembered");
    }

    #[test]
    fn an_address_on_two_running_vms_is_noticed() {
        let mut seen = Seen::default();
        let (a, b) =
            (vm(1, "a", Power::On, Some("10.0.0.9")), vm(2, "b", Power::On, Some("10.0.0.9")));
        seen.note(std::slice::from_ref(&a), 0);
        assert_eq!(seen.shared_addresses.len(), 0);
        seen.note(&[a, b], 0);
        assert_eq!(seen.shared_addresses.len(), 1);
    }
}
