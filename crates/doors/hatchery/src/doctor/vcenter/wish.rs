//! What the configuration asks of a vCenter.

use std::time::Duration;

use crate::config::{Config, GuestOf, ResourceLimits, SpareModel, SystemSurroundings};
use crate::flavor::{FlavorWish, Flavors, Footprint};
use roost_cds::{HATCHERY_TYPE, v1};
use roost_fleet::AddressPlan;

use roost_doctor::told;

#[derive(Debug)]
pub(super) struct Wish {
    pub(super) hatchery: String,
    /// `None`: no limit.
    pub(super) max_workers: Option<u32>,
    pub(super) spares: u32,
    pub(super) limits: ResourceLimits,
    pub(super) flavors: Flavors,
    pub(super) addresses: AddressPlan,
    /// The shortest time after which something of ours is deleted.
    pub(super) grace: Duration,
    /// Whether templates are made of V1 models.
    pub(super) makes_templates: bool,
    pub(super) templates: Vec<Wanted>,
}

/// A template, and who names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) by: Vec<String>,
    /// Why nobody could log in to its guests.
    pub(super) login_trouble: Option<String>,
}

impl Wish {
    pub(super) fn of(config: &Config, models: &[v1::Model]) -> Self {
        let spares = config.provisioning.pools.iter().map(|pool| pool.number).sum();
        Self {
            hatchery: config.identity.name.clone(),
            max_workers: config.counts.max_workers,
            spares,
            limits: config.limits,
            flavors: config.flavors.clone(),
            addresses: config.addresses.clone(),
            grace: config.lifetimes.finished_grace,
            makes_templates: config.models_v1
                && config.api.tokens.v1.is_some()
                && config.counts.max_registering.is_some()
                && config.counts.register_interval.is_some(),
            templates: templates(config, models),
        }
    }

    /// How many VMs of ours there may be at once; `None` if there is no limit.
    pub(super) fn most_vms(&self) -> Option<u64> {
        self.max_workers.map(|workers| u64::from(workers) + u64::from(self.spares))
    }

    /// What a worker takes whose job asks for nothing: the default flavor, else a template's own size.
    pub(super) fn usual_footprint(&self, template: Option<Footprint>) -> Option<Footprint> {
        let flavor = self.flavors.resolve(FlavorWish::default()).ok().flatten();
        crate::flavor::footprint_of(flavor, template)
    }
}

fn templates(config: &Config, models: &[v1::Model]) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    let mut add = |name: &str, by: String, model: Option<&v1::Model>| {
        if let Some(known) = all.iter_mut().find(|known| known.name == name) {
            if !known.by.contains(&by) {
                known.by.push(by);
            }
            return;
        }
        let path = model.map(v1::Model::path);
        let own = model.map(|model| &model.model_virtual_machine);
        let guest = GuestOf {
            template: name,
            model: path.as_ref(),
            own: own.map(|own| (own.user.as_str(), &own.password)),
        };
        let login_trouble = config.guests.login(guest, &SystemSurroundings).err().map(told);
        all.push(Wanted { name: name.to_owned(), by: vec![by], login_trouble });
    };
    for model in &config.guests.models {
        add(&model.template, "models".into(), None);
    }
    for credential in &config.guests.credentials {
        if let Some(template) = &credential.template {
            add(template, "guestCredentials".into(), None);
        }
    }
    for pool in config.provisioning.pools.iter().filter(|pool| pool.number > 0) {
        match &pool.kind.model {
            SpareModel::V2(template) => add(template, "workerProvisioning".into(), None),
            SpareModel::V1(path) if config.models_v1 => {
                let model = models.iter().find(|model| model.path() == *path);
                add(&path.name, "workerProvisioning".into(), model);
            }
            SpareModel::V1(_) => {}
        }
    }
    for model in models.iter().filter(|_| config.models_v1) {
        if model.model_type == HATCHERY_TYPE {
            // A model that is yet to be registered is made from its image.
            let image = &model.model_virtual_machine.image;
            let name = if model.need_registration { image } else { &model.name };
            add(name, format!("worker model {}", model.path().short()), Some(model));
        }
    }
    all
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two workers and a spare of one template, an address range of five.
    pub(in crate::doctor::vcenter) fn wish() -> Wish {
        let file = crate::config::AddressFile {
            iprange: "10.0.0.8/29".into(),
            gateway: "10.0.0.9".into(),
            subnet_mask: "255.255.255.0".into(),
            ..crate::config::AddressFile::default()
        };
        Wish {
            hatchery: "roost".into(),
            max_workers: Some(2),
            spares: 1,
            limits: ResourceLimits::default(),
            flavors: Flavors::default(),
            addresses: file.plan().unwrap(),
            grace: Duration::from_mins(3),
            makes_templates: false,
            templates: vec![wanted()],
        }
    }

    #[test]
    fn every_template_that_anybody_names_is_wanted_once() {
        let key = roost_cds_sim::demo_hatchery_key();
        let text = format!(
            "[hatchery.vsphere]\nuser = 'u'\npassword = 'p'\nendpoint = 'vc'\ndatacenterString = 'DC0'\n\
             [[hatchery.vsphere.models]]\nmodelVMWare = 'debian12'\nusername = 'root'\npassword = 'x'\n\
             [[hatchery.vsphere.workerProvisioning]]\nmodelVMWare = 'debian12'\nnumber = 2\n\
             [[hatchery.vsphere.workerProvisioning]]\nmodelVMWare = 'ubuntu24'\nnumber = 1\n\
             [hatchery.vsphere.commonConfiguration]\nname = 'roost'\nrsaPrivateKey = '''{}'''\n\
             [hatchery.vsphere.commonConfiguration.api]\ntoken = 't'\n",
            key.expose()
        );
        let config = Config::load(&text, &SystemSurroundings).unwrap().config;
        let model = |name: &str, need_registration, model_type: &str| v1::Model {
            name: name.into(),
            need_registration,
            model_type: model_type.into(),
            model_virtual_machine: v1::VirtualMachine {
                image: "base".into(),
                user: "cds".into(),
                password: "x".into(),
                ..v1::VirtualMachine::default()
            },
            ..v1::Model::default()
        };
        let models = [
            model("made", false, HATCHERY_TYPE),
            model("new", true, HATCHERY_TYPE),
            model("container", false, "docker"),
        ];
        let wish = Wish::of(&config, &models);
        let names = |wanted: &Wanted| (wanted.name.clone(), wanted.login_trouble.is_none());
        let templates: Vec<(String, bool)> = wish.templates.iter().map(names).collect();
        let wanted = [("debian12", true), ("ubuntu24", false), ("made", true), ("base", true)];
        assert_eq!(templates, wanted.map(|(name, has_login)| (name.to_owned(), has_login)));
        assert_eq!(wish.templates[0].by, ["models", "workerProvisioning"]);
        assert_eq!(wish.most_vms(), Some(3 + u64::from(config.counts.max_workers.unwrap())));
    }

    pub(in crate::doctor::vcenter) fn wanted() -> Wanted {
        Wanted { name: "debian12".into(), by: vec!["models".into()], login_trouble: None }
    }
}
