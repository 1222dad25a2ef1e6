//! The URL of a server under test, with its login, which must not reach a test's output.

use std::fmt;

/// `https://user:password@host:port/sdk`; user and password are percent-encoded, as in any URL.
#[derive(Clone, PartialEq)]
pub(crate) struct ServerUrl(String);

impl ServerUrl {
    pub(crate) fn new(url: &str) -> Self {
        Self(url.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn without_login(&self) -> String {
        match self.split() {
            Some((scheme, _, rest)) => format!("{scheme}://{rest}"),
            None => self.0.clone(),
        }
    }

    /// `text` with the password, in either of its two forms, replaced.
    pub(crate) fn hide_password(&self, text: &str) -> String {
        const HIDDEN: &str = "[password]";
        let encoded = self.split().and_then(|(_, login, _)| login.split_once(':'));
        match encoded.map(|(_, password)| password) {
            None | Some("") => text.to_owned(),
            Some(password) => {
                text.replace(password, HIDDEN).replace(&percent_decode(password), HIDDEN)
            }
        }
    }

    /// Scheme, login, and everything behind the `@`.
    fn split(&self) -> Option<(&str, &str, &str)> {
        let (scheme, rest) = self.0.split_once("://")?;
        let authority = rest.split('/').next()?;
        let (login, _) = authority.rsplit_once('@')?;
        Some((scheme, login, &rest[login.len() + 1..]))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.without_login(), f)
    }
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_in_no_output() {
        let url = ServerUrl::new("https://ro%3Aost:p%40ss@127.0.0.1:8989/sdk");
        assert_eq!(format!("{url:?}"), "\"https://127.0.0.1:8989/sdk\"");
        assert_eq!(
            url.hide_password("tried p%40ss, that is p@ss"),
            "tried [password], that is [password]"
        );
    }

    #[test]
    fn a_url_without_login_stays_as_it_is() {
        for url in ["http://127.0.0.1:1/sdk", "127.0.0.1", "http://host/a@b"] {
            let url = ServerUrl::new(url);
            assert_eq!(url.without_login(), url.as_str());
            assert_eq!(url.hide_password("text"), "text");
        }
        assert_eq!(ServerUrl::new("http://me:@host/").hide_password("text"), "text");
    }
}
