use roost_vim_wire::types::{NamePasswordAuthentication, Password};

/// A user of the guest. `Debug` shows the name only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestCredentials {
    user: String,
    password: Password,
}

impl GuestCredentials {
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: Password(password.into()) }
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    pub(super) fn to_wire(&self) -> NamePasswordAuthentication {
        NamePasswordAuthentication {
            interactive_session: false,
            username: self.user.clone(),
            password: self.password.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_password_never_prints() {
        let credentials = GuestCredentials::new("root", "hunter2");
        assert!(!format!("{credentials:?} {:?}", credentials.to_wire()).contains("hunter2"));
    }
}
