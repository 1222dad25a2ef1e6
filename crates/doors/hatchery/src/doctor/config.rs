//! The file itself, as `roost check` sees it.

use std::path::Path;

use crate::config::{Config, Problem, Surroundings as _, SystemSurroundings};

use roost_doctor::{Finding, Section};

const CHECK: &str = "file";

/// The configuration, if it can be used, and what was found.
pub(super) fn examine(file: &Path) -> (Option<Config>, Section) {
    let read = SystemSurroundings.read_file(file).map_err(|error| error.to_string());
    let (config, findings) = judge(read.as_deref().map_err(String::as_str));
    let about = file.display().to_string();
    (config, Section { system: "configuration", about, findings })
}

fn judge(text: Result<&str, &str>) -> (Option<Config>, Vec<Finding>) {
    let text = match text {
        Ok(text) => text,
        Err(why) => {
            let finding = Finding::fail(CHECK, format!("cannot be read: {why}"));
            return (None, vec![finding.advice("`roost config new` prints one to begin with")]);
        }
    };
    let warn = |warning: &Problem| Finding::warn(CHECK, warning.to_string());
    match Config::load(text, &SystemSurroundings) {
        Ok(loaded) => {
            let mut findings: Vec<Finding> = loaded.warnings.iter().map(warn).collect();
            let name = &loaded.config.identity.name;
            findings.insert(0, Finding::pass(CHECK, format!("no problems; hatchery {name:?}")));
            (Some(loaded.config), findings)
        }
        Err(invalid) => {
            let fail = |problem: &Problem| Finding::fail(CHECK, problem.to_string());
            let mut findings: Vec<Finding> = invalid.problems.iter().map(fail).collect();
            findings.extend(invalid.warnings.iter().map(warn));
            (None, findings)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_doctor::Verdict;

    #[test]
    fn every_problem_of_a_file_is_a_failure_of_its_own() {
        let (config, findings) = judge(Ok("[hatchery.vsphere]\nuser = []\nmaxCpuz = 1\n"));
        assert!(config.is_none());
        let failures = findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
        assert!(failures > 2, "{findings:?}");
        let (config, findings) = judge(Err("No such file or directory"));
        assert!(config.is_none() && findings[0].advice.is_some());
    }

    #[test]
    fn what_would_never_end_is_not_read() {
        let (config, section) = examine(Path::new("/dev/zero"));
        assert!(config.is_none());
        assert_eq!(section.findings[0].found, "cannot be read: it is not a regular file");
    }
}
