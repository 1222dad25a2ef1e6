//! What is known about guests: who starts the worker in them, and what runs before it.

use roost_cds::Secret;
use roost_cds::v1::ModelPath;
use roost_settings::{Key, Reader, SecretError, SecretSource, Surroundings};

use super::keys::vsphere as keys;

/// A user in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestUser {
    pub name: String,
    pub password: SecretSource,
}

/// An entry of `models`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestModel {
    pub template: String,
    pub user: Option<GuestUser>,
    /// It may hold a password.
    pub pre_start_script: Option<Secret>,
}

/// An entry of `guestCredentials`, for a template, a V1 model, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestCredential {
    pub template: Option<String>,
    pub model: Option<ModelPath>,
    pub user: GuestUser,
}

/// `models` and `guestCredentials`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guests {
    pub models: Vec<GuestModel>,
    pub credentials: Vec<GuestCredential>,
}

/// A user and password to log in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestLogin {
    pub user: String,
    pub password: Secret,
}

/// Whose guest it is: which entries apply and what its model itself says.
#[derive(Debug, Clone, Copy)]
pub struct GuestOf<'a> {
    pub template: &'a str,
    /// For V1 models.
    pub model: Option<&'a ModelPath>,
    /// User and password in the worker model, filled in.
    pub own: Option<(&'a str, &'a Secret)>,
}

/// Why nobody can log in to a guest.
#[derive(Debug, thiserror::Error)]
pub enum GuestLoginError {
    #[error(
        "no user and password for the guests of {template}: neither in models, nor in guestCredentials, nor in the worker model"
    )]
    None { template: String },
    #[error("the password for the guests of {template}")]
    Password { template: String, source: SecretError },
}

impl Guests {
    /// The login for a guest: from `models`, else from `guestCredentials`, else the worker model's own (D32).
    pub fn login(
        &self,
        guest: GuestOf<'_>,
        surroundings: &dyn Surroundings,
    ) -> Result<GuestLogin, GuestLoginError> {
        let by_template = self.models.iter().find(|model| model.template == guest.template);
        let listed = self.credentials.iter().find(|credential| match guest.model {
            Some(path) => credential.model.as_ref() == Some(path),
            None => credential.template.as_deref() == Some(guest.template),
        });
        let user = by_template
            .and_then(|model| model.user.as_ref())
            .or(listed.map(|credential| &credential.user));
        if let Some(user) = user {
            let password = user.password.read(surroundings).map_err(|source| {
                GuestLoginError::Password { template: guest.template.to_owned(), source }
            })?;
            return Ok(GuestLogin { user: user.name.clone(), password });
        }
        match guest.own {
            Some((user, password)) if !user.is_empty() && !password.is_empty() => {
                Ok(GuestLogin { user: user.to_owned(), password: password.clone() })
            }
            _ => Err(GuestLoginError::None { template: guest.template.to_owned() }),
        }
    }

    /// What runs in a guest of this template before its worker.
    pub fn pre_start_script(&self, template: &str) -> Option<&str> {
        let model = self.models.iter().find(|model| model.template == template)?;
        model.pre_start_script.as_ref().map(Secret::expose)
    }
}

pub(super) fn read(reader: &Reader<'_>, surroundings: &dyn Surroundings) -> Guests {
    let mut guests = Guests::default();
    for listed in reader.tables(&keys::MODELS, "models[].") {
        let reader = &listed.reader;
        let template = reader.mandatory(&keys::MODEL_VMWARE);
        let user = user(reader, &keys::MODEL_USERNAME, &keys::MODEL_PASSWORD, surroundings);
        let pre_start_script = reader.filled(&keys::MODEL_PRE_START).map(Secret::new);
        let Some(template) = template else { continue };
        if guests.models.iter().any(|model| model.template == template) {
            reader.warn(
                &keys::MODEL_VMWARE,
                format!("{template:?} has an entry already; the first one is used"),
            );
        }
        guests.models.push(GuestModel { template, user, pre_start_script });
    }
    for listed in reader.tables(&keys::CREDENTIALS, "guestCredentials[].") {
        let reader = &listed.reader;
        let template = reader.filled(&keys::CREDENTIAL_VMWARE);
        let model = reader.filled(&keys::CREDENTIAL_PATH).map(|path| ModelPath::parse(&path));
        let user =
            user(reader, &keys::CREDENTIAL_USERNAME, &keys::CREDENTIAL_PASSWORD, surroundings);
        if template.is_none() && model.is_none() {
            reader.warn(
                &keys::CREDENTIAL_VMWARE,
                "is missing, and so is modelPath: the entry has no effect",
            );
        }
        match user {
            Some(user) => guests.credentials.push(GuestCredential { template, model, user }),
            None => reader.warn(
                &keys::CREDENTIAL_USERNAME,
                "or password is missing: the entry has no effect",
            ),
        }
    }
    guests
}

/// A user needs both: a name without a password cannot log in.
fn user(
    reader: &Reader<'_>,
    name: &Key,
    password: &Key,
    surroundings: &dyn Surroundings,
) -> Option<GuestUser> {
    let user = reader.filled(name);
    let secret = reader.secret(password, surroundings).map(|(source, _)| source);
    match (user, secret) {
        (Some(name), Some(password)) => Some(GuestUser { name, password }),
        (Some(_), None) if !reader.mentions_secret(password) => {
            reader.problem(password, "is missing for that user");
            None
        }
        (None, Some(_)) => {
            reader.problem(name, "is missing for that password");
            None
        }
        _ => None,
    }
}
