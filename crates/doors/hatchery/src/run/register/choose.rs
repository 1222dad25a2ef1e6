//! What a model's registration begins with: a function of what is seen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::v1::{Model, ModelPath};
use roost_fleet::{Snapshot, Vm};

use crate::annotation::Annotation;
use crate::door::HATCHERY;
use crate::model::{Registration, TemplateSeen, last_modified, need_registration};
use crate::names::{self, VmName};
use crate::plan::find_template;
use crate::refusal::Refusal;
use crate::run::holding::own_annotation;
use crate::time::elapsed;

/// A template that is younger was built for the registration that is asked for: building it again would make the same.
const NEW: Duration = Duration::from_hours(1);
/// After as long a time nobody finishes a build any more: twice what a build may take.
const ABANDONED: Duration = Duration::from_mins(30);

/// What is left to do.
#[derive(Debug, Clone)]
pub(super) enum Begin {
    /// Build the template, from this image.
    Build { image: Arc<Vm> },
    /// It was built, and is not yet in its place.
    Install { built: Arc<Vm> },
    /// Only the worker is missing.
    Show { template: Arc<Vm> },
}

impl Begin {
    /// What is cloned first; the VM takes as much as this.
    pub(super) fn source(&self) -> &Arc<Vm> {
        match self {
            Self::Build { image } => image,
            Self::Install { built } => built,
            Self::Show { template } => template,
        }
    }
}

/// The template that is named as the model.
pub(super) fn template_seen<'a>(snapshot: &'a Snapshot, name: &'a str) -> Option<TemplateSeen<'a>> {
    let vm = snapshot.template(name)?;
    Some(TemplateSeen { name: &vm.name, annotation: Annotation::of(vm) })
}

/// For a model whose registration is due.
pub(super) fn choose(
    model: &Model,
    hatchery: &str,
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<Begin, Refusal> {
    let template = snapshot.template(&model.name);
    if let Some(other) = template.and_then(|vm| other_model(vm, model)) {
        let owner = format!("it is that of model {other}");
        return Err(Refusal::ForeignTemplate {
            model: model.path(),
            template: model.name.clone(),
            owner,
        });
    }
    let registration = need_registration(model, hatchery, template_seen(snapshot, &model.name));
    let must_build = match (registration, template) {
        (Registration::NoTemplate | Registration::Changed, _) | (_, None) => true,
        (Registration::Asked, Some(template)) => {
            born(template).is_none_or(|at| elapsed(at, now) > NEW)
        }
        (Registration::UpToDate | Registration::Foreign { .. }, Some(_)) => false,
    };
    if let Some(template) = template.filter(|_| !must_build) {
        return Ok(Begin::Show { template: Arc::clone(template) });
    }
    if let Some(built) = built(snapshot, hatchery, model) {
        return Ok(Begin::Install { built: Arc::clone(built) });
    }
    let image = &model.model_virtual_machine.image;
    match find_template(snapshot, image) {
        Some(image) => Ok(Begin::Build { image: Arc::clone(image) }),
        None => Err(Refusal::NoTemplate { template: image.clone() }),
    }
}

/// Two models of one name in two groups want the same template. Whose it is keeps it: taking turns they would build for ever.
fn other_model(template: &Vm, model: &Model) -> Option<String> {
    let path = &Annotation::of(template)?.worker_model_path;
    (!path.is_empty() && *path != model.path().to_string()).then(|| path.clone())
}

fn born(vm: &Vm) -> Option<Timestamp> {
    Annotation::of(vm).and_then(|annotation| annotation.created.get()).or(vm.created)
}

/// A template of this model, as it is now, that was built and not yet put in its place.
fn built<'a>(snapshot: &'a Snapshot, hatchery: &'a str, model: &Model) -> Option<&'a Arc<Vm>> {
    let path = model.path().to_string();
    unfinished(snapshot, hatchery).find_map(|(vm, annotation)| {
        let is_it = vm.template
            && *vm.name == *names::building(&model.name)
            && annotation.doomed.is_none()
            && annotation.worker_model_path == path
            && annotation.worker_model_last_modified == last_modified(model);
        is_it.then_some(vm)
    })
}

/// Our VMs and templates in which a template is or was built.
fn unfinished<'a>(
    snapshot: &'a Snapshot,
    hatchery: &'a str,
) -> impl Iterator<Item = (&'a Arc<Vm>, Arc<Annotation>)> {
    let ours = snapshot.owned_by(HATCHERY, hatchery);
    let ours = ours.filter_map(move |vm| Some((vm, own_annotation(vm, hatchery)?)));
    ours.filter(|(vm, annotation)| match VmName::of(&vm.name) {
        // A model may itself be called so; its template is then no leftover.
        VmName::Building { model } => {
            annotation.model && ModelPath::parse(&annotation.worker_model_path).name == model
        }
        _ => false,
    })
}

/// What an earlier process left of builds, and nobody goes on with.
///
/// A VM that was being built when the process ended says nowhere how far it got. One that is a template already is complete: it is kept for as
/// long as a model may yet want it.
pub(super) fn abandoned<'a>(
    snapshot: &'a Snapshot,
    hatchery: &'a str,
    started: Timestamp,
    now: Timestamp,
) -> impl Iterator<Item = (&'a Arc<Vm>, &'static str)> {
    let left = unfinished(snapshot, hatchery).filter(|(_, annotation)| annotation.doomed.is_none());
    left.filter_map(move |(vm, _)| {
        let born = born(vm)?;
        if vm.template {
            (elapsed(born, now) > ABANDONED).then_some((vm, "no model wants this template"))
        } else {
            (born < started).then_some((vm, "the build of this template was interrupted"))
        }
    })
}

#[cfg(test)]
mod tests {
    use roost_clock::SystemClock;
    use roost_fleet::{Mirror, Power, VmId, Wrote};

    use super::*;
    use crate::annotation::HatcheryVms;
    use crate::model::tests::v1_model;

    const NOW: Timestamp = Timestamp::constant(1_780_300_000, 0);

    struct Datacenter(Mirror);

    impl Datacenter {
        fn new() -> Self {
            let datacenter = Self(Mirror::new(vec![Arc::new(HatcheryVms)], Arc::new(SystemClock)));
            datacenter.0.created(&VmId::new("vm-1"), Wrote::new().name("base").template(true));
            datacenter
        }

        /// A VM or template of a model, as it was then.
        fn with(self, id: &str, name: &str, template: bool, annotation: &Annotation) -> Self {
            let made = Wrote::new().name(name).template(template).power(Power::Off);
            self.0.created(&VmId::new(id), made.annotation(annotation.to_string()));
            self
        }

        fn begin(&self, model: &Model) -> Result<String, &'static str> {
            let begin = choose(model, "h1", &self.0.snapshot(), NOW);
            let begin = begin.map_err(|refusal| refusal.reason())?;
            let (word, vm) = match &begin {
                Begin::Build { image } => ("build", image),
                Begin::Install { built } => ("install", built),
                Begin::Show { template } => ("show", template),
            };
            Ok(format!("{word} {}", vm.id))
        }

        fn abandoned(&self, started: Timestamp) -> Vec<String> {
            let snapshot = self.0.snapshot();
            let left = abandoned(&snapshot, "h1", started, NOW);
            left.map(|(vm, _)| vm.id.to_string()).collect()
        }
    }

    fn of(model: &Model, age: Duration) -> Annotation {
        let created = NOW.saturating_sub(jiff::SignedDuration::try_from(age).unwrap()).unwrap();
        Annotation {
            hatchery_name: "h1".into(),
            model: true,
            worker_model_path: model.path().to_string(),
            worker_model_last_modified: last_modified(model),
            created: created.into(),
            ..Annotation::default()
        }
    }

    const DAY: Duration = Duration::from_hours(24);
    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_model_without_template_is_built_from_its_image() {
        let mut model = v1_model("m");
        assert_eq!(Datacenter::new().begin(&model), Ok("build vm-1".into()));
        model.model_virtual_machine.image = "nowhere".into();
        assert_eq!(Datacenter::new().begin(&model), Err("no-template"));
    }

    #[test]
    fn a_template_that_is_up_to_date_is_shown_again_without_building() {
        let mut model = v1_model("m");
        model.check_registration = true;
        let datacenter = Datacenter::new().with("vm-2", "m", true, &of(&model, DAY));
        assert_eq!(datacenter.begin(&model), Ok("show vm-2".into()));
        let other = Annotation { hatchery_name: "h2".into(), ..of(&model, DAY) };
        let datacenter = Datacenter::new().with("vm-2", "m", true, &other);
        assert_eq!(
            datacenter.begin(&model),
            Ok("show vm-2".into()),
            "another hatchery's serves too"
        );
    }

    #[test]
    fn what_is_asked_for_is_built_once_and_not_at_every_attempt() {
        let mut model = v1_model("m");
        model.need_registration = true;
        let old = Datacenter::new().with("vm-2", "m", true, &of(&model, DAY));
        assert_eq!(old.begin(&model), Ok("build vm-1".into()));
        let new = Datacenter::new().with("vm-2", "m", true, &of(&model, MINUTE));
        assert_eq!(new.begin(&model), Ok("show vm-2".into()));
    }

    #[test]
    fn a_changed_model_is_built_however_new_its_template_is() {
        let mut model = v1_model("m");
        let before = of(&model, MINUTE);
        model.user_last_modified = Some(NOW);
        let datacenter = Datacenter::new().with("vm-2", "m", true, &before);
        assert_eq!(datacenter.begin(&model), Ok("build vm-1".into()));
    }

    #[test]
    fn a_template_that_was_complete_when_the_process_ended_is_put_in_its_place() {
        let model = v1_model("m");
        let complete = Datacenter::new().with("vm-2", "m-tmp", true, &of(&model, MINUTE));
        assert_eq!(complete.begin(&model), Ok("install vm-2".into()));
        let outdated = Annotation { worker_model_last_modified: "1".into(), ..of(&model, MINUTE) };
        let datacenter = Datacenter::new().with("vm-2", "m-tmp", true, &outdated);
        assert_eq!(datacenter.begin(&model), Ok("build vm-1".into()));
        let mut doomed = of(&model, MINUTE);
        doomed.doom("no model wants it");
        let datacenter = Datacenter::new().with("vm-2", "m-tmp", true, &doomed);
        assert_eq!(datacenter.begin(&model), Ok("build vm-1".into()));
    }

    #[test]
    fn the_template_of_another_model_of_that_name_stays_where_it_is() {
        let (mut model, other) = (v1_model("m"), v1_model("m"));
        model.group = Some(roost_cds::v1::Group { id: 9, name: "team".into() });
        let datacenter = Datacenter::new().with("vm-2", "m", true, &of(&other, DAY));
        assert_eq!(datacenter.begin(&model), Err("foreign-template"));
    }

    #[test]
    fn what_was_being_built_by_an_earlier_process_is_given_up() {
        let (model, started) = (v1_model("m"), NOW);
        let earlier = started.saturating_sub(jiff::SignedDuration::from_hours(2)).unwrap();
        let built = of(&model, Duration::from_hours(1));
        let datacenter = Datacenter::new().with("vm-2", "m-tmp", false, &built);
        assert_eq!(datacenter.abandoned(started), ["vm-2"]);
        assert!(datacenter.abandoned(earlier).is_empty(), "this process builds it");
    }

    #[test]
    fn a_complete_template_waits_for_its_model_but_not_for_ever() {
        let model = v1_model("m");
        for (age, goes) in [(MINUTE, false), (DAY, true)] {
            let datacenter = Datacenter::new().with("vm-2", "m-tmp", true, &of(&model, age));
            assert_eq!(datacenter.abandoned(NOW) == ["vm-2"], goes);
        }
        let named_so = v1_model("m-tmp");
        let datacenter = Datacenter::new().with("vm-2", "m-tmp", true, &of(&named_so, DAY));
        assert!(datacenter.abandoned(NOW).is_empty(), "a model may be called so");
        let other = Annotation { hatchery_name: "h2".into(), ..of(&model, DAY) };
        let datacenter = Datacenter::new().with("vm-2", "m-tmp", false, &other);
        assert!(datacenter.abandoned(NOW).is_empty(), "it is another hatchery's");
    }
}
