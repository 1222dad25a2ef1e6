use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use roost_fleet::{Vm, VmId};
use roost_vim::{TemplateFacts, VmError};

use crate::run::desk::lock;
use crate::run::nest::Nest;

/// What was read of templates, once for each version of a template.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: Mutex<BTreeMap<VmId, Known>>,
}

#[derive(Debug)]
struct Known {
    version: Arc<str>,
    facts: Arc<TemplateFacts>,
}

impl Nest {
    /// Devices and snapshots of a template, which a clone request is made from.
    pub(crate) async fn template_facts(
        &self,
        template: &Vm,
    ) -> Result<Arc<TemplateFacts>, VmError> {
        let version = template.change_version.as_ref();
        if let Some(known) = lock(&self.templates.known).get(&template.id)
            && version == Some(&known.version)
        {
            return Ok(Arc::clone(&known.facts));
        }
        let facts = Arc::new(self.vcenter.template_facts(&template.id.moref()).await?);
        if let Some(version) = version {
            let known = Known { version: Arc::clone(version), facts: Arc::clone(&facts) };
            lock(&self.templates.known).insert(template.id.clone(), known);
        }
        Ok(facts)
    }
}
