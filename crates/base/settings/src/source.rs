//! Where a secret stands: in the file, in another file, or in a variable. For each secret key `password` there are `passwordFile` and
//! `passwordEnv`; one of the three is given. A value never has a special form, because any text may be a password.

use std::io;
use std::path::PathBuf;

use crate::environment::Surroundings;
use crate::key::Key;
use crate::reader::{Reader, as_text};
use crate::secret::Secret;
use crate::tree::{Entry, Value};

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
    pub fn mentions_secret(&self, key: &Key) -> bool {
        let is_filled =
            |entry: &Entry| !matches!(&entry.value, Value::Text(text) if text.is_empty());
        ["", "File", "Env"].iter().any(|suffix| self.beside(key, suffix).is_some_and(is_filled))
    }

    /// As [`Self::secret`]; not to give it is a problem.
    pub fn mandatory_secret(
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
    pub fn secret(
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
