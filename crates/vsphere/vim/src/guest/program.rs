use roost_vim_wire::types::{GuestProgramSpec, Hidden};

/// A program to be started in a guest. Arguments and values of the environment may hold secrets and do not print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub path: String,
    /// One text. On Linux a shell parses it, so that what must stay one word has to be quoted: see [`quote`].
    pub arguments: Hidden,
    /// The user's home if not set.
    pub working_directory: Option<String>,
    pub environment: Environment,
}

/// A longer request is refused by some hosts; upload a script instead.
const MOST_ARGUMENT_BYTES: usize = 32 << 10;

impl Program {
    pub fn new(path: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            arguments: Hidden(arguments.into()),
            working_directory: None,
            environment: Environment::default(),
        }
    }

    /// A shell script. Whatever it holds reaches bash as it is.
    pub fn bash(script: &str) -> Self {
        Self::new("/bin/bash", format!("-c {}", quote(script)))
    }

    #[must_use]
    pub fn in_directory(self, directory: impl Into<String>) -> Self {
        Self { working_directory: Some(directory.into()), ..self }
    }

    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// Whether a guest would be asked to start it at all, so that what is wrong with it is known before there is a guest.
    pub fn check(&self) -> Result<(), EnvironmentError> {
        self.to_wire("").map(drop)
    }

    pub(super) fn to_wire(&self, user: &str) -> Result<GuestProgramSpec, EnvironmentError> {
        let bytes = self.arguments.0.len();
        if bytes > MOST_ARGUMENT_BYTES {
            return Err(EnvironmentError::ArgumentsTooLong { bytes, limit: MOST_ARGUMENT_BYTES });
        }
        Ok(GuestProgramSpec {
            program_path: self.path.clone(),
            arguments: self.arguments.0.clone(),
            working_directory: self.working_directory.clone(),
            env_variables: self.environment.to_wire(user)?,
        })
    }
}

/// `text` as one word of a POSIX shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The environment of a program. Empty means that of the user; otherwise it replaces all of that, so that `PATH`, `HOME` and
/// `LANG` are added where they are not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<(String, Hidden)>,
}

/// Why a program cannot be started as wished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("{name:?} is no name of an environment variable")]
    Name { name: String },
    #[error("the value of {name} holds a zero byte")]
    Value { name: String },
    #[error(
        "the arguments have {bytes} bytes, more than the {limit} that a guest takes; upload a script instead"
    )]
    ArgumentsTooLong { bytes: usize, limit: usize },
}

impl Environment {
    /// Sets a variable, in place of what it was.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), Hidden(value.into()));
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    fn to_wire(&self, user: &str) -> Result<Vec<Hidden>, EnvironmentError> {
        if self.variables.is_empty() {
            return Ok(Vec::new());
        }
        let home = if user == "root" { "/root".into() } else { format!("/home/{user}") };
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
        let usual = [("PATH", path), ("HOME", home), ("LANG", "C.UTF-8".to_owned())];
        let is_set = |name: &str| self.variables.iter().any(|(known, _)| known == name);
        let mut lines: Vec<_> = usual
            .into_iter()
            .filter(|(name, _)| !is_set(name))
            .map(|(name, value)| Hidden(format!("{name}={value}")))
            .collect();
        for (name, value) in &self.variables {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(EnvironmentError::Name { name: name.clone() });
            }
            if value.0.contains('\0') {
                return Err(EnvironmentError::Value { name: name.clone() });
            }
            lines.push(Hidden(format!("{name}={}", value.0)));
        }
        Ok(lines)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        pairs
            .into_iter()
            .fold(Self::default(), |environment, (name, value)| environment.with(name, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::device::{compact, written};

    #[test]
    fn a_program_is_written_as_it_was_recorded() {
        let environment = Environment::default()
            .with("PATH", "/bin")
            .with("HOME", "/")
            .with("LANG", "C")
            .with("CDS_CONFIG", "e30=");
        let program = Program::new("/bin/echo", "-n ;env")
            .in_directory("/home/ci")
            .with_environment(environment);
        assert_eq!(
            written("spec", &program.to_wire("root").unwrap()),
            compact(
                r#"<spec xsi:type="GuestProgramSpec"><programPath>/bin/echo</programPath><arguments>-n ;env</arguments>
                <workingDirectory>/home/ci</workingDirectory><envVariables>PATH=/bin</envVariables><envVariables>HOME=/</envVariables>
                <envVariables>LANG=C</envVariables><envVariables>CDS_CONFIG=e30=</envVariables></spec>"#
            )
        );
    }

    #[test]
    fn a_script_is_one_word_for_the_shell() {
        assert_eq!(
            Program::bash("echo 'a b'; exit 3").arguments.0,
            r"-c 'echo '\''a b'\''; exit 3'"
        );
    }

    #[test]
    fn an_environment_keeps_what_every_program_needs() {
        let lines = |environment: &Environment, user| -> Vec<String> {
            environment.to_wire(user).unwrap().into_iter().map(|line| line.0).collect()
        };
        assert!(
            lines(&Environment::default(), "root").is_empty(),
            "an empty one is the user's own"
        );
        let some = Environment::from_iter([("A", "1")]);
        assert_eq!(lines(&some, "ci")[1..], ["HOME=/home/ci", "LANG=C.UTF-8", "A=1"]);
        assert!(lines(&some, "ci")[0].starts_with("PATH=/"));
        assert_eq!(
            lines(&some.with("HOME", "/x").with("HOME", "/y"), "root")[2..],
            ["A=1", "HOME=/y"]
        );
    }

    #[test]
    fn what_no_shell_would_take_is_refused() {
        let refused = |name: &str, value: &str| {
            Environment::default().with(name, value).to_wire("root").unwrap_err()
        };
        assert_eq!(refused("A=B", "1"), EnvironmentError::Name { name: "A=B".into() });
        assert_eq!(refused("", "1"), EnvironmentError::Name { name: String::new() });
        assert_eq!(refused("A", "1\0"), EnvironmentError::Value { name: "A".into() });
        let long = Program::bash(&"x".repeat(40_000)).to_wire("root").unwrap_err();
        assert!(long.to_string().contains("upload a script"));
    }

    #[test]
    fn secrets_of_a_program_do_not_print() {
        let program = Program::bash("login hunter2")
            .with_environment(Environment::default().with("TOKEN", "hunter2"));
        assert!(!format!("{program:?}").contains("hunter2"));
    }

    /// What a POSIX shell makes of one word that is quoted by ours and nothing else.
    fn unquote(word: &str) -> Option<String> {
        let (mut text, mut rest) = (String::new(), word);
        while let Some(after) = rest.strip_prefix('\'') {
            let (inside, tail) = after.split_once('\'')?;
            text.push_str(inside);
            rest = tail;
            if let Some(tail) = rest.strip_prefix(r"\'") {
                text.push('\'');
                rest = tail;
            }
        }
        rest.is_empty().then_some(text)
    }

    proptest! {
        #[test]
        fn any_text_survives_quoting(text in ".*") {
            prop_assert_eq!(unquote(&quote(&text)), Some(text));
        }
    }
}
