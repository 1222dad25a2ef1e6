//! `roost check` and `roost config new`.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context as _;
use roost_cds::HttpSettings;
use roost_hatchery::config::{self, Config, Loaded, Surroundings as _, SystemSurroundings};
use roost_supervise::Chain;

use crate::output::{complain, deliver, say};
use crate::serve::load_tls;

/// Says every problem of a file, each led by the path to edit; fails if one of them would keep Roost from starting.
pub(crate) fn check(file: &Path) -> anyhow::Result<()> {
    let loaded = read(file)?;
    let warnings = count(loaded.warnings.len(), "warning");
    say(&format!("{}: no problems, {warnings}\n", file.display()));
    Ok(())
}

/// The configuration of a service. What is odd about the file is said and does not keep it from running.
pub(crate) fn load(file: &Path) -> anyhow::Result<Config> {
    Ok(read(file)?.config)
}

fn read(file: &Path) -> anyhow::Result<Loaded> {
    let text = SystemSurroundings
        .read_file(file)
        .with_context(|| format!("reading {}", file.display()))?;
    match Config::load(&text, &SystemSurroundings) {
        Ok(loaded) => {
            tell("warning", &loaded.warnings);
            let unusable = unusable_files(&loaded.config);
            if !unusable.is_empty() {
                tell("problem", &unusable);
                anyhow::bail!("{}: {}", file.display(), count(unusable.len(), "problem"));
            }
            Ok(loaded)
        }
        Err(invalid) => {
            tell("warning", &invalid.warnings);
            tell("problem", &invalid.problems);
            anyhow::bail!("{}: {}", file.display(), count(invalid.problems.len(), "problem"))
        }
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
    deliver(&config::sample())
}

fn tell(kind: &str, problems: &[impl Display]) {
    for problem in problems {
        complain(format_args!("{kind}: {problem}"));
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
