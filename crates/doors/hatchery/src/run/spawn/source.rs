//! Where a worker's VM comes from: a spare that is claimed, or a template that is cloned.

use std::net::IpAddr;
use std::sync::Arc;

use roost_fleet::{AddressGrant, Decided, Hold, MachineError, Power, Reservation, Vm, VmId};
use roost_vim::VmError;
use roost_vim::wire::types::VirtualDevice;

use super::NewWorker;
use crate::annotation::Annotation;
use crate::clone_spec::{Birth, Claim, ClaimError, Purpose};
use crate::metrics::Start;
use crate::run::holding::own_annotation;
use crate::run::spawn::Spawner;

/// What a VM will be made of, seen to be fit for it.
#[derive(Debug)]
pub(super) enum Source {
    Spare { work: Hold, spare: Arc<Vm>, annotation: Box<Annotation>, devices: Vec<VirtualDevice> },
    Template(Arc<Vm>),
}

/// Why there is nothing to make a VM of.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("somebody is at work on spare {vm}")]
    Busy { vm: VmId },
    #[error("{vm} is no spare any more")]
    NoSpare { vm: VmId },
    #[error("the disks of spare {vm}")]
    Devices { vm: VmId, source: VmError },
    #[error("claiming spare {vm}")]
    Claim { vm: VmId, source: ClaimError },
    #[error("cloning template {template}")]
    Clone { template: String, source: MachineError },
}

impl SourceError {
    pub(super) fn decided(&self) -> Decided {
        match self {
            Self::Busy { .. } | Self::NoSpare { .. } | Self::Devices { .. } => Decided::Deferred,
            Self::Clone { source, .. } if source.may_pass() => Decided::Deferred,
            Self::Claim { .. } | Self::Clone { .. } => Decided::Refused,
        }
    }

    /// From a closed set: it becomes a metric label.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Busy { .. } | Self::NoSpare { .. } | Self::Devices { .. } => "spare",
            Self::Claim { .. } => "claim-spec",
            Self::Clone { .. } => "clone-spec",
        }
    }
}

/// A VM that was to be made.
#[derive(Debug)]
pub(super) struct FailedStart {
    pub(super) error: MachineError,
    /// What was left behind, or may be.
    pub(super) left: Option<Hold>,
    /// Surely nothing was made, and the spare is as it was.
    pub(super) is_untouched: bool,
}

impl Source {
    /// What the reservation has, seen to be fit. Nothing is changed yet.
    pub(super) async fn find(
        spawner: &Spawner,
        new: &NewWorker,
        template: &Arc<Vm>,
        reservation: &Reservation,
    ) -> Result<Self, SourceError> {
        if let Some(vm) = reservation.spare() {
            return Self::find_spare(spawner, new, vm).await;
        }
        let checked = spawner
            .vms
            .check_clone(&birth(spawner, new, template, reservation.address()), template)
            .await;
        checked
            .map_err(|source| SourceError::Clone { template: template.name.to_string(), source })?;
        Ok(Self::Template(Arc::clone(template)))
    }

    async fn find_spare(
        spawner: &Spawner,
        new: &NewWorker,
        vm: &VmId,
    ) -> Result<Self, SourceError> {
        let work = spawner.vms.at_work(vm).ok_or_else(|| SourceError::Busy { vm: vm.clone() })?;
        let no_spare = || SourceError::NoSpare { vm: vm.clone() };
        let spare = spawner.mirror.vm(vm).ok_or_else(no_spare)?;
        let is_fit = |spare: &Annotation| spare.provisioning && spare.doomed.is_none();
        let annotation = own_annotation(&spare, spawner.about.hatchery())
            .filter(|annotation| spare.power == Power::Off && is_fit(annotation));
        let annotation = Box::new((*annotation.ok_or_else(no_spare)?).clone());
        let has_disk_size = new.flavor.as_ref().is_some_and(|flavor| flavor.disk_gb.is_some());
        let devices = if has_disk_size {
            let read = spawner.vcenter.devices(&vm.moref()).await;
            read.map_err(|source| SourceError::Devices { vm: vm.clone(), source })?
        } else {
            Vec::new()
        };
        claim(spawner, new, &spare, &annotation, &devices)
            .reconfigure()
            .map_err(|source| SourceError::Claim { vm: vm.clone(), source })?;
        Ok(Self::Spare { work, spare, annotation, devices })
    }

    pub(super) fn start(&self) -> Start {
        match self {
            Self::Spare { .. } => Start::Warm,
            Self::Template(_) => Start::Cold,
        }
    }

    /// The address that the guest was or will be given; `None` if it asks a DHCP server.
    pub(super) fn expected_address(&self, reservation: &Reservation) -> Option<IpAddr> {
        match self {
            Self::Spare { annotation, .. } => annotation.address(),
            Self::Template(_) => reservation.address().map(|grant| IpAddr::V4(grant.address)),
        }
    }

    /// Makes the VM and powers it on.
    pub(super) async fn make(
        self,
        spawner: &Spawner,
        new: &NewWorker,
        reservation: &mut Reservation,
    ) -> Result<Hold, FailedStart> {
        let (work, spare, annotation, devices) = match self {
            Self::Spare { work, spare, annotation, devices } => (work, spare, annotation, devices),
            Self::Template(template) => {
                let grant = reservation.address().cloned();
                let birth = birth(spawner, new, &template, grant.as_ref());
                let cloned = spawner.vms.clone_at_work(&birth, &template, reservation).await;
                return cloned.map_err(|error| {
                    let is_untouched = error.nothing_made();
                    FailedStart { error, left: None, is_untouched }
                });
            }
        };
        let claim = claim(spawner, new, &spare, &annotation, &devices);
        if let Err(error) = spawner.vms.claim_spare(&spare, &claim, reservation).await {
            let is_untouched = !error.outcome_unknown();
            // Whose it is now is not known; if it is a worker by now, it is nobody's.
            let left = (!is_untouched).then_some(work);
            return Err(FailedStart { error, left, is_untouched });
        }
        match spawner.vms.machines.power_on(&work).await {
            Ok(()) => Ok(work),
            Err(error) => Err(FailedStart { error, left: Some(work), is_untouched: false }),
        }
    }
}

fn birth<'a>(
    spawner: &'a Spawner,
    new: &'a NewWorker,
    template: &'a Vm,
    address: Option<&'a AddressGrant>,
) -> Birth<'a> {
    Birth {
        hatchery: spawner.about.hatchery(),
        name: &new.worker,
        source: &template.name,
        purpose: Purpose::Worker { model: &new.model, job: &new.job.id },
        flavor: new.flavor.as_ref(),
        address,
        process: Some(spawner.processes.own()),
        now: spawner.about.now(),
    }
}

fn claim<'a>(
    spawner: &'a Spawner,
    new: &'a NewWorker,
    spare: &'a Vm,
    annotation: &'a Annotation,
    devices: &'a [VirtualDevice],
) -> Claim<'a> {
    Claim {
        hatchery: spawner.about.hatchery(),
        spare: annotation,
        change_version: spare.change_version.as_deref(),
        worker: &new.worker,
        job: &new.job.id,
        model: &new.model,
        flavor: new.flavor.as_ref(),
        devices,
        process: Some(spawner.processes.own()),
        now: spawner.about.now(),
    }
}
