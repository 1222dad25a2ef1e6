//! What a model's registration begins with: a function of what is seen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::v1::{Model, ModelPath};
use roost_fleet::{Snapshot, Vm};

use crate::annotation::Annotation;
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

pub(super) fn annotation_of(vm: &Vm) -> Option<&Annotation> {
    vm.identity.as_ref()?.detail::<Annotation>()
}

/// The template that is named as the model.
pub(super) fn template_seen<'a>(snapshot: &'a Snapshot, name: &'a str) -> Option<TemplateSeen<'a>> {
    let vm = snapshot.template(name)?;
    Some(TemplateSeen { name: &vm.name, annotation: annotation_of(vm) })
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
    let path = &annotation_of(template)?.worker_model_path;
    (!path.is_empty() && *path != model.path().to_string()).then(|| path.clone())
}

fn born(vm: &Vm) -> Option<Timestamp> {
    annotation_of(vm).and_then(|annotation| annotation.created.get()).or(vm.created)
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
) -> impl Iterator<Item = (&'a Arc<Vm>, &'a Annotation)> {
    let ours = snapshot.owned_by(hatchery);
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
