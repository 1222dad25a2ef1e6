use std::collections::BTreeMap;

use jiff::Timestamp;
use roost_cds::v1::{Model, ModelPath, ModelSecret};
use roost_cds::v2;

/// All worker models.
#[derive(Debug, Default)]
pub(crate) struct Models {
    pub(crate) v1: BTreeMap<ModelPath, ModelRow>,
    /// By `project/vcs/repository/name@branch`.
    pub(crate) v2: BTreeMap<String, v2::Model>,
}

#[derive(Debug)]
pub(crate) struct ModelRow {
    pub(crate) model: Model,
    pub(crate) secrets: Vec<ModelSecret>,
    /// By which hatchery and until when its registration is booked.
    pub(crate) booked: Option<(i64, Timestamp)>,
}

impl Models {
    /// The model that a requirement names, as the API resolves it: by path, or by its bare name.
    pub(crate) fn v1_type(&self, requirement: &str) -> Option<&str> {
        let name = requirement.split_whitespace().next()?;
        let path = ModelPath::parse(name);
        let by_name = || self.v1.values().find(|row| row.model.name == name);
        let row = self.v1.get(&path).or_else(by_name)?;
        Some(&row.model.model_type)
    }

    /// Projects are those that have a model as code.
    pub(crate) fn has_project(&self, key: &str) -> bool {
        self.v2.keys().any(|path| path.split('/').next() == Some(key))
    }

    /// The model as code at this path; branches may be given in their long form.
    pub(crate) fn v2_at(&self, path: &v2::AsCodePath) -> Option<&v2::Model> {
        let short = path.branch.strip_prefix("refs/heads/").unwrap_or(&path.branch);
        let path = v2::AsCodePath { branch: short.to_owned(), ..path.clone() };
        self.v2.get(&path.to_string())
    }
}
