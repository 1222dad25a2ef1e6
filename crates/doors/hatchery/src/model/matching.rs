//! Which V1 model serves a V1 job: the rules of reference 2.4 in their order.

use roost_cds::v1::{Model, RequirementType};

use super::WorkerModel;
use crate::config::Region;
use crate::job::{Job, ModelRequest};
use crate::refusal::Refusal;

/// A model with more failed spawns than this is left alone until its owner resets it.
const MOST_SPAWN_ERRORS: i64 = 5;

/// The first enabled model, in the API's order, that serves the job. `needs_registration` knows the templates.
///
/// What speaks against the very model that a job names is the reason itself: such a job waits for that model, and is not somebody else's.
pub fn find_v1_model<'a>(
    job: &Job,
    models: &'a [Model],
    region: &Region,
    needs_registration: impl Fn(&Model) -> bool,
) -> Result<&'a Model, Refusal> {
    let mut nearest: Option<(usize, Refusal)> = None;
    for model in models {
        match match_v1_model(job, model, region, &needs_registration) {
            Ok(()) => return Ok(model),
            Err(refusal) => {
                let depth = depth(&refusal);
                if nearest.as_ref().is_none_or(|(best, _)| depth > *best) {
                    nearest = Some((depth, refusal));
                }
            }
        }
    }
    let is_named = matches!(job.model, ModelRequest::Named(_));
    Err(match nearest {
        Some((depth, refusal)) if is_named && depth > NOT_MEANT => refusal,
        other => {
            let nearest = other.map(|(_, refusal)| Box::new(refusal));
            Refusal::NoModelMatches { enabled: models.len(), nearest }
        }
    })
}

/// Whether one model serves the job.
pub fn match_v1_model(
    job: &Job,
    model: &Model,
    region: &Region,
    needs_registration: impl Fn(&Model) -> bool,
) -> Result<(), Refusal> {
    let path = || model.path();
    let worker_model = WorkerModel::v1(model.clone());
    worker_model.check_type()?;
    // Before the others, though it is a requirement: of the models that the job does not mean, nobody wants to know more.
    check_name(job, model)?;
    if needs_registration(model) {
        return Err(Refusal::NeedsRegistration { model: path() });
    }
    if model.nb_spawn_err > MOST_SPAWN_ERRORS {
        return Err(Refusal::SpawnErrors { model: path(), errors: model.nb_spawn_err });
    }
    if !job.groups.is_empty() && !job.groups.contains(&model.group_id) {
        return Err(Refusal::Group { model: path() });
    }
    if model.is_deprecated && !matches!(job.model, ModelRequest::Named(_)) {
        return Err(Refusal::Deprecated { model: path() });
    }
    let wants_place = job.requirement(RequirementType::Hostname).is_some();
    let checks_binaries = job.model == ModelRequest::Any && !wants_place;
    for requirement in &job.requirements {
        let value = requirement.value.trim();
        match requirement.kind {
            // What docker alone can do; the other refusal of the same says why.
            RequirementType::Service | RequirementType::Memory => {
                return Err(Refusal::Unsupported {
                    kind: requirement.kind,
                    value: value.to_owned(),
                });
            }
            RequirementType::OsArchitecture => check_os_arch(model, value)?,
            RequirementType::Region => job.check_region(region)?,
            RequirementType::Binary if checks_binaries => check_binary(model, value)?,
            RequirementType::Binary
            | RequirementType::Model
            | RequirementType::Hostname
            | RequirementType::Plugin
            | RequirementType::Secret
            | RequirementType::Flavor
            | RequirementType::Unknown => {}
        }
    }
    worker_model.can_spawn(job)
}

/// `group/name`, or the bare name: of a model that everybody may use, or, as files of old have it, of any.
fn check_name(job: &Job, model: &Model) -> Result<(), Refusal> {
    let ModelRequest::Named(wanted) = &job.model else { return Ok(()) };
    let path = model.path();
    if *wanted == path.to_string() || *wanted == path.name {
        return Ok(());
    }
    Err(Refusal::OtherModel { model: path, wanted: wanted.clone() })
}

/// A model that no worker has shown yet may be anything.
fn check_os_arch(model: &Model, wanted: &str) -> Result<(), Refusal> {
    let known = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (Some(os), Some(arch)) = (known(&model.registered_os), known(&model.registered_arch))
    else {
        return Ok(());
    };
    let has = format!("{os}/{arch}");
    if has == wanted {
        return Ok(());
    }
    Err(Refusal::OsArch { model: model.path(), wanted: wanted.to_owned(), has })
}

fn check_binary(model: &Model, binary: &str) -> Result<(), Refusal> {
    let has = model
        .registered_capabilities
        .iter()
        .any(|known| known.value == binary || known.name == binary);
    if has {
        Ok(())
    } else {
        Err(Refusal::Binary { model: model.path(), binary: binary.to_owned() })
    }
}

/// As far as a model gets that the job does not name.
const NOT_MEANT: usize = 1;

/// How far a model got. The furthest one's refusal says most to whoever wonders.
fn depth(refusal: &Refusal) -> usize {
    match refusal {
        Refusal::ModelType { .. } => 0,
        Refusal::OtherModel { .. } => NOT_MEANT,
        Refusal::Group { .. } => 2,
        Refusal::Deprecated { .. } => 3,
        Refusal::OsArch { .. } => 4,
        Refusal::Binary { .. } => 5,
        Refusal::SpawnErrors { .. } => 6,
        Refusal::NeedsRegistration { .. } => 7,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::{requirement, v1_job};
    use crate::model::tests::v1_model;

    fn region() -> Region {
        Region { name: Some("eu".into()), ignore_jobs_without: false }
    }

    fn verdict(
        requirements: &[(RequirementType, &str)],
        change: impl FnOnce(&mut Model),
    ) -> &'static str {
        let mut model = v1_model("debian12");
        change(&mut model);
        match match_v1_model(&v1_job(requirements), &model, &region(), |model| {
            model.need_registration
        }) {
            Ok(()) => "serves",
            Err(refusal) => refusal.reason(),
        }
    }

    #[test]
    fn reference_2_4_row_by_row() {
        use RequirementType as R;
        let none: &[(R, &str)] = &[];
        assert_eq!(verdict(none, |_| {}), "serves");
        assert_eq!(verdict(none, |m| m.model_type = "docker".into()), "model-type");
        assert_eq!(verdict(none, |m| m.need_registration = true), "needs-registration");
        assert_eq!(verdict(none, |m| m.nb_spawn_err = 5), "serves");
        assert_eq!(verdict(none, |m| m.nb_spawn_err = 6), "spawn-errors");
        assert_eq!(verdict(none, |m| m.group_id = 2), "group");
        assert_eq!(verdict(none, |m| m.is_deprecated = true), "deprecated-model");
        assert_eq!(verdict(&[(R::Model, "debian12")], |m| m.is_deprecated = true), "serves");
        for (name, wanted) in [
            ("debian12", "serves"),
            ("shared.infra/debian12", "serves"),
            ("shared.infra/debian12 --opt", "serves"),
            ("team/debian12", "other-model"),
            ("debian", "other-model"),
        ] {
            assert_eq!(verdict(&[(R::Model, name)], |_| {}), wanted, "{name}");
        }
        assert_eq!(verdict(&[(R::Service, "pg")], |_| {}), "unsupported-requirement");
        assert_eq!(verdict(&[(R::Memory, "1024")], |_| {}), "unsupported-requirement");
        assert_eq!(verdict(&[(R::Flavor, "large"), (R::Plugin, "p")], |_| {}), "serves");
        assert_eq!(verdict(&[(R::Region, "eu")], |_| {}), "serves");
        assert_eq!(verdict(&[(R::Region, "us")], |_| {}), "other-region");
    }

    #[test]
    fn an_os_is_compared_only_when_the_model_has_shown_its_own() {
        let os = &[(RequirementType::OsArchitecture, "linux/amd64")];
        assert_eq!(verdict(os, |_| {}), "serves");
        let shown = |os: &'static str, arch: &'static str| {
            move |model: &mut Model| {
                (model.registered_os, model.registered_arch) = (Some(os.into()), Some(arch.into()));
            }
        };
        assert_eq!(verdict(os, shown("linux", "amd64")), "serves");
        assert_eq!(verdict(os, shown("linux", "arm64")), "os-arch");
        assert_eq!(verdict(os, shown("linux", "")), "serves");
    }

    #[test]
    fn binaries_count_only_when_the_job_names_neither_model_nor_host() {
        use RequirementType as R;
        let has_git = |m: &mut Model| {
            m.registered_capabilities = vec![requirement(R::Binary, "git")];
        };
        assert_eq!(verdict(&[(R::Binary, "git")], has_git), "serves");
        assert_eq!(verdict(&[(R::Binary, "git"), (R::Binary, "go")], has_git), "binary");
        assert_eq!(verdict(&[(R::Binary, "go"), (R::Model, "debian12")], |_| {}), "serves");
        // A host name is refused for its own sake, not for the binary.
        assert_eq!(
            verdict(&[(R::Binary, "go"), (R::Hostname, "h")], |_| {}),
            "unsupported-requirement"
        );
    }

    #[test]
    fn the_first_model_that_serves_is_taken_and_the_nearest_miss_is_named() {
        let models = [v1_model("alpha"), v1_model("beta")];
        let job = v1_job(&[]);
        let found = find_v1_model(&job, &models, &region(), |_| false).unwrap();
        assert_eq!(found.name, "alpha", "in the API's order");
        let found = find_v1_model(&job, &models, &region(), |model| model.name == "alpha").unwrap();
        assert_eq!(found.name, "beta");

        let job = v1_job(&[(RequirementType::Model, "beta")]);
        let none = find_v1_model(&job, &models, &region(), |_| true).unwrap_err();
        assert_eq!(none.reason(), "needs-registration", "the job waits for this very model");
        assert_eq!(none.to_string(), "model shared.infra/beta must be registered first");
        let none = find_v1_model(&v1_job(&[]), &models, &region(), |_| true).unwrap_err();
        assert_eq!(
            none.to_string(),
            "none of 2 V1 worker models matches; the nearest: model shared.infra/alpha must be registered first"
        );
        let other = v1_job(&[(RequirementType::Model, "gamma")]);
        let none = find_v1_model(&other, &models, &region(), |_| true).unwrap_err();
        assert_eq!(none.reason(), "no-model-matches");
        let none = find_v1_model(&job, &[], &region(), |_| false).unwrap_err();
        assert_eq!(none.to_string(), "there is no enabled V1 worker model");
    }
}
