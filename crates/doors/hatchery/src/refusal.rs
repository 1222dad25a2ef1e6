//! Why a job, a model or a registration does not go on. One closed set of reasons, each with the nouns that an operator asks for.

use roost_cds::v1::{ModelPath, RequirementType};
use roost_cds::{HATCHERY_TYPE, JobStatus};
use roost_fleet::{Decided, Gate};

use crate::flavor::UnknownFlavor;

/// A gate that did not open. The text is a whole sentence; [`Refusal::reason`] is its name in metrics and records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the job is {status:?} and not Waiting")]
    NotWaiting { status: JobStatus },
    #[error("the job is booked by hatchery {by:?}")]
    Booked { by: String },
    #[error("{id:?} is no job id")]
    BadId { id: String },
    #[error("runs-on names no worker model")]
    NoModelNamed,
    #[error("runs-on.memory {memory:?} is not a number")]
    BadMemory { memory: String },
    #[error("the job names no region, and this hatchery ignores such jobs")]
    NoRegion,
    #[error("the job wants region {wanted:?} and this hatchery is in {ours}")]
    OtherRegion { wanted: String, ours: String },
    #[error("model {model} is of type {model_type:?}, not {HATCHERY_TYPE}")]
    ModelType { model: String, model_type: String },
    #[error("the spec of model {model} cannot be read")]
    ModelSpec { model: String },
    #[error("model {model} names no image")]
    NoImage { model: String },
    #[error("the job requires {kind:?} {value:?}, which VMs do not offer", kind = requirement_name(*.kind))]
    Unsupported { kind: RequirementType, value: String },
    #[error("model {model} has no command that starts a worker")]
    NoCommand { model: String },
    #[error("model {model} must be registered first")]
    NeedsRegistration { model: ModelPath },
    #[error("{errors} workers of model {model} failed to start; its owner must look at it")]
    SpawnErrors { model: ModelPath, errors: i64 },
    #[error("the job's groups may not use model {model}")]
    Group { model: ModelPath },
    #[error("model {model} is deprecated and the job does not name it")]
    Deprecated { model: ModelPath },
    #[error("the job wants model {wanted:?}, not {model}")]
    OtherModel { model: ModelPath, wanted: String },
    #[error("the job needs {wanted}, model {model} is {has}")]
    OsArch { model: ModelPath, wanted: String, has: String },
    #[error("model {model} does not have {binary:?}")]
    Binary { model: ModelPath, binary: String },
    #[error("{}", no_match(*.enabled, .nearest.as_deref()))]
    NoModelMatches { enabled: usize, nearest: Option<Box<Refusal>> },
    #[error("model {model} is as code, and this hatchery has no V2 token to fetch it")]
    NoV2Token { model: String },
    #[error("V1 worker models are disabled in this hatchery")]
    ModelsV1Disabled,
    #[error(transparent)]
    Flavor(#[from] UnknownFlavor),
    #[error("there is no template {template:?} in the datacenter")]
    NoTemplate { template: String },
    #[error("{made} attempts were made for this job, which is the limit")]
    Attempts { made: u32 },
    #[error("attempt {made} did not succeed; the next one is made after a pause")]
    Pause { made: u32 },
    #[error("{}", template_fails(.template, *.failures))]
    TemplateFails { template: String, failures: u32 },
    #[error("model {model} is being registered by VM {vm}")]
    Registering { model: ModelPath, vm: String },
    #[error("the template {template:?} of model {model} is not this hatchery's: {owner}")]
    ForeignTemplate { model: ModelPath, template: String, owner: String },
    #[error("this hatchery registers no models")]
    RegisteringDisabled,
}

impl Refusal {
    /// From a closed set: it becomes a metric label.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotWaiting { .. } => "not-waiting",
            Self::Booked { .. } => "booked",
            Self::BadId { .. } => "bad-id",
            Self::NoModelNamed => "no-model-named",
            Self::BadMemory { .. } => "bad-memory",
            Self::NoRegion => "no-region",
            Self::OtherRegion { .. } => "other-region",
            Self::ModelType { .. } => "model-type",
            Self::ModelSpec { .. } => "model-spec",
            Self::NoImage { .. } => "no-image",
            Self::Unsupported { .. } => "unsupported-requirement",
            Self::NoCommand { .. } => "no-command",
            Self::NeedsRegistration { .. } => "needs-registration",
            Self::SpawnErrors { .. } => "spawn-errors",
            Self::Group { .. } => "group",
            Self::Deprecated { .. } => "deprecated-model",
            Self::OtherModel { .. } => "other-model",
            Self::OsArch { .. } => "os-arch",
            Self::Binary { .. } => "binary",
            Self::NoModelMatches { .. } => "no-model-matches",
            Self::NoV2Token { .. } => "no-v2-token",
            Self::ModelsV1Disabled => "models-v1-disabled",
            Self::Flavor(_) => "unknown-flavor",
            Self::NoTemplate { .. } => "no-template",
            Self::Attempts { .. } => "attempts",
            Self::Pause { .. } => "pause",
            Self::TemplateFails { .. } => "template-fails",
            Self::Registering { .. } => "registering",
            Self::ForeignTemplate { .. } => "foreign-template",
            Self::RegisteringDisabled => "registering-disabled",
        }
    }

    /// What kind of decision it leads to: not for us, not now, or not at all.
    pub fn decided(&self) -> Decided {
        match self {
            Self::NotWaiting { .. }
            | Self::Booked { .. }
            | Self::NoRegion
            | Self::OtherRegion { .. }
            | Self::ModelType { .. }
            | Self::Unsupported { .. }
            | Self::Group { .. }
            | Self::Deprecated { .. }
            | Self::OtherModel { .. }
            | Self::OsArch { .. }
            | Self::Binary { .. }
            | Self::NoModelMatches { .. }
            | Self::NoV2Token { .. }
            | Self::ModelsV1Disabled
            | Self::RegisteringDisabled => Decided::Skipped,
            Self::NeedsRegistration { .. }
            | Self::Registering { .. }
            | Self::ForeignTemplate { .. }
            | Self::SpawnErrors { .. }
            | Self::Attempts { .. }
            | Self::Pause { .. }
            | Self::TemplateFails { .. } => Decided::Deferred,
            Self::BadId { .. }
            | Self::NoModelNamed
            | Self::BadMemory { .. }
            | Self::ModelSpec { .. }
            | Self::NoImage { .. }
            | Self::NoCommand { .. }
            | Self::Flavor(_)
            // Only a person can put it there, or have named another. When it appears the job goes on.
            | Self::NoTemplate { .. } => Decided::Refused,
        }
    }

    /// As the record of the decision has it.
    pub fn gate(&self) -> Gate {
        Gate::plain(self.reason(), false).noting(self.to_string())
    }

    /// Whether the job itself is at fault, so that looking again soon cannot help: it counts as an attempt (3.2, 3.3).
    pub fn counts_as_attempt(&self) -> bool {
        matches!(self, Self::BadMemory { .. } | Self::ModelType { .. })
    }

    /// Whether the people who wait for the job should be told, because only they or the operator can change it.
    pub fn is_worth_telling(&self) -> bool {
        match self {
            Self::Flavor(_)
            | Self::NoTemplate { .. }
            | Self::BadMemory { .. }
            | Self::ModelSpec { .. }
            | Self::NoImage { .. }
            | Self::NoCommand { .. } => true,
            Self::NotWaiting { .. }
            | Self::Booked { .. }
            | Self::BadId { .. }
            | Self::NoModelNamed
            | Self::NoRegion
            | Self::OtherRegion { .. }
            | Self::ModelType { .. }
            | Self::Unsupported { .. }
            | Self::NeedsRegistration { .. }
            | Self::SpawnErrors { .. }
            | Self::Group { .. }
            | Self::Deprecated { .. }
            | Self::OtherModel { .. }
            | Self::OsArch { .. }
            | Self::Binary { .. }
            | Self::NoModelMatches { .. }
            | Self::NoV2Token { .. }
            | Self::ModelsV1Disabled
            | Self::Attempts { .. }
            | Self::Pause { .. }
            | Self::TemplateFails { .. }
            | Self::Registering { .. }
            | Self::ForeignTemplate { .. }
            | Self::RegisteringDisabled => false,
        }
    }
}

fn template_fails(template: &str, failures: u32) -> String {
    let times = match failures {
        1 => "the last clone".to_owned(),
        more => format!("{more} clones in a row"),
    };
    format!(
        "{times} of template {template:?} failed: one job at a time tries, the others keep their attempts"
    )
}

fn no_match(enabled: usize, nearest: Option<&Refusal>) -> String {
    match nearest {
        None => "there is no enabled V1 worker model".to_owned(),
        Some(nearest) => {
            format!("none of {enabled} V1 worker models matches; the nearest: {nearest}")
        }
    }
}

/// As CDS writes it.
pub(crate) fn requirement_name(kind: RequirementType) -> &'static str {
    match kind {
        RequirementType::Binary => "binary",
        RequirementType::Model => "model",
        RequirementType::Hostname => "hostname",
        RequirementType::Plugin => "plugin",
        RequirementType::Service => "service",
        RequirementType::Memory => "memory",
        RequirementType::OsArchitecture => "os-architecture",
        RequirementType::Region => "region",
        RequirementType::Secret => "secret",
        RequirementType::Flavor => "flavor",
        RequirementType::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_gate_in_the_record_with_its_reason_and_its_nouns() {
        let refusal = Refusal::NoTemplate { template: "debian12".into() };
        let gate = refusal.gate();
        assert!(!gate.passed);
        assert_eq!(
            gate.to_string(),
            r#"no-template: there is no template "debian12" in the datacenter"#
        );
        assert_eq!(refusal.decided(), Decided::Refused, "only a person can put it there");
        assert_eq!(Refusal::NoRegion.decided(), Decided::Skipped);
    }
}
