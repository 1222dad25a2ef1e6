use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use roost_tls::{Thumbprint, TlsTrust};
use roost_vim::{AddressError, Credentials, Settings};

/// What a Secret says about a vCenter. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub server: String,
    pub username: String,
    password: String,
    /// Whose certificates are believed.
    pub trust: TlsTrust,
}

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("Secret {secret} has no {key}")]
    Missing { secret: String, key: &'static str },
    #[error("Secret {secret}: {key} is not text")]
    NotText { secret: String, key: &'static str },
    #[error("Secret {secret}: {key}: {why}")]
    Trust { secret: String, key: &'static str, why: String },
    #[error("Secret {secret} has both ca.crt and thumbprint: leave one out")]
    TwoTrusts { secret: String },
}

impl Login {
    pub fn new(server: &str, username: &str, password: &str) -> Self {
        Self {
            server: server.to_owned(),
            username: username.to_owned(),
            password: password.to_owned(),
            trust: TlsTrust::System,
        }
    }

    /// `name` is for messages.
    pub fn from_secret(name: &str, secret: &Secret) -> Result<Self, LoginError> {
        let text = |key: &'static str| -> Result<Option<String>, LoginError> {
            let Some(bytes) = secret.data.as_ref().and_then(|data| data.get(key)) else {
                return Ok(None);
            };
            let text = String::from_utf8(bytes.0.clone());
            let text = text.map_err(|_| LoginError::NotText { secret: name.to_owned(), key })?;
            Ok(Some(text).filter(|text| !text.trim().is_empty()))
        };
        let required =
            |key| text(key)?.ok_or_else(|| LoginError::Missing { secret: name.to_owned(), key });
        Ok(Self {
            server: required("server")?.trim().to_owned(),
            username: required("username")?.trim().to_owned(),
            password: required("password")?,
            trust: {
                let insecure = text("insecure")?.is_some_and(|value| value.trim() == "true");
                read_trust(name, insecure, text("ca.crt")?, text("thumbprint")?)?
            },
        })
    }

    pub fn settings(&self) -> Result<Settings, AddressError> {
        Settings::new(&self.server, Credentials::new(&self.username, &self.password))
    }
}

fn read_trust(
    secret: &str,
    insecure: bool,
    ca: Option<String>,
    thumbprint: Option<String>,
) -> Result<TlsTrust, LoginError> {
    let failed = |key, why: String| LoginError::Trust { secret: secret.to_owned(), key, why };
    match (insecure, ca, thumbprint) {
        (false, None, None) => Ok(TlsTrust::System),
        // As upstream, which does not know the other keys.
        (true, ..) => Ok(TlsTrust::Insecure),
        (false, Some(pem), None) => {
            let trust = TlsTrust::CaPem(pem);
            trust.check().map_err(|error| failed("ca.crt", error.to_string()))?;
            Ok(trust)
        }
        (false, None, Some(text)) => {
            let thumbprint: Result<Thumbprint, _> = text.trim().parse();
            let thumbprint = thumbprint.map_err(|error| failed("thumbprint", error.to_string()))?;
            Ok(TlsTrust::Thumbprint(thumbprint))
        }
        (false, Some(_), Some(_)) => Err(LoginError::TwoTrusts { secret: secret.to_owned() }),
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Login");
        debug.field("server", &self.server).field("username", &self.username);
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(pairs: &[(&str, &str)]) -> Secret {
        let data =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), ByteString((*value).into())));
        Secret { data: Some(data.collect()), ..Secret::default() }
    }

    #[test]
    fn a_login_needs_server_user_and_password_and_shows_no_password() {
        let all = [("server", "vc\n"), ("username", "forge"), ("password", "hunter2")];
        let login = Login::from_secret("blue/vc", &secret(&all)).unwrap();
        assert_eq!((login.server.as_str(), &login.trust), ("vc", &TlsTrust::System));
        assert!(!format!("{login:?}").contains("hunter2"));
        for index in 0..3 {
            let mut some = all.to_vec();
            let (key, _) = some.remove(index);
            let error = Login::from_secret("blue/vc", &secret(&some)).unwrap_err().to_string();
            assert_eq!(error, format!("Secret blue/vc has no {key}"));
        }
    }

    #[test]
    fn a_login_says_whose_certificate_is_believed() {
        let read = |more: &[(&str, &str)]| {
            let mut all = vec![("server", "vc"), ("username", "forge"), ("password", "hunter2")];
            all.extend(more);
            let login = Login::from_secret("blue/vc", &secret(&all));
            login.map(|login| login.trust).map_err(|error| error.to_string())
        };
        assert_eq!(read(&[("insecure", "true")]), Ok(TlsTrust::Insecure));
        assert_eq!(read(&[("insecure", "false"), ("ca.crt", " ")]), Ok(TlsTrust::System));
        let print = "AB:".repeat(31) + "AB";
        assert!(matches!(read(&[("thumbprint", &print)]), Ok(TlsTrust::Thumbprint(_))));
        let refused = read(&[("ca.crt", "no certificate")]).unwrap_err();
        assert!(refused.starts_with("Secret blue/vc: ca.crt: the CA that was given"), "{refused}");
        assert!(
            read(&[("thumbprint", "AB")]).unwrap_err().starts_with("Secret blue/vc: thumbprint")
        );
        let both = read(&[("ca.crt", "x"), ("thumbprint", &print)]).unwrap_err();
        assert_eq!(both, "Secret blue/vc has both ca.crt and thumbprint: leave one out");
    }
}
