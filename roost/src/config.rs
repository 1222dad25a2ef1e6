//! `roost check` and `roost config new`.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context as _;
use roost_hatchery::config::{self, Config, Loaded, SystemSurroundings};
use roost_supervise::Chain;

use crate::output::say;
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
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    match Config::load(&text, &SystemSurroundings) {
        Ok(loaded) => {
            tell("warning", &loaded.warnings);
            if let Err(error) = load_tls(&loaded.config.listen) {
                tell("problem", &[Chain(&error)]);
                anyhow::bail!("{}: {}", file.display(), count(1, "problem"));
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

pub(crate) fn print_sample() {
    say(&config::sample());
}

fn tell(kind: &str, problems: &[impl Display]) {
    for problem in problems {
        eprintln!("{kind}: {problem}");
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
