//! Deletions that the guard froze, and how a person ends that.

use kube::ResourceExt;
use roost_controller::{Draft, Key};
use roost_fleet::{Decided, Draft as Decision, Freeze, Resume};

use super::error::ForgeError;
use super::world::{World, lock};
use crate::api::VsphereAgentPool;
use crate::api::names::RESUME_DELETIONS;
use crate::vcenter::FORGE;

/// The value that lets the VMs go that the freeze names. Any other one has everything looked at anew.
const APPROVE: &str = "approve";

impl World {
    /// Freezes of a pool, by failure domain.
    pub(crate) fn freezes(&self, pool: &Key) -> Vec<(String, Freeze)> {
        let (guards, owner) = (lock(&self.guards), pool.to_string());
        let of_pool = guards.iter().filter(|((of, _), _)| *of == owner);
        let mut all: Vec<_> = of_pool
            .filter_map(|((_, domain), guard)| Some((domain.clone(), guard.frozen()?.clone())))
            .collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// A person has looked at what is frozen: of one pool, or of all. Tells how many VMs the freezes named.
    pub(crate) fn resume_deletions(&self, pool: Option<&Key>, found: Resume, who: &str) -> usize {
        let owner = pool.map(ToString::to_string);
        let mut ended: Vec<(String, Freeze)> = Vec::new();
        for ((of, _), guard) in lock(&self.guards).iter_mut() {
            if owner.as_ref().is_none_or(|owner| owner == of)
                && let Some(freeze) = guard.resume(found)
            {
                ended.push((of.clone(), freeze));
            }
        }
        let said = match found {
            Resume::Approve => "the VMs that it named may go",
            Resume::StartOver => "everything is looked at anew",
        };
        for (pool, freeze) in &ended {
            let reason = format!("{who}: {}; {said}", freeze.finding());
            for site in self.sites.open_ones() {
                let subject = FORGE.about_pool(pool.as_str());
                let decision = Decision::new(subject, Decided::Steered, reason.clone());
                site.fleet.journal().record(decision, self.now());
            }
            if let Some((namespace, name)) = pool.split_once('/') {
                self.wake_pool(Key::new(namespace, name));
            }
        }
        ended.iter().map(|(_, freeze)| freeze.vms.len()).sum()
    }

    /// Does what the annotation of a pool says, once, and takes it off.
    pub(crate) async fn heed_annotation(
        &self,
        draft: &mut Draft<VsphereAgentPool>,
    ) -> Result<(), ForgeError> {
        let Some(said) = draft.annotations_mut().remove(RESUME_DELETIONS) else { return Ok(()) };
        let found = if said == APPROVE { Resume::Approve } else { Resume::StartOver };
        let vms = self.resume_deletions(Some(&draft.key()), found, "whoever annotated the pool");
        if vms > 0 {
            let note = format!("deletion goes on by annotation ({said}); it held {vms} VMs");
            self.events.normal(&VsphereAgentPool::clone(draft), "DeletionResumed", &note);
        }
        self.writer.save_main(draft).await?;
        Ok(())
    }
}
