//! `roost check` and `roost config new`.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context as _;
use roost_cds::HttpSettings;
use roost_hatchery::config::{self, Config, Surroundings as _, SystemSurroundings};
use roost_settings::{Invalid, LogSettings, Problem, Problems, Table};
use roost_supervise::Chain;

use crate::serve::load_tls;
use crate::serve::sections::{self, Sections};
use roost_client::{complain, deliver, say};

/// Says every problem of a file, each led by the path to edit; fails if one of them would keep Roost from starting.
pub(crate) fn check(file: &Path) -> anyhow::Result<()> {
    let (service, warnings) = read(file)?;
    let warnings = count(warnings, "warning");
    let mut doors = service.sections.names();
    if service.hatchery.is_some() {
        doors.insert(0, "hatchery");
    }
    let doors = doors.join(", ");
    say(&format!("{}: no problems, {warnings} ({doors})\n", file.display()));
    Ok(())
}

/// What a service is made of.
#[derive(Debug)]
pub(crate) struct Service {
    /// `None` if the file has no such section.
    pub(crate) hatchery: Option<Config>,
    pub(crate) sections: Sections,
    pub(crate) log: LogSettings,
}

/// The configuration of a service. What is odd about the file is said and does not keep it from running.
pub(crate) fn load(file: &Path) -> anyhow::Result<Service> {
    Ok(read(file)?.0)
}

/// With the number of warnings.
fn read(file: &Path) -> anyhow::Result<(Service, usize)> {
    let text = SystemSurroundings
        .read_file(file)
        .with_context(|| format!("reading {}", file.display()))?;
    let (mut warnings, mut problems): (Vec<Problem>, Vec<String>) = (Vec::new(), Vec::new());
    let mut note = |invalid: Invalid| {
        problems.extend(invalid.problems.iter().map(ToString::to_string));
        invalid.warnings
    };
    let (sections, log, is_alone) = match read_sections(&text) {
        Ok((sections, log, is_alone, odd)) => {
            warnings.extend(odd);
            (Some(sections), log, is_alone)
        }
        Err((invalid, is_alone)) => {
            warnings.extend(note(invalid));
            (None, LogSettings::default(), is_alone)
        }
    };
    let hatchery = if is_alone { None } else { Some(Config::load(&text, &SystemSurroundings)) };
    let hatchery = match hatchery {
        None => None,
        Some(Ok(loaded)) => {
            warnings.extend(loaded.warnings);
            problems.extend(unusable_files(&loaded.config));
            Some(loaded.config)
        }
        Some(Err(invalid)) => {
            warnings.extend(note(invalid));
            None
        }
    };
    warnings.sort_by_key(|warning| warning.line);
    tell("warning", &warnings);
    let Some(sections) = sections.filter(|_| problems.is_empty()) else {
        problems.dedup();
        tell("problem", &problems);
        anyhow::bail!("{}: {}", file.display(), count(problems.len(), "problem"));
    };
    Ok((Service { hatchery, sections, log }, warnings.len()))
}

type Read = (Sections, LogSettings, bool, Vec<Problem>);

/// With whether the doors are there without a hatchery. What is no TOML is told by whoever reads that.
fn read_sections(text: &str) -> Result<Read, (Invalid, bool)> {
    let Some(file) = Table::parse(text, &Problems::default()) else {
        return Ok((Sections::none(), LogSettings::default(), false, Vec::new()));
    };
    let problems = Problems::default();
    let sections = Sections::read(&file, &SystemSurroundings, &problems);
    let is_alone = sections::are_alone(&file);
    let log = if is_alone {
        LogSettings::read("ROOST_LOG", &file, &SystemSurroundings, &problems)
    } else {
        LogSettings::default()
    };
    match problems.settle(Some(())) {
        Ok(((), odd)) => Ok((sections, log, is_alone, odd)),
        Err(invalid) => Err((invalid, is_alone)),
    }
}

/// Certificates that the file names and that no connection could be made with.
fn unusable_files(config: &Config) -> Vec<String> {
    let api = HttpSettings { insecure: config.api.insecure, ca_file: config.api.ca_file.clone() };
    let trust = [
        ("hatchery.vsphere.caFile", config.vcenter.trust.check()),
        ("hatchery.vsphere.commonConfiguration.api.http.caFile", api.trust().check()),
    ];
    let mut problems: Vec<String> = Vec::new();
    for (path, checked) in trust {
        if let Err(error) = checked {
            problems.push(format!("{path}: {}", Chain(&error)));
        }
    }
    if let Err(error) = load_tls(&config.listen) {
        problems.push(Chain(&error).to_string());
    }
    problems
}

pub(crate) fn print_sample() -> anyhow::Result<()> {
    deliver(&format!("{}{}", config::sample(), sections::sample()))
}

fn tell(kind: &str, problems: &[impl Display]) {
    for problem in problems {
        complain(format_args!("{kind}: {problem}"));
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
