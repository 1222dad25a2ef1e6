//! What must hold once demand and faults have ended and time has passed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use roost_vcenter_sim::{Power, VmView};

use super::{BETWEEN_LOOKS, Invariant, Note, Seen, Truth};
use crate::lab::guests::Working;
use crate::lab::service::Service;
use crate::lab::setup::user;
use crate::lab::world::World;

/// From a VM that is to be a worker to its launch, at most.
const MAKING: Duration = Duration::from_mins(10);

impl Truth {
    /// Strangers' VMs are as they were, and nobody has done anything to a VM of another.
    pub(crate) fn others_are_untouched(&self, world: &World) {
        let mut seen = self.shared.lock().unwrap();
        for before in &world.strangers {
            let now = world.vcenter.vm(&before.name);
            if now.as_ref().map(shape) != Some(shape(before)) {
                let words = format!("{} was {before:?} and is {now:?}", before.name);
                seen.accuse(Invariant::OthersUntouched, &before.name, words);
            }
        }
        let users: BTreeMap<String, String> =
            seen.expected.keys().map(|hatchery| (user(hatchery), hatchery.clone())).collect();
        for event in world.vcenter.events() {
            let Some(hatchery) = users.get(&event.user_name) else { continue };
            let Some(vm) = event.vm.as_ref().and_then(|vm| vm.vm.clone()) else { continue };
            let what = event.full_formatted_message.unwrap_or_default();
            // To be cloned does nothing to a VM: V1 templates serve all hatcheries.
            if what.contains("CloneVM_Task") || what.starts_with("Cloning ") {
                continue;
            }
            let owner = seen.owners.get(&vm).cloned();
            if owner.is_some_and(|owner| owner != *hatchery) {
                let words = format!("{hatchery} touched another's VM {}: {what}", vm.id);
                seen.accuse(Invariant::OthersUntouched, &*vm.id, words);
            }
        }
    }

    /// No VM went down under a worker that CDS still counted on, unless it was too old, was given up by its hatchery before, or fell to somebody
    /// else.
    pub(crate) fn work_is_undisturbed(&self, worker_ttl: Duration, disturbed: &BTreeSet<String>) {
        let look = jiff::SignedDuration::try_from(BETWEEN_LOOKS).unwrap();
        let mut seen = self.shared.lock().unwrap();
        for launch in seen.guests.launches() {
            let Working::CutShort(at) = launch.state else { continue };
            let last_alive = seen.alive.get(&launch.vm).copied();
            // CDS counts on a worker for some minutes after its death.
            let was_alive = last_alive.is_some_and(|alive| at.duration_since(alive) <= look);
            // It became a worker some minutes before it was launched.
            let age = at.duration_since(launch.at).unsigned_abs() + MAKING;
            let excused = seen.marked.contains(&launch.vm) || disturbed.contains(&launch.vm);
            if was_alive && age < worker_ttl && !excused {
                let words = format!("{} was taken from under its worker, {age:?} old", launch.vm);
                seen.accuse(Invariant::WorkUndisturbed, &launch.vm, words);
            }
        }
    }

    /// Each job has ended, or the hatchery that must say something about it does.
    pub(crate) fn every_job_is_explained(&self, world: &World, services: &[&Service]) {
        let mut seen = self.shared.lock().unwrap();
        for job in world.cds.jobs() {
            if job.status.is_final() {
                continue;
            }
            let is_explained = services.iter().any(|service| service.verdict(&job.id).is_some());
            if !is_explained {
                let words = format!("job {} is {:?} and nobody says why", job.id, job.status);
                seen.accuse(Invariant::EveryJobExplained, job.id.to_string(), words);
            }
        }
    }

    /// What is left of a hatchery's VMs is what its pools ask for.
    pub(crate) fn nothing_is_left(&self, world: &World, service: &Service) {
        let mut seen = self.shared.lock().unwrap();
        for (whom, words) in leftovers(&seen, world, service) {
            seen.accuse(Invariant::NothingLeft, whom, words);
        }
    }

    /// Whether [`Self::nothing_is_left`] would find anything now.
    pub(crate) fn is_anything_left(&self, world: &World, service: &Service) -> bool {
        !leftovers(&self.shared.lock().unwrap(), world, service).is_empty()
    }

    pub(crate) fn accuse(&self, invariant: Invariant, whom: &str, words: &str) {
        self.shared.lock().unwrap().accuse(invariant, whom, words);
    }
}

fn leftovers(seen: &Seen, world: &World, service: &Service) -> Vec<(String, String)> {
    let mut missing = seen.expected[service.name()].spares.clone();
    let mut wrong = Vec::new();
    for vm in world.vms_of(service.name()) {
        let note = Note::of(&vm).unwrap_or_default();
        let is_ready = vm.power == Power::Off && note.provisioning && !note.to_delete;
        let kind = if vm.name.starts_with("provision-v1") {
            &note.worker_model_path
        } else {
            &note.vmware_model_path
        };
        let wanted = missing.get_mut(kind).filter(|number| is_ready && **number > 0);
        if let Some(number) = wanted {
            *number -= 1;
        } else {
            let annotation = vm.annotation.as_deref().unwrap_or_default();
            let words = format!("{} is left, {:?}: {annotation}", vm.name, vm.power);
            wrong.push((vm.name.to_string(), words));
        }
    }
    for (kind, number) in missing {
        if number > 0 {
            wrong.push((kind.clone(), format!("{number} spares of {kind} are missing")));
        }
    }
    wrong
}

/// What of a stranger's VM must stay as it is.
fn shape(vm: &VmView) -> impl PartialEq + std::fmt::Debug {
    (
        (vm.moref.clone(), vm.path.clone(), vm.annotation.clone(), vm.power),
        (vm.cpus, vm.memory_mb, vm.uuid.clone(), vm.pool.clone(), vm.snapshots.clone()),
    )
}
