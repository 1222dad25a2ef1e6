//! What every moment must show.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use roost_cds::WorkerStatus;
use roost_clock::Clock as _;
use roost_fleet::Limit;
use roost_hatchery::door::{PENDING, REGISTERING, WORKERS};
use roost_vcenter_sim::{Power, VmGlance};

use super::{Invariant, Note, Seen, exceeds};
use crate::lab::guests::Working;

/// What guests with a wrong idea of their address report.
pub(crate) const MISREPORTED: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 200, 7));

/// A VM that a hatchery made, and what it says about itself.
type Noted = (VmGlance, Arc<Note>);

impl Seen {
    pub(super) fn look(&mut self) {
        let vms: Vec<VmGlance> =
            self.vcenter.glance().into_iter().filter(|vm| !vm.template).collect();
        let mut noted: Vec<Noted> = Vec::new();
        for vm in &vms {
            let note = self.notes.of(vm);
            let owner = note.as_ref().map_or("", |note| note.hatchery_name.as_str()).to_owned();
            let first = self.owners.entry(vm.moref.clone()).or_insert_with(|| owner.clone());
            if *first != owner {
                let words = format!("{} belonged to {first:?} and now to {owner:?}", vm.name);
                self.accuse(Invariant::OthersUntouched, &*vm.name, words);
            }
            let is_marked = note.as_ref().is_some_and(|note| note.to_delete);
            if is_marked && !self.registered.contains(&*vm.name) {
                self.marked.insert(vm.name.to_string());
            }
            noted.extend(note.map(|note| (vm.clone(), note)));
        }
        self.hear_workers();
        self.look_at_launches(&vms);
        self.look_at_jobs(&noted);
        self.look_at_addresses(&vms, &noted);
        self.look_at_limits(&noted);
    }

    fn hear_workers(&mut self) {
        let now = self.clock.now();
        for worker in self.cds.workers() {
            if worker.status != WorkerStatus::Disabled {
                self.alive.insert(worker.name.clone(), now);
            }
            self.registered.insert(worker.name);
        }
        for double in self.cds.double_workers() {
            if double.is_of_one_hatchery() {
                let [one, two] = &double.workers;
                let words = format!("{one} and {two} were at work on {} at once", double.job);
                self.accuse(Invariant::OneWorkerPerJob, double.job.to_string(), words);
            }
        }
    }

    fn look_at_launches(&mut self, vms: &[VmGlance]) {
        let seen = self.launches;
        let (new, ended) = self.guests.with_launches(|launches| {
            let ended: Vec<String> = launches
                .iter()
                .filter(|launch| launch.state != Working::Running)
                .map(|launch| launch.vm.clone())
                .collect();
            (launches[seen..].to_vec(), ended)
        });
        self.launches += new.len();
        // One that has come and gone between two looks was registered as well.
        self.registered.extend(ended);
        for launch in new {
            if !self.launched.insert(launch.vm.clone()) {
                let words = format!("{} was launched a second time", launch.vm);
                self.accuse(Invariant::OneLaunchPerVm, &launch.vm, words);
            }
        }
        // Another VM may draw the name of one that is gone.
        self.launched.retain(|name| vms.iter().any(|vm| *vm.name == **name));
    }

    /// A VM that is marked and off cannot serve its job any more; any other can.
    fn look_at_jobs(&mut self, noted: &[Noted]) {
        let mut serving: HashMap<(&str, &str), Vec<&str>> = HashMap::new();
        for (vm, note) in noted {
            let is_over = note.to_delete && vm.power == Power::Off;
            if !matches!(note.job_id.as_str(), "" | "0") && !is_over {
                serving.entry((&note.hatchery_name, &note.job_id)).or_default().push(&vm.name);
            }
        }
        for ((_, job), vms) in serving {
            if vms.len() > 1 {
                let words = format!("job {job} has {} VMs: {}", vms.len(), vms.join(", "));
                self.accuse(Invariant::OneWorkerPerJob, job, words);
            }
        }
    }

    fn look_at_addresses(&mut self, vms: &[VmGlance], noted: &[Noted]) {
        let mut holders: BTreeMap<IpAddr, Vec<&VmGlance>> = BTreeMap::new();
        let noted = noted.iter().map(|(vm, note)| (vm, note.ip_address.parse().ok()));
        for (vm, address) in vms.iter().map(|vm| (vm, vm.ip)).chain(noted) {
            let Some(address) = address.filter(|address| *address != MISREPORTED) else { continue };
            if self.only_addresses_in_use && vm.power == Power::Off {
                continue;
            }
            let holders = holders.entry(address).or_default();
            if holders.iter().all(|holder| holder.moref != vm.moref) {
                holders.push(vm);
            }
        }
        for (address, holders) in holders {
            if holders.len() > 1 {
                let names: Vec<&str> = holders.iter().map(|vm| &*vm.name).collect();
                let words = format!("{address} belongs to {}", names.join(" and "));
                self.accuse(Invariant::OneVmPerAddress, address.to_string(), words);
            }
        }
    }

    /// Workers are those that start and those that CDS counts on; CPUs and memory are those of all VMs that are on.
    fn look_at_limits(&mut self, noted: &[Noted]) {
        let now = self.clock.now();
        for (hatchery, expected) in self.expected.clone() {
            let limits = expected.limits;
            let on = |(vm, note): &&Noted| note.hatchery_name == hatchery && vm.power == Power::On;
            let works = |(vm, note): &&Noted| {
                let is_spare = vm.name.starts_with("provision-") || vm.name.starts_with("retired-");
                // CDS has known its worker and does not count on it any more.
                let has_ended = self.registered.contains(&*vm.name)
                    && self.alive.get(&*vm.name).is_none_or(|alive| *alive < now);
                !is_spare && !note.to_delete && !has_ended
            };
            let registers =
                |(vm, note): &&Noted| note.register_only || note.model || vm.name.ends_with("-tmp");
            let running: Vec<&Noted> = noted.iter().filter(on).collect();
            let working: Vec<&Noted> = running.iter().copied().filter(works).collect();
            let count = |number: usize| number as u64;
            let registering = count(working.iter().copied().filter(|vm| registers(vm)).count());
            let waits = |(vm, note): &&Noted| {
                !registers(&&(vm.clone(), Arc::clone(note))) && !self.registered.contains(&*vm.name)
            };
            let pending = count(working.iter().copied().filter(|vm| waits(vm)).count());
            let cpus: u64 = running.iter().map(|(vm, _)| u64::try_from(vm.cpus).unwrap()).sum();
            let memory: u64 =
                running.iter().map(|(vm, _)| u64::try_from(vm.memory_mb).unwrap()).sum();
            let names = |vms: &[&Noted]| -> String {
                vms.iter().flat_map(|(vm, _)| [" ", &*vm.name]).collect()
            };
            let checks: [(&str, u64, Limit, String); 5] = [
                ("workers", count(working.len()), limits.of(WORKERS), names(&working)),
                ("starting workers", pending, limits.of(PENDING), names(&working)),
                ("registering workers", registering, limits.of(REGISTERING), names(&working)),
                ("CPUs", cpus, limits.cpus, names(&running)),
                ("MB of memory", memory, limits.memory_mb, names(&running)),
            ];
            for (what, number, limit, who) in checks {
                if exceeds(limit, number) {
                    let words = format!("{hatchery} has {number} {what} of {limit}:{who}");
                    self.accuse(Invariant::WithinLimits, format!("{hatchery} {what}"), words);
                }
            }
        }
    }
}
