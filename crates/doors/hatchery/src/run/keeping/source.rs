use std::sync::Arc;

use roost_cds::v1;
use roost_fleet::{Amounts, Snapshot, Vm};

use crate::clone_spec::Purpose;
use crate::config::{Config, SpareKind, SpareModel};
use crate::flavor::{Flavor, Footprint, footprint_of};
use crate::plan::{find_template, is_registration_needed};
use crate::run::spare_view::v1_model;
use crate::spares::Hold;

/// What spares of a kind are cloned from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) template: Arc<Vm>,
    pub(super) flavor: Option<Flavor>,
    /// `None` for a spare of V2 models.
    model: Option<Box<v1::Model>>,
}

impl Source {
    /// What a pool's spares are made from at present, or why they are not made.
    pub(super) fn find(
        kind: &SpareKind,
        config: &Config,
        snapshot: &Snapshot,
        models: Option<&[v1::Model]>,
    ) -> Result<Self, Hold> {
        let (name, model) = match &kind.model {
            SpareModel::V2(template) => (template, None),
            SpareModel::V1(path) => {
                let model = v1_model(path, models).filter(|_| config.models_v1);
                let model = model.ok_or(Hold::NoModel)?;
                if is_registration_needed(model, config, snapshot) {
                    return Err(Hold::NeedsRegistration);
                }
                (&model.name, Some(Box::new(model.clone())))
            }
        };
        let template = find_template(snapshot, name).ok_or(Hold::NoTemplate)?;
        // The configuration was refused if it names a flavor that it does not have.
        let flavor = kind.flavor.as_deref().and_then(|name| config.flavors.get(name)).cloned();
        Ok(Self { template: Arc::clone(template), flavor, model })
    }

    pub(super) fn purpose(&self) -> Purpose<'_> {
        match &self.model {
            Some(model) => Purpose::SpareV1 { model },
            None => Purpose::SpareV2,
        }
    }

    /// What a spare takes while it is being made. It takes no worker's slot, and nothing more once it is off.
    pub(super) fn amounts(&self) -> Amounts {
        let size = Footprint { cpus: self.template.cpus, memory_mb: self.template.memory_mb };
        let takes = footprint_of(self.flavor.as_ref(), Some(size)).unwrap_or(size);
        Amounts { cpus: takes.cpus.into(), memory_mb: takes.memory_mb, ..Amounts::default() }
    }
}
