//! The file as operators have it, and the mistakes they make.

mod problems;
mod secrets;
mod shared_file;
mod values;
mod whole;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::*;

pub(super) const KEY: &str = include_str!("../../../../cds/testdata/hatchery-pkcs1.pem");

/// Variables and files of a test.
#[derive(Debug, Default)]
pub(super) struct Pretend {
    pub(super) variables: BTreeMap<String, String>,
    pub(super) files: BTreeMap<PathBuf, String>,
}

impl Pretend {
    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    pub(super) fn file(mut self, path: &str, content: &str) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }
}

impl Surroundings for Pretend {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        self.files.get(path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// The least that starts, with `vsphere` lines in `[hatchery.vsphere]` and `rest` after it.
pub(super) fn file(vsphere: &str, rest: &str) -> String {
    format!(
        r#"
[hatchery.vsphere]
user = "svc@vsphere.local"
endpoint = "vcenter.example"
password = "hunter2-vcenter"
datacenterString = "dc1"
{vsphere}
[hatchery.vsphere.commonConfiguration]
name = "hv1"
rsaPrivateKey = """
{KEY}"""
[hatchery.vsphere.commonConfiguration.api]
tokenV2 = "hunter2-token"
{rest}
"#
    )
}

pub(super) fn load(text: &str) -> Loaded {
    Config::load(text, &Pretend::default()).unwrap_or_else(|invalid| panic!("{invalid}"))
}

pub(crate) fn config(vsphere: &str, rest: &str) -> Config {
    let loaded = load(&file(vsphere, rest));
    assert_eq!(loaded.warnings, [], "{vsphere}{rest}");
    loaded.config
}

/// The problems of a file, without line numbers.
pub(super) fn problems(text: &str) -> Vec<String> {
    let invalid = Config::load(text, &Pretend::default()).expect_err("the file should not load");
    without_lines(&invalid.problems)
}

pub(super) fn warnings(vsphere: &str, rest: &str) -> Vec<String> {
    without_lines(&load(&file(vsphere, rest)).warnings)
}

fn without_lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}
