use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serializer};

/// Text that must not be seen: a token, a password, a script that carries one. `Debug` prints nothing of it, it has no
/// `Display`, it does not serialise by accident, and its memory is overwritten when it is dropped.
#[derive(Clone, Default)]
pub struct Secret(SecretString);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself. Each call is a place where it could leak.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }

    /// `text` without this secret in it, for messages that others wrote.
    pub fn scrub(&self, text: &str) -> String {
        if self.is_empty() { text.to_owned() } else { text.replace(self.expose(), "***") }
    }

    /// For `#[serde(serialize_with)]` on the fields whose purpose is to carry a secret to its owner.
    pub fn serialize_exposed<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl PartialEq for Secret {
    /// In constant time for equal lengths, so that a simulated server is no worse than a real one.
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.expose().as_bytes(), other.expose().as_bytes());
        left.len() == right.len()
            && left.iter().zip(right).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

impl Eq for Secret {}

impl From<SecretString> for Secret {
    fn from(text: SecretString) -> Self {
        Self(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn a_secret_prints_nothing_of_itself() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("hunter2").count(), 0);
        assert_eq!(secret.scrub("token hunter2 refused"), "token *** refused");
        assert_eq!(Secret::default().scrub("unchanged"), "unchanged");
        assert_eq!(secret, Secret::from("hunter2"));
        assert_ne!(secret, Secret::from("hunter3"));
    }
}
