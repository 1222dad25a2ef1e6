use roost_vim::wire::types::Hidden;
use roost_vim::{CallError, Customization, Faulted, Reconfigure};

use super::retry::{Again, Pauses};
use super::{Hold, MachineError, Machines};
use crate::{Phase, VmId, Wrote};

/// Name and annotation of a VM, and the version of its configuration that they are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    pub annotation: String,
    pub version: Option<String>,
}

/// What is to be written over a [`Label`].
#[derive(Debug)]
pub enum Rewrite {
    Write(Box<Reconfigure>),
    /// It says already what it should.
    Done,
    Refuse(MachineError),
}

impl Machines {
    /// Changes a VM in one request: what is set changes, all else stays.
    pub async fn reconfigure(&self, hold: &Hold, change: &Reconfigure) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let again = Again::WhileItMayPass;
        let attempt = || self.client().reconfigure(&vm, change);
        self.change(hold, Phase::RECONFIGURING, self.wrote(change), again, attempt).await
    }

    pub async fn rename(&self, hold: &Hold, name: &str) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let named = Wrote::new().name(name);
        let attempt = || self.client().rename(&vm, name);
        self.change(hold, Phase::RECONFIGURING, named, Again::WhileItMayPass, attempt).await
    }

    /// Sets what the guest is told at its next power on. The VM must be off.
    pub async fn customise(
        &self,
        hold: &Hold,
        customization: &Customization,
    ) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let again = Again::WhileItMayPass;
        let attempt = || self.client().customize(&vm, customization);
        self.change(hold, Phase::CUSTOMISING, Wrote::new(), again, attempt).await
    }

    /// Makes a template of a VM that is off.
    pub async fn mark_as_template(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let template = Wrote::new().template(true);
        let attempt = || self.client().mark_as_template(&vm);
        self.change(hold, Phase::TEMPLATING, template, Again::WhileItMayPass, attempt).await
    }

    /// Writes over a VM's label what `decide` makes of it, and only over what it was made of: if somebody else changes the VM in between, it is read
    /// and decided anew. A change whose answer was lost is found out by the same look. So it needs no hold. `Ok(false)` if the VM is gone.
    pub async fn rewrite(
        &self,
        vm: &VmId,
        phase: Phase,
        mut decide: impl FnMut(&Label) -> Rewrite,
    ) -> Result<bool, MachineError> {
        let Some(label) = self.known_label(vm) else { return Ok(false) };
        let machine = label.name.clone();
        let mut pauses = Pauses::within(self.longest(phase));
        let writing = async {
            let (mut label, mut is_fresh) = (Some(label), false);
            loop {
                let mut error = None;
                if let Some(known) = label.take() {
                    let change = match decide(&known) {
                        Rewrite::Done => return Ok(true),
                        Rewrite::Refuse(why) => return Err(why),
                        // Without a version anybody's change would be overwritten. Where a server has none, the look before is all there is.
                        Rewrite::Write(_) if known.version.is_none() && !is_fresh => None,
                        Rewrite::Write(change) => {
                            Some(Reconfigure { change_version: known.version, ..*change })
                        }
                    };
                    if let Some(change) = change {
                        let refused = match self.client().reconfigure(&vm.moref(), &change).await {
                            Ok(()) => {
                                self.mirror().changed(vm, self.wrote(&change));
                                return Ok(true);
                            }
                            Err(refused) if refused.is_fault("ManagedObjectNotFound") => {
                                return Ok(false);
                            }
                            Err(refused) => refused,
                        };
                        let is_raced = refused.is_fault("ConcurrentAccess");
                        let refused = MachineError::vm(phase, &machine)(refused);
                        let may_pass = is_raced || refused.outcome_unknown() || refused.may_pass();
                        if !may_pass || !pauses.pause().await {
                            return Err(refused);
                        }
                        error = Some(refused);
                    }
                }
                match self.read_label(vm).await {
                    Ok(Some(now)) => (label, is_fresh) = (Some(now), true),
                    Ok(None) => return Ok(false),
                    // The next look will tell.
                    Err(_) if pauses.pause().await => {}
                    Err(unread) => {
                        let unread = MachineError::call(phase, &machine)(unread);
                        return Err(error.unwrap_or(unread));
                    }
                }
            }
        };
        self.phase(&machine, phase, writing).await
    }

    /// By what the mirror shows; `None` if the VM is gone.
    fn known_label(&self, vm: &VmId) -> Option<Label> {
        let row = self.mirror().vm(vm)?;
        Some(Label {
            name: row.name.to_string(),
            annotation: row.annotation.as_deref().unwrap_or_default().to_owned(),
            version: row.change_version.as_deref().map(str::to_owned),
        })
    }

    /// By what the server says now; `None` if the VM is gone.
    pub async fn read_label(&self, vm: &VmId) -> Result<Option<Label>, CallError> {
        const PATHS: &[&str] = &["name", "config.annotation", "config.changeVersion"];
        let read = match self.client().properties(&vm.moref(), PATHS).await {
            Ok(read) => read,
            Err(error) if error.is_fault("ManagedObjectNotFound") => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = |path| read.str(path).unwrap_or_default().to_owned();
        Ok(Some(Label {
            name: text("name"),
            annotation: text("config.annotation"),
            version: read.str("config.changeVersion").map(str::to_owned),
        }))
    }

    /// What a change makes of a VM, as far as the mirror shows it.
    fn wrote(&self, change: &Reconfigure) -> Wrote {
        let mut wrote = Wrote::new();
        if let Some(name) = &change.name {
            wrote = wrote.name(name.as_str());
        }
        if let Some(annotation) = &change.annotation {
            wrote = wrote.annotation(annotation.as_str());
        }
        if let Some(cpus) = change.cpus.and_then(|cpus| cpus.try_into().ok()) {
            wrote = wrote.cpus(cpus);
        }
        if let Some(memory) = change.memory_mb.and_then(|memory| memory.try_into().ok()) {
            wrote = wrote.memory_mb(memory);
        }
        self.with_extra_config(wrote, &change.extra_config)
    }

    /// And those values of `extraConfig` that a door needs. The others may be secret, and are nobody's here.
    pub(super) fn with_extra_config(&self, mut wrote: Wrote, values: &[(String, Hidden)]) -> Wrote {
        for (key, value) in values {
            if let Some(key) = self.mirror().extra_config_key(key) {
                wrote = wrote.extra_config(key, value.0.as_str());
            }
        }
        wrote
    }
}
