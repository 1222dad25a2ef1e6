//! Files on datastores: directories, search, upload, download, delete.

mod browse;
mod change;
mod error;
mod path;
mod upload;

use std::ops::Deref;

use http::Uri;
use roost_vim_wire::MoRef;
use roost_vim_wire::methods::QueryVirtualDiskUuid;

pub use browse::{DatastoreFile, FileKind};
pub use change::{defined_profile, thin_disk};
pub use error::{FileError, FileStep};
pub use path::{DatastorePath, DatastorePathError};

use crate::transfer::{Peer, Transfer};
use crate::{CallError, Client, Download, Found, Observer};

/// Looks at the files of one datastore.
#[derive(Debug, Clone)]
pub struct DatastoreObserver {
    observer: Observer,
    name: String,
    browser: MoRef,
    datacenter: MoRef,
    /// As `/folder` wants it; a host without vCenter has one datacenter and needs none.
    datacenter_path: Option<String>,
}

/// May also change the files of one datastore. Every verb is safe to repeat.
#[derive(Debug, Clone)]
pub struct Datastore {
    client: Client,
    files: DatastoreObserver,
}

impl Deref for Datastore {
    type Target = DatastoreObserver;

    fn deref(&self) -> &DatastoreObserver {
        &self.files
    }
}

impl Observer {
    /// The files of a datastore, which is found through the datacenter it is in.
    pub async fn observe_datastore(
        &self,
        datacenter: &Found,
        datastore: &Found,
    ) -> Result<DatastoreObserver, FileError> {
        let failed = |source| FileError::Call {
            step: FileStep::Open,
            path: format!("[{}]", datastore.name),
            source,
        };
        let read = self.properties(&datastore.moref, &["browser", "name"]).await.map_err(failed)?;
        let browser = read.moref("browser").cloned();
        Ok(DatastoreObserver {
            observer: self.clone(),
            name: read.str("name").unwrap_or(&datastore.name).into(),
            browser: browser
                .ok_or_else(|| failed(CallError::NoManager { manager: "datastore browser" }))?,
            datacenter: datacenter.moref.clone(),
            datacenter_path: (self.content().about.api_type != "HostAgent")
                .then(|| datacenter.path.clone()),
        })
    }
}

impl Client {
    /// As [`Observer::observe_datastore`], and to change them.
    pub async fn datastore(
        &self,
        datacenter: &Found,
        datastore: &Found,
    ) -> Result<Datastore, FileError> {
        let files = self.observe_datastore(datacenter, datastore).await?;
        Ok(Datastore { client: self.clone(), files })
    }
}

impl DatastoreObserver {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A place on this datastore.
    pub fn path(&self, path: &str) -> DatastorePath {
        DatastorePath::new(self.name.clone(), path)
    }

    /// The identity of a disk, as `60 00 C2 9e ...-...`.
    pub async fn disk_uuid(&self, path: &DatastorePath) -> Result<String, FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Open, path: path.to_string(), source };
        let manager = self.observer.content().virtual_disk_manager.clone();
        let manager = manager
            .ok_or_else(|| failed(CallError::NoManager { manager: "virtual disk manager" }))?;
        let call = QueryVirtualDiskUuid {
            this: manager,
            name: path.to_string(),
            datacenter: Some(self.datacenter.clone()),
        };
        self.observer.read(&call).await.map_err(failed)
    }

    /// Reads a file.
    pub async fn download(&self, path: &DatastorePath) -> Result<Download, FileError> {
        let failed = |source| FileError::Transfer {
            step: FileStep::Download,
            path: path.to_string(),
            source,
        };
        let uri = self.uri(path).map_err(failed)?;
        let transfer = Transfer {
            observer: &self.observer,
            name: "GET /folder",
            peer: Peer::Server,
            uri: &uri,
        };
        transfer.get().await.map_err(failed)
    }

    fn uri(&self, path: &DatastorePath) -> Result<Uri, crate::TransferError> {
        let base = self.observer.base_url().as_str().trim_end_matches('/');
        let uri = format!("{base}{}", path.to_url_path(self.datacenter_path.as_deref()));
        uri.parse().map_err(|source| crate::TransferError::Address { source })
    }
}
