//! What may change while the program runs: the login, which counts from the next one on, and the places, which need another start.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use roost_supervise::Chain;
use roost_vim::{CredentialError, CredentialSource, Credentials};
use roost_vm_operator::{PROVIDER_CONFIG_MAP, ProviderConfig};

use super::credentials_of;

/// The login of a Secret, as it was last seen. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SecretLogin(Arc<Mutex<Credentials>>);

impl CredentialSource for SecretLogin {
    fn read(&self) -> Result<Credentials, CredentialError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl SecretLogin {
    pub(super) fn new(first: Credentials) -> Self {
        Self(Arc::new(Mutex::new(first)))
    }

    /// Sessions that are there stay; whoever logs in next takes the new one. What cannot be read changes nothing.
    fn take(&self, secret: &Secret, place: &str) {
        match credentials_of(secret, place) {
            Ok(new) => {
                let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if *known != new {
                    *known = new;
                    tracing::info!("{place} has changed; the next login at the vCenter uses it");
                }
            }
            Err(error) => tracing::warn!("{}; the login stays as it was", Chain(&*error)),
        }
    }

    /// Follows the Secret until the process ends.
    pub(super) fn follow(&self, client: &Client, namespace: &str, name: &str) {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let (login, place) = (self.clone(), format!("Secret {namespace}/{name}"));
        let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
        tokio::spawn(async move {
            let mut seen = pin!(watcher(secrets, only).default_backoff().applied_objects());
            loop {
                match seen.try_next().await {
                    Ok(Some(secret)) => login.take(&secret, &place),
                    Ok(None) => return,
                    Err(error) => tracing::debug!("{place} is not followed: {}", Chain(&error)),
                }
            }
        });
    }
}

/// Ends, with the words to end with, when the ConfigMap says something else than what the program was started with. One that cannot be used is told, and
/// waited out: whoever edits it may not be done.
pub(super) async fn places_changed(
    client: Client,
    namespace: String,
    started_with: ProviderConfig,
) -> String {
    let place = format!("ConfigMap {namespace}/{PROVIDER_CONFIG_MAP}");
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let only = watcher::Config::default().fields(&format!("metadata.name={PROVIDER_CONFIG_MAP}"));
    let mut seen = pin!(watcher(maps, only).default_backoff().applied_objects());
    loop {
        match seen.try_next().await {
            Ok(Some(map)) => match judge(&map, &started_with) {
                Judged::Same => {}
                Judged::Other => {
                    return format!("{place} has changed; the next start uses it");
                }
                Judged::Unusable(problems) => {
                    tracing::warn!("{place} cannot be used and is left as it was: {problems}");
                }
            },
            // It does not end by itself.
            Ok(None) => std::future::pending().await,
            Err(error) => tracing::debug!("{place} is not followed: {}", Chain(&error)),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Same,
    Other,
    Unusable(String),
}

fn judge(map: &ConfigMap, started_with: &ProviderConfig) -> Judged {
    match ProviderConfig::of_config_map(map.data.as_ref().unwrap_or(&Default::default())) {
        Ok(config) if config == *started_with => Judged::Same,
        Ok(_) => Judged::Other,
        Err(problems) => Judged::Unusable(problems.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[test]
    fn a_new_password_counts_from_the_next_login_on_and_a_broken_secret_changes_nothing() {
        let secret = |pairs: &[(&str, &str)]| Secret {
            data: Some(
                pairs
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
                    .collect(),
            ),
            ..Secret::default()
        };
        let login = SecretLogin::new(Credentials::new("roost", "old"));
        let used = login.clone();
        login.take(&secret(&[("username", "roost"), ("password", "new\n")]), "Secret a/b");
        assert_eq!(used.read().unwrap(), Credentials::new("roost", "new"));
        login.take(&secret(&[("username", "roost")]), "Secret a/b");
        login.take(&secret(&[("username", "roost"), ("password", "")]), "Secret a/b");
        assert_eq!(used.read().unwrap(), Credentials::new("roost", "new"));
    }

    #[test]
    fn only_another_meaning_of_the_config_map_ends_the_program() {
        let map = |pairs: &[(&str, &str)]| ConfigMap {
            data: Some(pairs.iter().map(|(key, of)| ((*key).into(), (*of).into())).collect()),
            ..ConfigMap::default()
        };
        let usual = [("VcPNID", "vc.example"), ("ResourcePool", "/DC0/host/C0/Resources")];
        let config = ProviderConfig::of_config_map(&map(&usual).data.unwrap()).unwrap();
        assert_eq!(judge(&map(&usual), &config), Judged::Same);
        let spelled_out = [usual[0], usual[1], ("VcPort", "443")];
        assert_eq!(judge(&map(&spelled_out), &config), Judged::Same, "as it would be without");
        let other = [usual[0], ("ResourcePool", "/DC0/host/C1/Resources")];
        assert_eq!(judge(&map(&other), &config), Judged::Other);
        assert!(matches!(judge(&map(&usual[..1]), &config), Judged::Unusable(_)));
    }
}
