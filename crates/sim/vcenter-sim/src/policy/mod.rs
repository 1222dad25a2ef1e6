//! Storage policies: profiles, which datastores they allow, and which VMs and disks have one.
//!
//! A policy is a list of rules. A rule about tags allows the datastores that carry one of the tags; a rule about vSAN allows those that
//! are vSAN; rules about encryption and topology allow all.

mod call;
mod profile;

use std::collections::BTreeMap;

use roost_clock::Random;
use roost_vim_wire::types::VirtualMachineConfigSpec;
use roost_vim_wire::{Element, MoRef};

pub(crate) use call::call;
use profile::{Profile, Rule};

use crate::call::Failure;
use crate::inventory::DatastoreKind;
use crate::options::Options;
use crate::rest::tag_names;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Policies {
    profiles: Vec<Profile>,
    /// The profile of a VM's home (`vm-1`) or of a disk (`vm-1:2000`).
    associations: BTreeMap<String, String>,
    random: Random,
}

impl Policies {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            profiles: profile::defaults(),
            associations: BTreeMap::new(),
            random: Random::from_seed(options.seed).fork("policy"),
        }
    }

    fn get(&self, id: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.id == id)
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.get(id).is_some()
    }

    /// A VM is gone, and what was known of it.
    pub(crate) fn forget(&mut self, vm: &MoRef) {
        let of_disk = format!("{}:", vm.id);
        self.associations.retain(|key, _| *key != *vm.id && !key.starts_with(&of_disk));
    }
}

fn unknown(id: &str) -> Failure {
    let words = format!("The storage policy {id} does not exist.");
    let failure = Failure::of("InvalidArgument", words);
    failure.with("invalidProperty", &"profileId".to_owned())
}

/// Why a profile does not allow a datastore; `None` if it does.
fn obstacle(world: &World, profile: &Profile, datastore: &MoRef) -> Option<String> {
    let carried = tag_names(world, datastore);
    profile.rules.iter().find_map(|rule| match rule {
        Rule::Any => None,
        Rule::Vsan => {
            let row = world.inventory.datastores.get(datastore);
            let is_vsan = row.is_some_and(|row| row.kind == DatastoreKind::Vsan);
            (!is_vsan).then(|| "The datastore is not a vSAN datastore.".to_owned())
        }
        Rule::Tag { category, tags } => {
            let fits = |(own, tag): &(String, String)| own == category && tags.contains(tag);
            let words =
                format!("The datastore has none of the tags {} of {category}.", tags.join(", "));
            (!carried.iter().any(fits)).then_some(words)
        }
    })
}

/// The datastores that a policy allows.
pub(crate) fn compatible(world: &World, id: &str) -> Result<Vec<MoRef>, Failure> {
    let profile = world.policies.get(id).ok_or_else(|| unknown(id))?;
    let all = world.inventory.datastores.refs();
    Ok(all.filter(|datastore| obstacle(world, profile, datastore).is_none()).cloned().collect())
}

/// Which policies a request asks for: the home's, then those of its disks in their order.
pub(crate) fn asked(spec: &VirtualMachineConfigSpec) -> Vec<Option<String>> {
    let id = |profiles: &[Element]| {
        let id = profiles.first().and_then(|profile| profile.text_of("profileId"));
        id.filter(|id| !id.is_empty()).map(str::to_owned)
    };
    let disks = spec.device_change.iter().filter(|change| change.device.is_disk());
    [id(&spec.vm_profile)].into_iter().chain(disks.map(|change| id(&change.profile))).collect()
}

/// Gives a new VM's home and its disks the policies that were asked for.
pub(crate) fn associate_new(world: &mut World, vm: &MoRef, asked: &[Option<String>]) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    let disks = row.config.devices.iter().filter(|device| device.base.is_disk());
    let disks = disks.map(|device| format!("{}:{}", vm.id, device.key()));
    let keys: Vec<String> = [vm.id.to_string()].into_iter().chain(disks).collect();
    for (key, id) in keys.into_iter().zip(asked) {
        if let Some(id) = id {
            world.policies.associations.insert(key, id.clone());
        }
    }
}

/// Gives a VM's home and all of its disks a policy.
pub(crate) fn associate_all(world: &mut World, vm: &MoRef, id: &str) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    let disks = row.config.devices.iter().filter(|device| device.base.is_disk());
    let keys: Vec<String> = disks
        .map(|device| format!("{}:{}", vm.id, device.key()))
        .chain([vm.id.to_string()])
        .collect();
    for key in keys {
        world.policies.associations.insert(key, id.to_owned());
    }
}
