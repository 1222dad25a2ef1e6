//! Making a VM, and finishing one that an earlier attempt made.

use std::sync::Arc;

use roost_fleet::{
    AddressNeed, Amounts, Ask, Draft, Fleet, Hold, Holding, Machine, MachineError, NotMade, Owner,
    Refusal, Vm, VmId,
};
use roost_vim::{CallError, FileError, PlacementError, VmError};

use super::hardware::{HardwareError, hardware};
use super::marker::{FORGE, MACHINES, Marker};
use super::place::{Disks, Place};
use crate::api::{PoolDefaults, VsphereAgentPool};
use crate::identity;
use crate::planted::{self, Bug};

/// One VM to be made.
#[derive(Debug, Clone)]
pub struct MakeVm {
    pub pool: Arc<VsphereAgentPool>,
    pub place: Arc<Place>,
    pub marker: Marker,
    pub name: String,
    /// On the ISO datastore.
    pub iso_path: String,
}

/// A VM that runs, with what it is told apart by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub vm: VmId,
    pub bios_uuid: String,
    pub mac_address: String,
    /// An earlier attempt made it.
    pub recovered: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// Somebody else's VM has the name.
    #[error("a VM called {name} is there already and is not ours ({existing})")]
    NameTaken { name: String, existing: VmId },
    #[error("the ISO {path} is not on its datastore")]
    IsoMissing { path: String },
    #[error("looking for the ISO")]
    Iso { source: Box<FileError> },
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    #[error("choosing a datastore")]
    Placement { source: PlacementError },
    #[error("reading the datastore that was chosen")]
    Datastore { source: CallError },
    #[error("no room for another VM")]
    Refused { source: Refusal },
    #[error("somebody else is at {vm}")]
    Held { vm: VmId },
    #[error(transparent)]
    Machine(Box<MachineError>),
}

impl From<MachineError> for MakeError {
    fn from(error: MachineError) -> Self {
        Self::Machine(Box::new(error))
    }
}

impl MakeError {
    /// Something was not where it was: places must be looked up anew.
    pub fn is_misplaced(&self) -> bool {
        match self {
            Self::Placement { .. } | Self::Datastore { .. } | Self::IsoMissing { .. } => true,
            Self::Machine(error) => error.is_gone(),
            Self::NameTaken { .. }
            | Self::Iso { .. }
            | Self::Hardware(_)
            | Self::Refused { .. }
            | Self::Held { .. } => false,
        }
    }
}

/// Creates the VM of this marker, or takes over the one that an earlier attempt made; then tags it, powers it on and reads who it is.
pub async fn make_vm(fleet: &Fleet, wanted: &MakeVm) -> Result<Made, MakeError> {
    let MakeVm { pool, place, marker, name, iso_path } = wanted;
    let client = fleet.client();
    let files = client.observe_datastore(&place.datacenter, &place.iso_datastore).await;
    let files = files.map_err(|source| MakeError::Iso { source: Box::new(source) })?;
    let iso = files
        .stat(&files.path(iso_path))
        .await
        .map_err(|source| MakeError::Iso { source: Box::new(source) })?;
    if iso.is_none() {
        return Err(MakeError::IsoMissing { path: iso_path.clone() });
    }
    let mut request = hardware(pool, place, marker, name, iso_path)?;
    if let Disks::Cluster(cluster) = &place.disks {
        let chosen = client.recommend_for_create(&request, cluster).await;
        let chosen = chosen.map_err(|source| MakeError::Placement { source })?;
        let read = client.properties(&chosen, &["name"]).await;
        let read = read.map_err(|source| MakeError::Datastore { source })?;
        read.str("name").unwrap_or_default().clone_into(&mut request.datastore);
        request.disks.iter_mut().for_each(|disk| disk.datastore = Some(chosen.clone()));
    }
    let owner = marker.owner();
    let mut reservation = reserve(fleet, wanted)?;
    let made =
        fleet.machines().create_vm(Owner { door: FORGE, name: &owner }, &request, &mut reservation);
    let hold = match made.await {
        Ok(hold) => {
            reservation.commit();
            hold
        }
        Err(NotMade { error, left }) => {
            if error.nothing_made() {
                reservation.release();
            }
            // Ours, though the answer was lost: it is finished like any other that was found.
            match left {
                Some(hold) if !is_name_taken(&error) => hold,
                _ if planted::is(Bug::ForgetsMarkers) && is_name_taken(&error) => {
                    let taken = name_taken(&error).and_then(|vm| fleet.machines().hold(FORGE, &vm));
                    taken.ok_or_else(|| taken_error(error, name))?
                }
                _ => return Err(taken_error(error, name)),
            }
        }
    };
    dress(fleet, &hold, pool, false).await
}

/// Tags, power, identity. Safe to repeat.
pub async fn dress(
    fleet: &Fleet,
    hold: &Hold,
    pool: &VsphereAgentPool,
    recovered: bool,
) -> Result<Made, MakeError> {
    let machines = fleet.machines();
    if !pool.spec.vsphere.vm_tags.is_empty() {
        machines.attach_tags(hold, &pool.spec.vsphere.vm_tags).await?;
    }
    if !fleet.mirror().vm(hold.vm()).is_some_and(|row| row.is_on()) {
        machines.power_on(hold).await?;
    }
    let found = machines.identity(hold.vm()).await?;
    Ok(Made {
        vm: hold.vm().clone(),
        bios_uuid: identity::uuid(found.uuid.as_deref().unwrap_or_default()),
        mac_address: found.macs.first().map(|mac| identity::mac(mac)).unwrap_or_default(),
        recovered,
    })
}

/// Tells the ledger what is there. It must hear of VMs also while nothing is asked of it, or it takes them for promises.
pub(crate) fn observe(fleet: &Fleet) {
    let (now, snapshot) = (fleet.now(), fleet.mirror().snapshot());
    fleet.ledger().observe(FORGE, &snapshot, now, holding);
}

fn reserve(fleet: &Fleet, wanted: &MakeVm) -> Result<roost_fleet::Reservation, MakeError> {
    observe(fleet);
    let now = fleet.now();
    let mut ledger = fleet.ledger();
    let cpus = u64::try_from(wanted.pool.cpus()).unwrap_or_default();
    let memory_mb = u64::try_from(wanted.pool.memory_mib()).unwrap_or_default();
    let ask = Ask {
        request: FORGE.request(wanted.marker.uid.as_str()),
        name: Some(wanted.name.as_str().into()),
        amounts: Amounts { cpus, memory_mb, ..Amounts::default() }.count(MACHINES, 1),
        pool: None,
        machine: Machine::Fresh { address: AddressNeed::Dhcp },
    };
    ledger.reserve(ask, now).map_err(|source| {
        fleet.journal().record(Draft::from(&source), now);
        MakeError::Refused { source }
    })
}

fn holding(vm: &Vm) -> Holding {
    let own = vm.claim.as_ref().is_some_and(|claim| claim.door == FORGE);
    let amounts = Amounts { cpus: vm.cpus.into(), memory_mb: vm.memory_mb, ..Amounts::default() };
    Holding {
        own,
        request: vm.request().filter(|_| own).cloned(),
        amounts: if own { amounts.count(MACHINES, 1) } else { Amounts::default() },
        ends: None,
    }
}

fn name_taken(error: &MachineError) -> Option<VmId> {
    match error {
        MachineError::NotMade(why) => name_taken(why),
        MachineError::Vm { source: VmError::NameTaken { existing, .. }, .. } => {
            Some(VmId::from(existing))
        }
        _ => None,
    }
}

fn is_name_taken(error: &MachineError) -> bool {
    name_taken(error).is_some()
}

fn taken_error(error: MachineError, name: &str) -> MakeError {
    match name_taken(&error) {
        Some(existing) => MakeError::NameTaken { name: name.to_owned(), existing },
        None => MakeError::Machine(Box::new(error)),
    }
}
