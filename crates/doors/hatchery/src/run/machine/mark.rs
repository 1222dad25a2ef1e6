use std::time::Duration;

use roost_fleet::{VmId, Wrote};
use roost_vim::{CallError, Faulted, Reconfigure};
use tokio::time::timeout;

use super::error::vm_may_pass;
use super::{Pauses, Step, StepError};
use crate::annotation::{Annotation, Doom};
use crate::clone_spec::mark_for_deletion;
use crate::names::VmName;
use crate::run::nest::Nest;

const MARKING: Duration = Duration::from_mins(2);

/// What becomes of a spare that turns out to be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claimed {
    Spared,
    Marked,
}

/// Name and annotation of a VM, and the version of its configuration that they are from.
#[derive(Debug, Clone)]
pub(super) struct Label {
    pub(super) name: String,
    pub(super) annotation: String,
    pub(super) version: Option<String>,
}

impl Nest {
    /// Writes into the VM's own annotation that it is to be deleted. Fine when it is gone, or marked already.
    ///
    /// Written only over what was read: a spare that somebody claimed in the meantime is left alone (W15).
    pub(crate) async fn mark(&self, vm: &VmId, reason: &str) -> Result<(), StepError> {
        self.mark_over(vm, &reason.into(), Claimed::Spared).await
    }

    /// As [`Self::mark`], for a person: also if it is marked already, or its worker is at work.
    pub(crate) async fn mark_as_asked(&self, vm: &VmId, reason: &str) -> Result<(), StepError> {
        self.mark_over(vm, &Doom::asked_for(reason), Claimed::Spared).await
    }

    /// As [`Self::mark`], also if the VM became a worker meanwhile: for a claim whose answer was lost.
    pub(crate) async fn mark_claimed(&self, vm: &VmId, reason: &str) -> Result<(), StepError> {
        self.mark_over(vm, &reason.into(), Claimed::Marked).await
    }

    async fn mark_over(&self, vm: &VmId, doom: &Doom, claimed: Claimed) -> Result<(), StepError> {
        let Some(label) = self.known_label(vm) else { return Ok(()) };
        let machine = label.name.clone();
        let marking = self.write_mark(vm, label, doom, claimed);
        if let Ok(marked) = timeout(MARKING, marking).await {
            return marked;
        }
        let (step, seen) = (Step::Marking, String::new());
        Err(StepError::Overdue { step, machine, after: MARKING, seen })
    }

    async fn write_mark(
        &self,
        vm: &VmId,
        mut label: Label,
        doom: &Doom,
        claimed: Claimed,
    ) -> Result<(), StepError> {
        let (step, machine) = (Step::Marking, label.name.clone());
        let was_spare = VmName::of(&label.name).is_spare();
        let mut pauses = Pauses::within(MARKING);
        loop {
            let own = Annotation::parse(&label.annotation).ok();
            let Some(annotation) = own.filter(|known| known.is_of(self.hatchery())) else {
                return Err(StepError::Foreign { step, machine, vm: vm.clone() });
            };
            if annotation.is_doomed_as(doom) {
                return Ok(());
            }
            if was_spare && !annotation.provisioning && claimed == Claimed::Spared {
                return Err(StepError::Changed { step, machine, vm: vm.clone() });
            }
            let change = Reconfigure {
                change_version: label.version.clone(),
                ..mark_for_deletion(&label.name, &annotation, doom.clone())
            };
            let error = match self.vcenter.reconfigure(&vm.moref(), &change).await {
                Ok(()) => {
                    self.mirror.changed(vm, wrote(&change));
                    return Ok(());
                }
                Err(error) if error.is_fault("ManagedObjectNotFound") => return Ok(()),
                Err(error) => error,
            };
            let is_worth_a_look = error.is_fault("ConcurrentAccess")
                || error.outcome_unknown()
                || vm_may_pass(&error);
            if !is_worth_a_look || !pauses.pause().await {
                return Err(StepError::vm(step, &machine)(error));
            }
            match self.read_label(vm).await {
                Ok(Some(read)) => label = read,
                Ok(None) => return Ok(()),
                // The next attempt will tell.
                Err(_) => {}
            }
        }
    }

    /// By what the mirror shows; `None` if the VM is gone.
    pub(super) fn known_label(&self, vm: &VmId) -> Option<Label> {
        let row = self.mirror.vm(vm)?;
        Some(Label {
            name: row.name.to_string(),
            annotation: row.annotation.as_deref().unwrap_or_default().to_owned(),
            version: row.change_version.as_deref().map(str::to_owned),
        })
    }

    /// By what the server says now; `None` if the VM is gone.
    pub(super) async fn read_label(&self, vm: &VmId) -> Result<Option<Label>, CallError> {
        const PATHS: &[&str] = &["name", "config.annotation", "config.changeVersion"];
        let read = match self.vcenter.properties(&vm.moref(), PATHS).await {
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

    /// Looks for a VM of ours by its name, first in the mirror and then on the server. One that only the server knows is in the mirror
    /// afterwards.
    pub(super) async fn find_own(&self, name: &str) -> Result<Option<VmId>, CallError> {
        let snapshot = self.mirror.snapshot();
        let is_own = |owner: &str| owner == self.hatchery();
        let known = snapshot.named(name).find(|vm| vm.owner().is_some_and(|owner| is_own(owner)));
        if let Some(vm) = known {
            return Ok(Some(vm.id.clone()));
        }
        let Some(found) = self.vcenter.child_named(&self.site.folder, name).await? else {
            return Ok(None);
        };
        let vm = VmId::from(&found);
        let Some(label) = self.read_label(&vm).await? else { return Ok(None) };
        if !Annotation::parse(&label.annotation).is_ok_and(|it| it.is_of(self.hatchery())) {
            return Ok(None);
        }
        self.mirror.created(&vm, Wrote::new().name(label.name).annotation(label.annotation));
        Ok(Some(vm))
    }
}

/// What a change of a VM's label and size made of it.
pub(super) fn wrote(change: &Reconfigure) -> Wrote {
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
    wrote
}
