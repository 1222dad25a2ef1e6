//! What happens when an oracle is not there: outside CI one plain line and a skipped test, in CI a
//! failed one. A green CI run therefore means that every oracle was asked.

use crate::process;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Why an oracle cannot be used.
#[derive(Debug)]
pub(crate) enum Missing {
    Go,
    Python,
    /// Neither on the machine nor to be had with apt.
    Package {
        name: &'static str,
    },
    /// The tool chain is there, and could not make the oracle; most often the network is not there.
    Fetch {
        step: String,
        detail: String,
    },
    Folder {
        path: PathBuf,
        source: io::Error,
    },
}

impl Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Go => f.write_str("no Go tool chain (install go, or put it on PATH)"),
            Self::Python => f.write_str("no Python (install python3, or put it on PATH)"),
            Self::Package { name } => write!(f, "no {name} (install the Debian package {name})"),
            Self::Fetch { step, detail } => write!(f, "{step} failed: {}", one_line(detail)),
            Self::Folder { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

/// One oracle of this process: looked for once, however many tests ask.
pub(crate) struct Oracle<T> {
    name: &'static str,
    found: OnceLock<Result<T, Missing>>,
}

impl<T: Clone> Oracle<T> {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, found: OnceLock::new() }
    }

    /// The oracle, or `None` after a line on standard error. Panics instead in CI.
    pub(crate) fn get(&self, find: impl FnOnce() -> Result<T, Missing>) -> Option<T> {
        let mut is_first = false;
        let found = self.found.get_or_init(|| {
            is_first = true;
            find()
        });
        match found {
            Ok(oracle) => Some(oracle.clone()),
            Err(why) if is_ci(std::env::var("CI").ok().as_deref()) => {
                panic!("{} oracle not run: {why}; CI does not skip oracles", self.name)
            }
            Err(why) => {
                if is_first {
                    say(&skip_line(self.name, why));
                }
                None
            }
        }
    }
}

/// `missing` if `tool` cannot be started; nothing has been said or touched by then.
pub(crate) fn require_tool(tool: &str, question: &str, missing: Missing) -> Result<(), Missing> {
    match process::run(Command::new(tool).arg(question), Duration::from_mins(1)) {
        Ok(output) if output.is_success() => Ok(()),
        _ => Err(missing),
    }
}

/// Writes a line that the test harness does not capture: a skip nobody sees is a lie.
pub(crate) fn say(line: &str) {
    // Losing the line is no reason to fail a test.
    let _ = writeln!(io::stderr(), "{line}");
}

fn skip_line(name: &str, why: &Missing) -> String {
    format!("skipped: {why} - {name} oracle not run")
}

fn is_ci(value: Option<&str>) -> bool {
    matches!(value, Some("true" | "1"))
}

/// The last lines of a tool's complaint say what went wrong; the first ones are progress.
fn one_line(text: &str) -> String {
    const LINES: usize = 3;
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_one_line_that_names_the_oracle_and_the_remedy() {
        let fetch = Missing::Fetch {
            step: "go build".into(),
            detail: "downloading\n\na\n b\nno route to host\n".into(),
        };
        for (why, want) in [
            (
                Missing::Go,
                "skipped: no Go tool chain (install go, or put it on PATH) - vcsim oracle not run",
            ),
            (
                Missing::Package { name: "prometheus" },
                "skipped: no prometheus (install the Debian package prometheus) - vcsim oracle not run",
            ),
            (fetch, "skipped: go build failed: a; b; no route to host - vcsim oracle not run"),
        ] {
            assert_eq!(skip_line("vcsim", &why), want);
        }
    }

    #[test]
    fn a_tool_that_does_not_start_is_missing() {
        assert!(require_tool("no-such-program-here", "version", Missing::Go).is_err());
        assert!(require_tool("false", "version", Missing::Go).is_err());
        assert!(require_tool("true", "version", Missing::Go).is_ok());
    }

    #[test]
    fn only_true_and_1_mean_ci() {
        for (value, want) in
            [(Some("true"), true), (Some("1"), true), (Some("false"), false), (None, false)]
        {
            assert_eq!(is_ci(value), want, "{value:?}");
        }
    }

    #[test]
    fn an_oracle_is_looked_for_once() {
        let oracle = Oracle::new("test");
        assert_eq!(oracle.get(|| Ok(1)), Some(1));
        assert_eq!(oracle.get(|| unreachable!()), Some(1));
    }
}
