//! V1 models must show what they can do before jobs match them. Their templates are built by us, from the image that the model names.

use std::sync::Arc;

use roost_cds::HATCHERY_TYPE;
use roost_cds::v1::Model;

use super::WorkerModel;
use crate::annotation::Annotation;
use crate::names;
use crate::refusal::Refusal;

/// A template of the datacenter.
#[derive(Debug, Clone)]
pub struct TemplateSeen<'a> {
    pub name: &'a str,
    /// `None` if it has none, or one that is not CDS's.
    pub annotation: Option<Arc<Annotation>>,
}

/// Whether a model's template must be built, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    UpToDate,
    NoTemplate,
    /// The API asks for it.
    Asked,
    /// The model was changed after its template was built.
    Changed,
    /// A template of that name is there and is not ours to replace.
    Foreign {
        owner: String,
    },
}

impl Registration {
    /// Jobs do not match the model until this is over.
    pub fn is_needed(&self) -> bool {
        match self {
            Self::UpToDate => false,
            Self::NoTemplate | Self::Asked | Self::Changed | Self::Foreign { .. } => true,
        }
    }
}

/// Whether the template of `model` must be built or rebuilt. `template` is the one that is named as the model.
///
/// The template of another hatchery serves us as well while it is up to date; replacing it is that hatchery's business.
pub fn need_registration(
    model: &Model,
    hatchery: &str,
    template: Option<TemplateSeen<'_>>,
) -> Registration {
    let Some(template) = template else { return Registration::NoTemplate };
    let annotation = match template.annotation {
        Some(annotation) if annotation.model => annotation,
        _ => return Registration::Foreign { owner: "it was not made by a hatchery".to_owned() },
    };
    if annotation.doomed.is_some() {
        return Registration::UpToDate;
    }
    let cause = if annotation.worker_model_last_modified != last_modified(model) {
        Registration::Changed
    } else if model.need_registration {
        Registration::Asked
    } else {
        return Registration::UpToDate;
    };
    if annotation.is_of(hatchery) {
        cause
    } else {
        Registration::Foreign {
            owner: format!("it belongs to hatchery {:?}", annotation.hatchery_name),
        }
    }
}

/// As annotations have it: Unix seconds as text, of year 1 if never.
pub(crate) fn last_modified(model: &Model) -> String {
    const NEVER: i64 = -62_135_596_800;
    model.user_last_modified.map_or(NEVER, jiff::Timestamp::as_second).to_string()
}

/// The VM that registers the model at present: the one its template is built in, or the one that runs its worker (D41).
pub fn is_being_registered<'a>(
    model: &Model,
    vms: impl IntoIterator<Item = (&'a str, &'a Annotation)>,
) -> Option<&'a str> {
    let (building, path) = (names::building(&model.name), model.path().to_string());
    vms.into_iter()
        .map(|(name, annotation)| {
            let registers = annotation.register_only && annotation.worker_model_path == path;
            (name, name == building || registers)
        })
        .find_map(|(name, found)| found.then_some(name))
}

/// A model with more failed spawns than this is left alone until its owner resets it.
const MOST_SPAWN_ERRORS: i64 = 5;

/// The models to register, most urgent first, each with what stands against it now. `vms` are our own.
pub fn to_register<'m, 't>(
    models: &'m [Model],
    hatchery: &str,
    template: impl Fn(&str) -> Option<TemplateSeen<'t>>,
    vms: &[(&str, &Annotation)],
) -> Vec<(&'m Model, Result<(), Refusal>)> {
    let mut due: Vec<(&Model, Registration)> = models
        .iter()
        .filter(|model| model.model_type == HATCHERY_TYPE)
        .map(|model| (model, need_registration(model, hatchery, template(&model.name))))
        .filter(|(model, registration)| registration.is_needed() || model.check_registration)
        .collect();
    let urgency =
        |model: &Model| 2 * u8::from(model.need_registration) + u8::from(model.check_registration);
    due.sort_by(|(a, _), (b, _)| urgency(b).cmp(&urgency(a)).then_with(|| a.name.cmp(&b.name)));
    due.into_iter().map(|(model, registration)| (model, check(model, registration, vms))).collect()
}

fn check(
    model: &Model,
    registration: Registration,
    vms: &[(&str, &Annotation)],
) -> Result<(), Refusal> {
    WorkerModel::v1(model.clone()).check_command()?;
    if let Registration::Foreign { owner } = registration {
        return Err(Refusal::ForeignTemplate {
            model: model.path(),
            template: model.name.clone(),
            owner,
        });
    }
    if model.nb_spawn_err > MOST_SPAWN_ERRORS {
        return Err(Refusal::SpawnErrors { model: model.path(), errors: model.nb_spawn_err });
    }
    match is_being_registered(model, vms.iter().copied()) {
        Some(vm) => Err(Refusal::Registering { model: model.path(), vm: vm.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::v1_model;

    fn template(owner: &str, last_modified: &str) -> Annotation {
        Annotation {
            hatchery_name: owner.into(),
            model: true,
            worker_model_last_modified: last_modified.into(),
            ..Annotation::default()
        }
    }

    fn seen(annotation: &Annotation) -> TemplateSeen<'_> {
        TemplateSeen { name: "debian12", annotation: Some(Arc::new(annotation.clone())) }
    }

    /// Unix seconds of the model's `user_last_modified`.
    const CURRENT: &str = "1780272000";

    #[test]
    fn reference_4_2_row_by_row() {
        let (model, mut asked) = (v1_model("debian12"), v1_model("debian12"));
        asked.need_registration = true;
        let (current, old) = (template("h1", CURRENT), template("h1", "1"));
        let need = |model: &Model, template| need_registration(model, "h1", template);
        assert_eq!(need(&model, None), Registration::NoTemplate);
        assert_eq!(need(&model, Some(seen(&current))), Registration::UpToDate);
        assert_eq!(need(&model, Some(seen(&old))), Registration::Changed);
        assert_eq!(need(&asked, Some(seen(&current))), Registration::Asked);
        let mut doomed = old.clone();
        doomed.doom("replaced");
        assert_eq!(
            need(&asked, Some(seen(&doomed))),
            Registration::UpToDate,
            "it is being dealt with"
        );
    }

    #[test]
    fn the_template_of_another_hatchery_serves_while_it_is_up_to_date_and_is_never_replaced() {
        let model = v1_model("debian12");
        let (current, old) = (template("h2", CURRENT), template("h2", "1"));
        assert_eq!(need_registration(&model, "h1", Some(seen(&current))), Registration::UpToDate);
        let foreign = Registration::Foreign { owner: r#"it belongs to hatchery "h2""#.into() };
        assert_eq!(need_registration(&model, "h1", Some(seen(&old))), foreign);
        let by_hand = Some(TemplateSeen { name: "debian12", annotation: None });
        assert!(matches!(need_registration(&model, "h1", by_hand), Registration::Foreign { .. }));
    }

    #[test]
    fn a_model_that_was_never_changed_has_the_time_that_go_writes_for_it() {
        let mut model = v1_model("debian12");
        model.user_last_modified = None;
        assert_eq!(last_modified(&model), "-62135596800");
    }

    #[test]
    fn d41_a_registering_vm_is_known_by_its_annotation_and_not_by_its_random_name() {
        let model = v1_model("debian12");
        let registering = Annotation {
            register_only: true,
            worker_model_path: "shared.infra/debian12".into(),
            ..Annotation::default()
        };
        let other = Annotation { worker_model_path: "team/debian12".into(), ..registering.clone() };
        let worker = Annotation { register_only: false, ..registering.clone() };
        let by = |name, annotation| is_being_registered(&model, [(name, annotation)]);
        assert_eq!(by("register-keen-bohr", &registering), Some("register-keen-bohr"));
        assert_eq!(by("register-keen-bohr", &other), None);
        assert_eq!(by("happy-hopper", &worker), None);
        assert_eq!(by("debian12-tmp", &Annotation::default()), Some("debian12-tmp"));
    }

    #[test]
    fn the_most_urgent_models_come_first_each_with_what_stands_against_it() {
        let model = |name: &str, need: bool, check: bool| {
            let mut model = v1_model(name);
            (model.need_registration, model.check_registration) = (need, check);
            model
        };
        let mut docker = model("docker", true, true);
        docker.model_type = "docker".into();
        let mut failing = model("failing", true, false);
        failing.nb_spawn_err = 6;
        let models = [
            model("check", false, true),
            model("fine", false, false),
            model("zeta", true, false),
            model("both", true, true),
            failing,
            docker,
        ];
        let current = template("h1", CURRENT);
        let find = |name: &str| {
            (name != "zeta")
                .then_some(TemplateSeen { name: "", annotation: Some(Arc::new(current.clone())) })
        };
        let registering = Annotation {
            register_only: true,
            worker_model_path: "shared.infra/both".into(),
            ..Annotation::default()
        };
        let due = to_register(&models, "h1", find, &[("register-x", &registering)]);
        let due: Vec<_> = due
            .iter()
            .map(|(model, verdict)| {
                (model.name.as_str(), verdict.as_ref().map_or_else(Refusal::reason, |()| "go"))
            })
            .collect();
        let wanted =
            [("both", "registering"), ("failing", "spawn-errors"), ("zeta", "go"), ("check", "go")];
        assert_eq!(due, wanted);
    }
}
