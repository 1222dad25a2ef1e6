use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Secret;
use crate::json::{self, DecodeError};

/// A worker model as its repository has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    pub name: String,
    pub description: String,
    #[serde(rename = "osarch")]
    pub os_arch: String,
    #[serde(rename = "type")]
    pub model_type: String,
    pub spec: ModelSpec,
}

impl Model {
    pub fn vsphere_spec(&self) -> Result<VsphereSpec, DecodeError> {
        json::decode_value(self.spec.0.clone())
    }
}

/// The part of a model that depends on its type. May hold a password, so `Debug` prints nothing of it.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelSpec(pub Value);

impl fmt::Debug for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelSpec(***)")
    }
}

/// The spec of a model of type `vsphere`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VsphereSpec {
    /// The name of the template.
    pub image: String,
    pub flavor: String,
    pub username: String,
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub password: Secret,
}

/// Where a model as code lives: `PROJ/vcs/owner/repo/model[@branch]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AsCodePath {
    pub project: String,
    pub vcs: String,
    pub repository: String,
    pub name: String,
    pub branch: String,
}

impl AsCodePath {
    const DEFAULT_BRANCH: &str = "master";
    const LEAST_PARTS: usize = 5;

    /// `None` for what has fewer than five parts: that is the path or name of a V1 model.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, branch) = text.split_once('@').unwrap_or((text, Self::DEFAULT_BRANCH));
        let parts: Vec<&str> = path.split('/').collect();
        let [project, vcs, repository @ .., name] = parts.as_slice() else { return None };
        (parts.len() >= Self::LEAST_PARTS).then(|| Self {
            project: (*project).to_owned(),
            vcs: (*vcs).to_owned(),
            repository: repository.join("/"),
            name: (*name).to_owned(),
            branch: branch.to_owned(),
        })
    }
}

impl fmt::Display for AsCodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { project, vcs, repository, name, branch } = self;
        write!(f, "{project}/{vcs}/{repository}/{name}@{branch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_parts_make_a_model_as_code() {
        let path = AsCodePath::parse("P/github/org/repo/debian12@feature/x").unwrap();
        assert_eq!((path.repository.as_str(), path.branch.as_str()), ("org/repo", "feature/x"));
        let path = AsCodePath::parse("P/gitlab/a/b/c/debian12").unwrap();
        assert_eq!(path.to_string(), "P/gitlab/a/b/c/debian12@master");
        for v1 in ["debian12", "shared.infra/debian12", "P/github/repo/debian12"] {
            assert_eq!(AsCodePath::parse(v1), None, "{v1}");
        }
    }

    #[test]
    fn a_spec_prints_nothing_of_its_password() {
        let wire = br#"{"name":"m","type":"vsphere","spec":{"image":"i","password":"hunter2"}}"#;
        let model: Model = json::decode(wire).unwrap();
        let spec = model.vsphere_spec().unwrap();
        assert_eq!(spec.password.expose(), "hunter2");
        assert!(!format!("{model:?} {spec:?}").contains("hunter2"));
    }
}
