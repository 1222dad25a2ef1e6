//! What flows do on vSphere. Reads come from the fleet's mirror and close-up, changes go through its machines.

mod backup;
mod compute;
mod config;
mod copies;
mod create;
mod delete;
mod fast_deploy;
mod find;
mod iso;
mod places;
mod power;
mod prereq;
mod seen;
mod settings;
mod snapshot;
mod status;
mod steps;
mod stores;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_controller::Key;
use roost_fleet::{
    AddressPlan, Amounts, Claim, DoorName, Fleet, Guard, Holding, Limit, Limits, Marks, Need,
    Quota, Recognise, Vm, VmId,
};

pub(crate) use self::backup::{
    backup_keys, decode as decode_backup, disk_keys, is_paused as is_backup_paused, note_version,
    secret_keys,
};
pub(crate) use self::compute::Compute;
pub(crate) use self::config::{
    Reach, Wanted, WantedCdrom, WantedNic, differences, extra_config_kept, is_empty,
};
pub(crate) use self::copies::{Copies, Ended as CopyEnded};
pub(crate) use self::create::config_of;
pub(crate) use self::fast_deploy::{Cached, Linked};
pub(crate) use self::find::find;
pub(crate) use self::iso::path_of_uri;
pub(crate) use self::places::{Place, PlaceError, Places, stands_on};
pub(crate) use self::prereq::{Missing, Prereqs, Source, look as look_at_prereqs, secrets_of};
pub(crate) use self::seen::Seen;
pub use self::settings::{EXTENSION_KEY, FastDeployMode, Features, ProviderSettings, Zone};
pub(crate) use self::status::{
    Around, GroupLink, Probed, class_reference, mark_pause, mark_ready, parse_nanoseconds,
    power_state, reconcile_status, walk,
};
pub(crate) use self::steps::{Running, Steps};
pub(crate) use self::stores::Stores;

use crate::api::names::{SUPERVISOR_EXTENSION, extra_config};
use crate::flow::{Done, Flow, Halt};
use crate::images::Descriptors;

pub const DOOR: DoorName = DoorName::new("vm-operator");
/// Whose VMs are, in a claim. Objects of any cluster may have made them; each object touches only what has its identity.
pub const OWNER: &str = "vm-operator";
/// Where vCenter cannot be waited on, VMs are read this often instead. For whoever makes the client.
pub const READ_INSTEAD: Duration = Duration::from_secs(5);
/// VMs that are being made.
pub const CREATES: Quota = Quota::passing("creates");

/// VMs are recognised by the key that names their object.
#[derive(Debug, Clone, Copy)]
pub struct OwnVms;

impl Recognise for OwnVms {
    fn needs(&self) -> &[Need] {
        &[
            Need::InstanceUuid,
            Need::ExtraConfig(extra_config::NAMESPACED_NAME),
            Need::ExtraConfig(extra_config::PAUSE),
        ]
    }

    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        let name = vm.extra_config(extra_config::NAMESPACED_NAME)?;
        let request = name.contains('/').then(|| name.into())?;
        // A template keeps the key of the VM that it was made of.
        (!vm.template).then(|| Claim { request: Some(request), ..Claim::of(DOOR, OWNER) })
    }
}

/// The key of the object that a VM belongs to.
pub(crate) fn key_of(row: &Vm) -> Option<Key> {
    let claim = row.claim.as_ref().filter(|claim| claim.door == DOOR)?;
    let (namespace, name) = claim.request.as_ref()?.split_once('/')?;
    Some(Key::new(namespace, name))
}

pub(crate) struct Provider {
    pub(crate) fleet: Fleet,
    pub(crate) settings: Arc<ProviderSettings>,
    pub(crate) places: Places,
    pub(crate) steps: Steps,
    /// Files of images that are copied or removed.
    pub(crate) copies: Copies,
    pub(crate) descriptors: Descriptors,
    pub(crate) linked: Linked,
    guard: Mutex<Guard>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Provider {
    pub(crate) fn new(fleet: Fleet, settings: ProviderSettings) -> Self {
        let limits = Limits::default().quota(CREATES, Limit::At(settings.max_creates.max(1)));
        fleet.open_account(DOOR, limits, AddressPlan::default());
        let settings = Arc::new(settings);
        Self {
            places: Places::new(fleet.clone(), Arc::clone(&settings)),
            steps: Steps::default(),
            copies: Copies::default(),
            descriptors: Descriptors::default(),
            linked: Linked::default(),
            guard: Mutex::new(fleet.guard(OWNER)),
            settings,
            fleet,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.fleet.now()
    }

    /// Whether the view of vCenter can be decided on.
    pub(crate) fn check_view(&self) -> Flow {
        let freshness = self.fleet.mirror().freshness();
        if freshness.as_of.is_some() {
            return Ok(());
        }
        Err(Halt::Requeue(std::time::Duration::from_secs(1)))
    }

    /// Whether changes of VMs are told at present.
    pub(crate) fn has_signals(&self) -> bool {
        let freshness = self.fleet.mirror().freshness();
        freshness.complete && freshness.trouble.is_none()
    }

    /// The VM closely. It is asked for here, and shown some time later.
    pub(crate) fn see(&self, row: &Arc<Vm>) -> Flow<Seen> {
        let close_up = self.fleet.close_up();
        if close_up.look_at(&row.id).is_err() {
            return Err(Halt::failed(format!("{} is not marked as ours", row.name)));
        }
        let Some(detail) = close_up.of(&row.id).filter(|detail| detail.hardware().is_some()) else {
            return Err(Halt::Done(Done::NotSeenYet));
        };
        let seen = Seen { row: Arc::clone(row), detail };
        self.check_not_supervised(&seen)?;
        Ok(seen)
    }

    /// A VM of the platform of VMware itself has the same marks as ours. It is left alone, unless we are told to work under its name.
    fn check_not_supervised(&self, seen: &Seen) -> Flow {
        let is_theirs = seen.managed_by().as_deref() == Some(SUPERVISOR_EXTENSION)
            && self.settings.extension_key != SUPERVISOR_EXTENSION;
        if is_theirs {
            let name = &seen.row.name;
            return Err(Halt::NoRequeue(format!(
                "{name} is managed by {SUPERVISOR_EXTENSION}, the vSphere Supervisor, and left alone; ExtensionKey says under whose name VMs are managed here"
            )));
        }
        Ok(())
    }

    /// Whether somebody works at the VM.
    pub(crate) fn is_busy(&self, key: &Key, vm: &VmId) -> bool {
        self.steps.running(key).is_some() || self.fleet.machines().is_held(vm)
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.steps.forget(key);
    }

    /// What a VM takes of this door's account.
    pub(crate) fn holding(vm: &Vm) -> Holding {
        let own = vm.claim.as_ref().is_some_and(|claim| claim.door == DOOR);
        Holding {
            own,
            request: vm.request().filter(|_| own).cloned(),
            amounts: if own {
                Amounts { cpus: vm.cpus.into(), memory_mb: vm.memory_mb, ..Amounts::default() }
            } else {
                Amounts::default()
            },
            ends: None,
        }
    }
}
