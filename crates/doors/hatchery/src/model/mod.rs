//! Worker models: which one serves a job, and what it needs.

mod matching;
mod registration;

use roost_cds::v1::{self, RequirementType};
use roost_cds::v2::{self, VsphereSpec};
use roost_cds::{Commands, HATCHERY_TYPE, OsArch, Protocol, Secret};

pub use matching::{find_v1_model, match_v1_model};
pub(crate) use registration::last_modified;
pub use registration::{
    Registration, TemplateSeen, is_being_registered, need_registration, to_register,
};

use crate::config::SpareModel;
use crate::flavor::FlavorWish;
use crate::job::Job;
use crate::refusal::Refusal;

/// The model that a worker will be made from.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerModel {
    V1(Box<v1::Model>),
    V2(Box<ModelAsCode>),
}

/// A model as code, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAsCode {
    /// As the job or the configuration names it.
    pub path: String,
    pub name: String,
    pub os_arch: String,
    pub spec: VsphereSpec,
}

impl WorkerModel {
    pub fn v1(model: v1::Model) -> Self {
        Self::V1(Box::new(model))
    }

    /// Reads a model as code and sees whether it is one for vSphere (3.3, step 5).
    pub fn v2(path: impl Into<String>, model: &v2::Model) -> Result<Self, Refusal> {
        let path = path.into();
        if model.model_type != HATCHERY_TYPE {
            return Err(Refusal::ModelType { model: path, model_type: model.model_type.clone() });
        }
        let Ok(spec) = model.vsphere_spec() else { return Err(Refusal::ModelSpec { model: path }) };
        if spec.image.is_empty() {
            return Err(Refusal::NoImage { model: path });
        }
        let (name, os_arch) = (model.name.clone(), model.os_arch.clone());
        Ok(Self::V2(Box::new(ModelAsCode { path, name, os_arch, spec })))
    }

    pub fn protocol(&self) -> Protocol {
        match self {
            Self::V1(_) => Protocol::V1,
            Self::V2(_) => Protocol::V2,
        }
    }

    /// `group/name`, or the name of a model as code: as messages and worker configurations call it.
    pub fn display_name(&self) -> String {
        match self {
            Self::V1(model) => model.path().to_string(),
            Self::V2(model) => model.name.clone(),
        }
    }

    /// The template that workers are cloned from. That of a V1 model is built by us and named as the model.
    pub fn template(&self) -> &str {
        match self {
            Self::V1(model) => &model.name,
            Self::V2(model) => &model.spec.image,
        }
    }

    /// Which spares serve it.
    pub fn spares(&self) -> SpareModel {
        match self {
            Self::V1(model) => SpareModel::V1(model.path()),
            Self::V2(model) => SpareModel::V2(model.spec.image.clone()),
        }
    }

    fn flavor(&self) -> &str {
        match self {
            Self::V1(model) => &model.model_virtual_machine.flavor,
            Self::V2(model) => &model.spec.flavor,
        }
    }

    /// What job and model say about the flavor, to be resolved by [`crate::flavor::Flavors::resolve`].
    pub fn flavor_wish<'a>(&'a self, job: &'a Job) -> FlavorWish<'a> {
        FlavorWish {
            runs_on: job.flavor.as_deref(),
            model: Some(self.flavor()),
            requirement: job.requirement(RequirementType::Flavor),
        }
    }

    /// User and password that the model itself has for its guests. A V1 password is as the API gave it, secrets not filled in.
    pub fn guest_user(&self) -> (&str, &Secret) {
        match self {
            Self::V1(model) => {
                (&model.model_virtual_machine.user, &model.model_virtual_machine.password)
            }
            Self::V2(model) => (&model.spec.username, &model.spec.password),
        }
    }

    /// What starts the worker in the guest. A V1 job on a V2 model lets the guest say what it is.
    pub fn commands(&self, job: Protocol) -> Commands {
        match self {
            Self::V1(model) => Commands::from(&model.model_virtual_machine),
            Self::V2(model) => Commands::for_v2_model(&match job {
                Protocol::V1 => OsArch::AskGuest,
                Protocol::V2 => OsArch::Of(model.os_arch.clone()),
            }),
        }
    }

    /// The gates that need no more than model and requirements. The command is looked at whether there are requirements or
    /// not (D8), and a flavor is no obstacle (D7).
    pub fn can_spawn(&self, job: &Job) -> Result<(), Refusal> {
        self.check_type()?;
        for requirement in &job.requirements {
            match requirement.kind {
                RequirementType::Service | RequirementType::Memory | RequirementType::Hostname => {
                    let value = requirement.value.clone();
                    return Err(Refusal::Unsupported { kind: requirement.kind, value });
                }
                RequirementType::Binary
                | RequirementType::Model
                | RequirementType::Plugin
                | RequirementType::OsArchitecture
                | RequirementType::Region
                | RequirementType::Secret
                | RequirementType::Flavor
                | RequirementType::Unknown => {}
            }
        }
        self.check_command()
    }

    fn check_type(&self) -> Result<(), Refusal> {
        match self {
            Self::V1(model) if model.model_type != HATCHERY_TYPE => Err(Refusal::ModelType {
                model: model.path().to_string(),
                model_type: model.model_type.clone(),
            }),
            // A V2 model was asked when it was read.
            Self::V1(_) | Self::V2(_) => Ok(()),
        }
    }

    fn check_command(&self) -> Result<(), Refusal> {
        match self {
            Self::V1(model) if model.model_virtual_machine.cmd.trim().is_empty() => {
                Err(Refusal::NoCommand { model: model.path().to_string() })
            }
            Self::V1(_) | Self::V2(_) => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::job::tests::v1_job;

    pub(crate) fn v1_model(name: &str) -> v1::Model {
        let mut model = v1::Model {
            id: 12,
            name: name.into(),
            model_type: "vsphere".into(),
            ..v1::Model::default()
        };
        model.group_id = 1;
        model.group = Some(v1::Group { id: 1, name: "shared.infra".into() });
        model.model_virtual_machine.image = "base".into();
        model.model_virtual_machine.cmd = "worker".into();
        model.user_last_modified = Some("2026-06-01T00:00:00Z".parse().unwrap());
        model
    }

    fn as_code(model_type: &str, spec: &str) -> Result<WorkerModel, Refusal> {
        let text =
            format!(r#"{{"name":"m","osarch":"linux/arm64","type":{model_type:?},"spec":{spec}}}"#);
        let model: v2::Model = roost_cds::json::decode(text.as_bytes()).unwrap();
        WorkerModel::v2("P/github/org/repo/m", &model)
    }

    #[test]
    fn a_model_as_code_must_be_for_vsphere_and_name_an_image() {
        let model = as_code("vsphere", r#"{"image":"debian12","flavor":"large"}"#).unwrap();
        assert_eq!((model.template(), model.display_name().as_str()), ("debian12", "m"));
        assert_eq!(model.spares(), SpareModel::V2("debian12".into()));
        for (model_type, spec, reason) in [
            ("docker", r#"{"image":"debian12"}"#, "model-type"),
            ("vsphere", r#"{"image":3}"#, "model-spec"),
            ("vsphere", "{}", "no-image"),
        ] {
            assert_eq!(as_code(model_type, spec).unwrap_err().reason(), reason);
        }
        assert!(as_code("docker", "{}").unwrap_err().counts_as_attempt(), "3.3 step 5");
    }

    #[test]
    fn s_6_5_services_memory_and_host_names_are_refused_and_flavors_are_not() {
        use RequirementType as R;
        let model = WorkerModel::v1(v1_model("debian12"));
        for (kind, refused) in [
            (R::Service, true),
            (R::Memory, true),
            (R::Hostname, true),
            (R::Flavor, false),
            (R::Plugin, false),
            (R::Secret, false),
            (R::Unknown, false),
        ] {
            let verdict = model.can_spawn(&v1_job(&[(kind, "x")]));
            assert_eq!(verdict.is_err(), refused, "{kind:?}");
        }
        let service = model.can_spawn(&v1_job(&[(R::Service, "postgres")])).unwrap_err();
        assert_eq!(
            service.to_string(),
            r#"the job requires "service" "postgres", which VMs do not offer"#
        );
    }

    #[test]
    fn d8_a_model_without_command_is_refused_also_for_a_job_without_requirements() {
        let mut model = v1_model("debian12");
        model.model_virtual_machine.cmd = "  ".into();
        let refusal = WorkerModel::v1(model).can_spawn(&v1_job(&[])).unwrap_err();
        assert_eq!(refusal, Refusal::NoCommand { model: "shared.infra/debian12".into() });
        let v2 = as_code("vsphere", r#"{"image":"debian12"}"#).unwrap();
        assert_eq!(v2.can_spawn(&v1_job(&[])), Ok(()), "its command is built in");
    }

    #[test]
    fn d2_the_wish_for_a_flavor_has_all_three_voices() {
        let mut model = v1_model("debian12");
        model.model_virtual_machine.flavor = "small".into();
        let model = WorkerModel::v1(model);
        let mut job = v1_job(&[(RequirementType::Flavor, "large")]);
        job.flavor = Some("huge".into());
        let wish =
            FlavorWish { runs_on: Some("huge"), model: Some("small"), requirement: Some("large") };
        assert_eq!(model.flavor_wish(&job), wish);
    }

    #[test]
    fn a_v1_job_on_a_v2_model_asks_the_guest_what_it_is() {
        let model = as_code("vsphere", r#"{"image":"debian12"}"#).unwrap();
        assert!(model.commands(Protocol::V2).pre_cmd.contains("/download/worker/linux/arm64"));
        assert!(model.commands(Protocol::V1).pre_cmd.contains("linux/$(uname -m)"));
        assert_eq!(WorkerModel::v1(v1_model("d")).commands(Protocol::V1).cmd, "worker");
    }
}
