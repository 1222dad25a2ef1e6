use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use roost_vim::{TemplateFacts, VmError};

use super::Machines;
use crate::{Vm, VmId};

/// What was read of templates, once for each version of a template.
#[derive(Debug, Default)]
pub(super) struct Templates {
    known: Mutex<BTreeMap<VmId, Known>>,
}

#[derive(Debug)]
struct Known {
    version: Arc<str>,
    facts: Arc<TemplateFacts>,
}

impl Machines {
    /// Devices and snapshots of a template, which a clone request is made from.
    pub async fn template_facts(&self, template: &Vm) -> Result<Arc<TemplateFacts>, VmError> {
        let version = template.change_version.as_ref();
        let lock = || self.shared.templates.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&template.id)
            && version == Some(&known.version)
        {
            return Ok(Arc::clone(&known.facts));
        }
        let facts = Arc::new(self.client().template_facts(&template.id.moref()).await?);
        if let Some(version) = version {
            let known = Known { version: Arc::clone(version), facts: Arc::clone(&facts) };
            lock().insert(template.id.clone(), known);
        }
        Ok(facts)
    }
}
