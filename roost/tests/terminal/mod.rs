//! The binary in a pseudo terminal, with a person at the keys.

use std::path::Path;

use roost_oracle::Binary;
use serde::Deserialize;
use serde_json::Value;

/// What was on the screen, and how it ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Session {
    pictures: Vec<Vec<String>>,
    last: Vec<String>,
    code: Value,
    /// The terminal's settings are as they were before.
    restored: bool,
    /// The other screen, on which the view was, is left.
    left: bool,
    pub(crate) rang: bool,
    errors: Vec<String>,
}

impl Session {
    pub(crate) fn picture(&self, number: usize) -> String {
        self.pictures[number].join("\n")
    }

    /// What stands there after the end.
    pub(crate) fn last(&self) -> String {
        self.last.join("\n")
    }

    pub(crate) fn lines(&self, number: usize) -> &[String] {
        &self.pictures[number]
    }

    /// It did all that was typed, ended well, and gave the terminal back.
    pub(crate) fn assert_well(&self) {
        assert!(self.errors.is_empty(), "{}", self.errors.join("\n"));
        assert_eq!(self.code, 0, "{}", self.last());
        assert!(self.restored, "the terminal's settings are others now");
        assert!(self.left, "the other screen is still there");
    }
}

/// Runs `roost` so; `steps` are those of `drive.py`.
pub(crate) async fn drive(
    python: &Binary,
    size: (u16, u16),
    steps: &Value,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Session {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal/drive.py");
    let mut command = python.command();
    command.arg(script).args([size.0.to_string(), size.1.to_string(), steps.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_roost")).args(args);
    for name in ["ROOST_URL", "ROOST_TOKEN", "ROOST_LOG", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}
