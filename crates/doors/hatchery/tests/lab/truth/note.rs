use std::collections::HashMap;
use std::sync::Arc;

use roost_vcenter_sim::VmGlance;
use serde::Deserialize;

/// A VM's annotation, read without the code that is tested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Note {
    pub(crate) hatchery_name: String,
    pub(crate) worker_name: String,
    pub(crate) job_id: String,
    pub(crate) provisioning: bool,
    pub(crate) register_only: bool,
    pub(crate) model: bool,
    pub(crate) worker_model_path: String,
    pub(crate) vmware_model_path: String,
    pub(crate) worker_start_time: String,
    pub(crate) ip_address: String,
    pub(crate) flavor: String,
    pub(crate) to_delete: bool,
    pub(crate) to_delete_reason: String,
}

impl Note {
    /// `None` for a VM without one.
    pub(crate) fn of(vm: &VmGlance) -> Option<Self> {
        serde_json::from_str(vm.annotation.as_deref()?).ok()
    }
}

/// Annotations that were read before: most VMs are looked at far more often than they change.
#[derive(Debug, Default)]
pub(crate) struct Notes(HashMap<Arc<str>, Option<Arc<Note>>>);

impl Notes {
    pub(crate) fn of(&mut self, vm: &VmGlance) -> Option<Arc<Note>> {
        let text = vm.annotation.as_ref()?;
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let note = Note::of(vm).map(Arc::new);
        self.0.insert(Arc::clone(text), note.clone());
        note
    }
}
