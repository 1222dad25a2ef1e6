//! What takes time, done beside the passes.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use roost_controller::Key;
use roost_fleet::{Hold, MachineError, Power, VmId};
use roost_supervise::Chain;
use roost_vim::Reconfigure;
use roost_vim::wire::types::Hidden;

use super::plan::Failure;
use crate::api::VsphereAgent;
use crate::api::names::OWNER_KEY;
use crate::control::region::Region;
use crate::control::world::{World, lock};
use crate::metrics::{Operation, Outcome};
use crate::vcenter::{FORGE, Made, MakeError, MakeVm, Marker, Site, dress, make_vm};

/// How work on a VM ended.
#[derive(Debug)]
pub(crate) enum VmEnded {
    Made(Made),
    PoweredOn,
    Marked,
    Ejected,
    Quarantined { name: String },
    Destroyed,
    Failed { reason: &'static str, why: String, at: Timestamp },
}

impl VmEnded {
    pub(super) fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed { reason, why, at } => Some(Failure { reason, why: why.clone(), at: *at }),
            Self::Made(_)
            | Self::PoweredOn
            | Self::Marked
            | Self::Ejected
            | Self::Quarantined { .. }
            | Self::Destroyed => None,
        }
    }
}

/// What one piece of work needs.
#[derive(Debug, Clone)]
pub(super) struct Bench {
    pub(super) world: Arc<World>,
    pub(super) site: Site,
    pub(super) key: Key,
    pub(super) region: Region,
    pub(super) marker: Marker,
}

impl Bench {
    pub(super) fn new(
        world: &Arc<World>,
        site: &Site,
        region: &Region,
        agent: &VsphereAgent,
    ) -> Self {
        let (uid, namespace) = (agent.uid().unwrap_or_default(), agent.namespace());
        let pool = region.pool.name_any();
        let marker = Marker::new(&namespace.unwrap_or_default(), &pool, &uid);
        let (world, site, region) = (Arc::clone(world), site.clone(), region.clone());
        Self { world, site, key: Key::of(agent), region, marker }
    }

    /// Runs `work` beside the passes; its end calls the VsphereAgent back.
    fn start(self, work: impl Future<Output = VmEnded> + Send + 'static) {
        let (world, key) = (Arc::clone(&self.world), self.key.clone());
        world.vm_jobs.start(self.key, work, {
            let world = Arc::clone(&world);
            move || world.wake_vm(key)
        });
    }

    fn failed(&self, error: &MakeError) -> VmEnded {
        let reason = match error {
            MakeError::NameTaken { .. } => "VMNameConflict",
            MakeError::IsoMissing { .. } => "ISORefreshFailed",
            _ => "VMCreateFailed",
        };
        let why = Chain(error).to_string();
        tracing::warn!(vsphere_agent = %self.key, "{}: {why}", self.key);
        if error.is_misplaced() {
            // The pool looks everything up anew, the ISO too.
            let key = self.region.key();
            lock(&self.world.places).remove(&key);
            if matches!(error, MakeError::IsoMissing { .. }) {
                lock(&self.world.lost_isos).insert(key.clone());
            }
            self.world.wake_pool(key.0);
        }
        VmEnded::Failed { reason, why, at: self.world.now() }
    }

    fn failed_machine(&self, reason: &'static str, error: &MachineError) -> VmEnded {
        let why = Chain(error).to_string();
        tracing::warn!(vsphere_agent = %self.key, "{}: {why}", self.key);
        VmEnded::Failed { reason, why, at: self.world.now() }
    }

    pub(super) fn make(self, wanted: MakeVm) {
        let on = self.clone();
        self.start(async move {
            let made = make_vm(&on.site.fleet, &wanted).await;
            on.world.metrics.vm(Operation::Create, Outcome::of(made.is_ok()));
            match made {
                Ok(made) => VmEnded::Made(made),
                Err(error) => on.failed(&error),
            }
        });
    }

    pub(super) fn finish(self, hold: Hold) {
        let on = self.clone();
        self.start(async move {
            let made = dress(&on.site.fleet, &hold, &on.region.pool, true).await;
            on.world.metrics.vm(Operation::Create, Outcome::of(made.is_ok()));
            match made {
                Ok(made) => VmEnded::Made(made),
                Err(error) => on.failed(&error),
            }
        });
    }

    pub(super) fn power_on(self, hold: Hold) {
        let on = self.clone();
        self.start(async move {
            match on.site.fleet.machines().power_on(&hold).await {
                Ok(()) => VmEnded::PoweredOn,
                Err(error) => on.failed_machine("VMCreateFailed", &error),
            }
        });
    }

    pub(super) fn mark(self, hold: Hold) {
        let on = self.clone();
        self.start(async move {
            let extra_config = vec![(OWNER_KEY.to_owned(), Hidden(on.marker.to_string()))];
            let change = Reconfigure { extra_config, ..Reconfigure::default() };
            match on.site.fleet.machines().reconfigure(&hold, &change).await {
                Ok(()) => VmEnded::Marked,
                Err(error) => on.failed_machine("VMCreateFailed", &error),
            }
        });
    }

    pub(super) fn eject(self, hold: Hold) {
        let on = self.clone();
        self.start(async move {
            match on.site.fleet.machines().eject_images(&hold).await {
                Ok(_) => VmEnded::Ejected,
                Err(error) => on.failed_machine("VMCreateFailed", &error),
            }
        });
    }

    /// May be repeated: what is done is not done again.
    pub(super) fn quarantine(self, hold: Hold, name: String) {
        let on = self.clone();
        self.start(async move {
            let machines = on.site.fleet.machines();
            let row = on.site.fleet.mirror().vm(hold.vm());
            let is_on = row.as_ref().is_none_or(|row| row.power != Power::Off);
            let is_named = row.is_some_and(|row| *row.name == *name);
            let off = if is_on { machines.power_off(&hold).await } else { Ok(()) };
            let done = match off {
                Ok(()) if !is_named => machines.rename(&hold, &name).await,
                off => off,
            };
            match done {
                Ok(()) => VmEnded::Quarantined { name },
                Err(error) => on.failed_machine("VMDeleteFailed", &error),
            }
        });
    }

    pub(super) fn destroy(self, hold: Hold) {
        let on = self.clone();
        self.start(async move {
            hold.leaving();
            let done = on.site.fleet.machines().destroy(&hold).await;
            on.world.metrics.vm(Operation::Delete, Outcome::of(done.is_ok()));
            match done {
                Ok(()) => VmEnded::Destroyed,
                Err(error) => on.failed_machine("VMDeleteFailed", &error),
            }
        });
    }

    /// Nobody else may be at the VM.
    pub(super) fn hold(&self, vm: &VmId) -> Option<Hold> {
        self.site.fleet.machines().hold(FORGE, vm)
    }
}
