//! `roost check` and `roost config new`.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stdout};
use std::path::Path;

use anyhow::Context as _;
use roost_hatchery::config::{self, Config, SystemSurroundings};

/// Says every problem of a file, each led by the path to edit; fails if one of them would keep Roost from starting.
pub(crate) fn check(file: &Path) -> anyhow::Result<()> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    match Config::load(&text, &SystemSurroundings) {
        Ok(loaded) => {
            tell("warning", &loaded.warnings);
            println!(
                "{}: no problems, {}",
                file.display(),
                count(loaded.warnings.len(), "warning")
            );
            Ok(())
        }
        Err(invalid) => {
            tell("warning", &invalid.warnings);
            tell("problem", &invalid.problems);
            anyhow::bail!("{}: {}", file.display(), count(invalid.problems.len(), "problem"))
        }
    }
}

pub(crate) fn print_sample() -> anyhow::Result<()> {
    match stdout().write_all(config::sample().as_bytes()) {
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing the sample"),
    }
}

fn tell(kind: &str, problems: &[impl Display]) {
    for problem in problems {
        eprintln!("{kind}: {problem}");
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
