//! Where clones go: found once, by the names of the configuration.

use std::fmt;
use std::sync::Arc;

use roost_vim::wire::MoRef;
use roost_vim::{
    CredentialError, CredentialSource, Credentials, FindError, NetworkError, Observer,
};

use crate::clone_spec::Site;
use crate::config::{Place, SecretSource, Surroundings, Vcenter};

/// Why VMs have no place to go.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    #[error("{key}")]
    Find { key: &'static str, source: FindError },
    #[error("networkString")]
    Network { source: NetworkError },
}

/// The datacenter and the place in it.
pub(crate) async fn find(observer: &Observer, place: &Place) -> Result<(MoRef, Site), SiteError> {
    let of = |key| move |source| SiteError::Find { key, source };
    let text = |wanted: &Option<String>| wanted.clone().unwrap_or_default();
    let finder = observer.finder(&place.datacenter).await.map_err(of("datacenterString"))?;
    let folder = finder.vm_folder(&text(&place.folder)).await.map_err(of("folder"))?;
    let pool =
        finder.resource_pool(&text(&place.resource_pool)).await.map_err(of("resourcePool"))?;
    let datastore =
        finder.datastore(&text(&place.datastore)).await.map_err(of("datastoreString"))?;
    let network = finder.network(&text(&place.network)).await.map_err(of("networkString"))?;
    let backing = observer
        .network_backing(&network.moref)
        .await
        .map_err(|source| SiteError::Network { source })?;
    let site = Site {
        folder: folder.moref,
        pool: pool.moref,
        datastore: datastore.moref,
        network: backing,
    };
    Ok((finder.datacenter().moref.clone(), site))
}

/// The vCenter's login. The password is read again for each login, so that a rotated one needs no restart.
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: SecretSource,
    pub(crate) surroundings: Arc<dyn Surroundings + Send + Sync>,
}

impl Login {
    pub(crate) fn new(
        vcenter: &Vcenter,
        surroundings: &Arc<dyn Surroundings + Send + Sync>,
    ) -> Self {
        Self {
            user: vcenter.user.clone(),
            password: vcenter.password.clone(),
            surroundings: Arc::clone(surroundings),
        }
    }
}

impl CredentialSource for Login {
    fn read(&self) -> Result<Credentials, CredentialError> {
        let password = self
            .password
            .read(&*self.surroundings)
            .map_err(|source| CredentialError::Source { source: Box::new(source) })?;
        Ok(Credentials::new(&self.user, password.expose()))
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}
