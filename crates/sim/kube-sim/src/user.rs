//! Who asks.

use std::collections::BTreeMap;

use http::HeaderMap;

/// Somebody who sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// May do everything.
    pub fn admin() -> Self {
        Self::named("kubernetes-admin").in_group("system:masters").in_group("system:authenticated")
    }

    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            uid: String::new(),
            groups: Vec::new(),
            extra: BTreeMap::new(),
        }
    }

    #[must_use]
    pub fn in_group(mut self, group: &str) -> Self {
        self.groups.push(group.to_owned());
        self
    }

    /// A service account, with the groups that all of them have.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::named(&format!("system:serviceaccount:{namespace}:{name}"))
            .in_group("system:serviceaccounts")
            .in_group(&format!("system:serviceaccounts:{namespace}"))
            .in_group("system:authenticated")
    }

    /// Asked no questions.
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }

    /// The user that `Impersonate-*` headers name.
    pub(crate) fn impersonated(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let name = text("impersonate-user")?;
        let mut user =
            match name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
            {
                Some((namespace, account)) => Self::service_account(namespace, account),
                None => Self::named(name),
            };
        let groups: Vec<_> = headers
            .get_all("impersonate-group")
            .iter()
            .filter_map(|value| value.to_str().ok().map(ToOwned::to_owned))
            .collect();
        if !groups.is_empty() {
            user.groups = groups;
        }
        if !user.groups.iter().any(|group| group == "system:authenticated") {
            user.groups.push("system:authenticated".to_owned());
        }
        text("impersonate-uid").unwrap_or_default().clone_into(&mut user.uid);
        Some(user)
    }
}
