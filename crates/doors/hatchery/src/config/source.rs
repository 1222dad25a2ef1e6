//! Where a secret stands: in the file, in another file, or in a variable. For each secret key `password` there are `passwordFile` and
//! `passwordEnv`; one of the three is given. A value never has a special form, because any text may be a password.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use roost_cds::Secret;

use super::key::Key;
use super::reader::{Reader, as_text};
use super::tree::{Entry, Value};

/// What surrounds the process: its environment variables and the files it may read.
pub trait Surroundings: fmt::Debug {
    fn variable(&self, name: &str) -> Option<String>;
    fn read_file(&self, path: &Path) -> io::Result<String>;
}

/// 50,000 flavors take a quarter of it.
const MAX_FILE: u64 = 16 << 20;

/// The machine's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemSurroundings;

impl Surroundings for SystemSurroundings {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Only a regular file, and none larger than [`MAX_FILE`]: a pipe would never end, and a device never say anything.
    fn read_file(&self, path: &Path) -> io::Result<String> {
        // Before it is opened: to open a pipe is to wait for whoever writes.
        let found = std::fs::metadata(path)?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        if found.len() > MAX_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 MiB"));
        }
        std::fs::read_to_string(path)
    }
}

/// A secret, or the place where it is. A place is read again for each use, so that a rotated secret needs no restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    Given(Secret),
    File(PathBuf),
    Variable(String),
}

/// Why a secret cannot be had. Never says anything of its content.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("{} cannot be read", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the variable {name} is not set")]
    Variable { name: String },
    #[error("{place} is empty")]
    Empty { place: String },
}

impl SecretSource {
    pub fn read(&self, surroundings: &dyn Surroundings) -> Result<Secret, SecretError> {
        let (place, text) = match self {
            Self::Given(secret) => return Ok(secret.clone()),
            Self::File(path) => {
                let text = surroundings
                    .read_file(path)
                    .map_err(|source| SecretError::File { path: path.clone(), source })?;
                // Editors end a file with a line end that is not part of the secret.
                (path.display().to_string(), text.trim_end_matches(['\r', '\n']).to_owned())
            }
            Self::Variable(name) => {
                let text = surroundings
                    .variable(name)
                    .ok_or_else(|| SecretError::Variable { name: name.clone() })?;
                (name.clone(), text)
            }
        };
        if text.is_empty() { Err(SecretError::Empty { place }) } else { Ok(Secret::new(text)) }
    }
}

impl Reader<'_> {
    /// Whether the file gives the secret in any of its three ways, readable or not.
    pub(super) fn mentions_secret(&self, key: &Key) -> bool {
        let is_filled =
            |entry: &Entry| !matches!(&entry.value, Value::Text(text) if text.is_empty());
        ["", "File", "Env"].iter().any(|suffix| self.beside(key, suffix).is_some_and(is_filled))
    }

    /// As [`Self::secret`]; not to give it is a problem.
    pub(super) fn mandatory_secret(
        &self,
        key: &Key,
        surroundings: &dyn Surroundings,
    ) -> Option<(SecretSource, Secret)> {
        if !self.mentions_secret(key) {
            let name = key.name();
            self.problem(key, format!("is mandatory; give it as {name}, {name}File or {name}Env"));
            return None;
        }
        self.secret(key, surroundings)
    }

    /// The secret's source and its present content, or `None` when it is not given. A place that cannot be read is a problem.
    pub(super) fn secret(
        &self,
        key: &Key,
        surroundings: &dyn Surroundings,
    ) -> Option<(SecretSource, Secret)> {
        let given = self.entry(key).and_then(|entry| {
            // Not trimmed: a password may begin or end with a space.
            let text = if let Value::Text(text) = &entry.value {
                Some(text.clone())
            } else {
                let text = as_text(&entry.value);
                if text.is_none() {
                    self.problem(key, format!("must be text, is {}", entry.value.kind()));
                }
                text
            };
            text.filter(|text| !text.is_empty()).map(|text| SecretSource::Given(Secret::new(text)))
        });
        let file = self.place(key, "File").map(|path| SecretSource::File(path.into()));
        let variable = self.place(key, "Env").map(SecretSource::Variable);
        let mut sources = [given, file, variable].into_iter().flatten();
        let source = sources.next()?;
        if sources.next().is_some() {
            let name = key.name();
            self.problem(
                key,
                format!("is given more than once: use one of {name}, {name}File and {name}Env"),
            );
            return None;
        }
        match source.read(surroundings) {
            Ok(secret) => Some((source, secret)),
            Err(error) => {
                self.problem(key, explain(&error));
                None
            }
        }
    }

    fn place(&self, key: &Key, suffix: &str) -> Option<String> {
        let Entry { value, .. } = self.beside(key, suffix)?;
        let text = as_text(value);
        if text.is_none() {
            self.problem(key, format!("{}{suffix} must be text, is {}", key.name(), value.kind()));
        }
        text.filter(|text| !text.is_empty())
    }
}

fn explain(error: &SecretError) -> String {
    match error {
        SecretError::File { source, .. } => format!("{error}: {source}"),
        SecretError::Variable { .. } | SecretError::Empty { .. } => error.to_string(),
    }
}
