//! Where user name and password come from. The source is asked again before each login, so that a rotated password is
//! picked up without a restart.

use std::fmt;
use std::io;
use std::path::PathBuf;

use roost_vim_wire::types::Password;

/// A user name and a password. `Debug` shows the name only.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    password: Password,
}

impl Credentials {
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: Password(password.into()) }
    }

    pub(crate) fn password(&self) -> Password {
        self.password.clone()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("the environment variable {name} is not set or not text")]
    Variable { name: String },
    #[error("the password file {} cannot be read", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the password is empty")]
    Empty,
    /// For sources that are written elsewhere.
    #[error("the credentials cannot be read")]
    Source { source: Box<dyn std::error::Error + Send + Sync> },
}

/// Gives the credentials of the moment. Called before each login and never otherwise; it should not block for long.
pub trait CredentialSource: fmt::Debug + Send + Sync + 'static {
    fn read(&self) -> Result<Credentials, CredentialError>;
}

/// Always the same.
impl CredentialSource for Credentials {
    fn read(&self) -> Result<Credentials, CredentialError> {
        Ok(self.clone())
    }
}

/// The password stands in an environment variable.
#[derive(Debug, Clone)]
pub struct EnvironmentPassword {
    pub user: String,
    pub variable: String,
}

impl CredentialSource for EnvironmentPassword {
    fn read(&self) -> Result<Credentials, CredentialError> {
        let password = std::env::var(&self.variable)
            .map_err(|_| CredentialError::Variable { name: self.variable.clone() })?;
        not_empty(&self.user, &password)
    }
}

/// The password is the content of a file, without the line end that editors add.
#[derive(Debug, Clone)]
pub struct PasswordFile {
    pub user: String,
    pub path: PathBuf,
}

impl CredentialSource for PasswordFile {
    fn read(&self) -> Result<Credentials, CredentialError> {
        let text = std::fs::read_to_string(&self.path)
            .map_err(|source| CredentialError::File { path: self.path.clone(), source })?;
        not_empty(&self.user, text.trim_end_matches(['\r', '\n']))
    }
}

/// An empty password can only be a mistake, and the server would count it as a bad login.
fn not_empty(user: &str, password: &str) -> Result<Credentials, CredentialError> {
    if password.is_empty() {
        Err(CredentialError::Empty)
    } else {
        Ok(Credentials::new(user, password))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_never_prints() {
        let credentials = Credentials::new("roost", "hunter2");
        assert!(!format!("{credentials:?} {credentials:#?}").contains("hunter2"));
    }

    #[test]
    fn a_file_is_read_each_time_and_loses_only_its_line_end() {
        let path = std::env::temp_dir().join(format!("roost-vim-password-{}", std::process::id()));
        let source = PasswordFile { user: "roost".into(), path: path.clone() };
        for (content, wanted) in [(" one \n", " one "), ("two\r\n", "two"), ("three", "three")] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(source.read().unwrap(), Credentials::new("roost", wanted));
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(source.read(), Err(CredentialError::Empty)));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(source.read(), Err(CredentialError::File { .. })));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let source =
            EnvironmentPassword { user: "roost".into(), variable: "ROOST_VIM_TEST_NO_SUCH".into() };
        assert!(source.read().unwrap_err().to_string().contains("ROOST_VIM_TEST_NO_SUCH"));
    }
}
