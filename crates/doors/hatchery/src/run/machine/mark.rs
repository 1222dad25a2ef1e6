use roost_fleet::{Label, MachineError, Rewrite, VmId};

use super::WorkerVms;
use crate::annotation::{Annotation, Doom};
use crate::clone_spec::mark_for_deletion;
use crate::door::phase;
use crate::names::VmName;

/// What becomes of a spare that turns out to be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claimed {
    Spared,
    Marked,
}

impl WorkerVms {
    /// Writes into the VM's own annotation that it is to be deleted. Fine when it is gone, or marked already.
    ///
    /// Written only over what was read: a spare that somebody claimed in the meantime is left alone (W15).
    pub(crate) async fn mark(&self, vm: &VmId, reason: &str) -> Result<(), MachineError> {
        self.mark_over(vm, &reason.into(), Claimed::Spared).await
    }

    /// As [`Self::mark`], for a person: also if it is marked already, or its worker is at work.
    pub(crate) async fn mark_as_asked(&self, vm: &VmId, reason: &str) -> Result<(), MachineError> {
        self.mark_over(vm, &Doom::asked_for(reason), Claimed::Spared).await
    }

    /// As [`Self::mark`], also if the VM became a worker meanwhile: for a claim whose answer was lost.
    pub(crate) async fn mark_claimed(&self, vm: &VmId, reason: &str) -> Result<(), MachineError> {
        self.mark_over(vm, &reason.into(), Claimed::Marked).await
    }

    async fn mark_over(
        &self,
        vm: &VmId,
        doom: &Doom,
        claimed: Claimed,
    ) -> Result<(), MachineError> {
        let phase = phase::MARKING;
        let mut was_spare = None;
        let marking = |label: &Label| {
            let (machine, vm) = (label.name.clone(), vm.clone());
            let was_spare = *was_spare.get_or_insert_with(|| VmName::of(&label.name).is_spare());
            let own = Annotation::parse(&label.annotation).ok();
            let Some(annotation) = own.filter(|known| known.is_of(self.about.hatchery())) else {
                return Rewrite::Refuse(MachineError::Foreign { phase, machine, vm });
            };
            if annotation.is_doomed_as(doom) {
                return Rewrite::Done;
            }
            if was_spare && !annotation.provisioning && claimed == Claimed::Spared {
                return Rewrite::Refuse(MachineError::Changed { phase, machine, vm });
            }
            let change = mark_for_deletion(&label.name, &annotation, doom.clone());
            Rewrite::Write(Box::new(change))
        };
        self.machines.rewrite(vm, phase, marking).await.map(drop)
    }
}
