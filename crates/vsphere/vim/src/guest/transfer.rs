//! Files into and out of a guest. The server gives a short-lived address with a token in it; the bytes go there, often to the
//! host that the VM runs on and not to the server.

use http::Uri;
use roost_vim_wire::methods::{InitiateFileTransferFromGuest, InitiateFileTransferToGuest};
use roost_vim_wire::types::GuestFileAttributes;
use roost_vim_wire::{Element, Value};
use tokio::sync::watch;

use super::error::{GuestError, GuestStep};
use super::{Guest, GuestObserver};
use crate::transfer::{Peer, Transfer};
use crate::{
    CallError, Download, Remedy, Thumbprint, TransferError, TransferProgress, UploadSource,
};

/// How a file is put into a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestFileOptions {
    /// Such as `0o755`; the guest's default if not set.
    pub mode: Option<u32>,
    pub overwrite: bool,
}

impl Default for GuestFileOptions {
    fn default() -> Self {
        Self { mode: None, overwrite: true }
    }
}

impl GuestFileOptions {
    /// Of a script.
    pub fn executable() -> Self {
        Self { mode: Some(0o755), ..Self::default() }
    }
}

/// Each try asks for a new address, because the old one may have expired meanwhile.
const TRIES: u32 = 3;

impl Guest {
    /// Writes a file in the guest.
    pub async fn upload(
        &self,
        source: &(impl UploadSource + ?Sized),
        path: &str,
        options: GuestFileOptions,
    ) -> Result<(), GuestError> {
        let (progress, _) = watch::channel(TransferProgress::default());
        self.upload_with_progress(source, path, options, &progress).await
    }

    /// As [`Guest::upload`], and tells how far it has come.
    pub async fn upload_with_progress(
        &self,
        source: &(impl UploadSource + ?Sized),
        path: &str,
        options: GuestFileOptions,
        progress: &watch::Sender<TransferProgress>,
    ) -> Result<(), GuestError> {
        let permissions = options.mode.map(i64::from);
        let call = InitiateFileTransferToGuest {
            this: self.managers.file_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            guest_file_path: path.into(),
            file_attributes: GuestFileAttributes {
                permissions,
                ..GuestFileAttributes::of("GuestPosixFileAttributes")
            },
            file_size: source.length().try_into().unwrap_or(i64::MAX),
            overwrite: options.overwrite,
        };
        let mut tries = 0;
        loop {
            let address = self.change(GuestStep::Upload, &call).await?;
            let sent = match self.address(&address).await {
                Ok((peer, uri)) => {
                    let transfer = Transfer {
                        observer: &self.observer,
                        name: "PUT /guestFile",
                        peer,
                        uri: &uri,
                    };
                    transfer.put(source, progress).await
                }
                Err(error) => Err(error),
            };
            tries += 1;
            match sent {
                Ok(()) => return Ok(()),
                Err(error)
                    if options.overwrite && tries < TRIES && error.remedy() == Remedy::Retry =>
                {
                    tracing::warn!(vm = %self.vm, path, "uploading {path} again: {error}");
                }
                Err(source) => return Err(self.failed(GuestStep::Upload, path, source)),
            }
        }
    }
}

impl GuestObserver {
    /// Reads a file of the guest.
    pub async fn download(&self, path: &str) -> Result<Download, GuestError> {
        let call = InitiateFileTransferFromGuest {
            this: self.managers.file_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            guest_file_path: path.into(),
        };
        let offer = self.read(GuestStep::Download, &call).await?;
        let fetch = async {
            let (peer, uri) = self.address(&offer.url).await?;
            Transfer { observer: &self.observer, name: "GET /guestFile", peer, uri: &uri }
                .get()
                .await
        };
        fetch.await.map_err(|source| self.failed(GuestStep::Download, path, source))
    }

    fn failed(&self, step: GuestStep, path: &str, source: TransferError) -> GuestError {
        GuestError::Transfer { step, vm: self.vm.clone(), path: path.into(), source }
    }

    /// Where a transfer address leads. The host `*` is the server itself; another host's certificate is believed because the
    /// server vouches for its thumbprint.
    async fn address(&self, address: &str) -> Result<(Peer, Uri), TransferError> {
        let base = self.observer.base_url();
        if let Some(here) = on_the_server(address, base) {
            return Ok((
                Peer::Server,
                here.parse().map_err(|source| TransferError::Address { source })?,
            ));
        }
        let uri: Uri = address.parse().map_err(|source| TransferError::Address { source })?;
        if uri.host() == base.host_str() {
            return Ok((Peer::Server, uri));
        }
        let host = self.host_door().await.map_err(|source| TransferError::Call { source })?;
        let uri = match &host.management_address {
            Some(address) => with_host(&uri, address).unwrap_or(uri),
            None => uri,
        };
        if let (Some(name), Some(thumbprint)) = (uri.host(), host.thumbprint) {
            self.observer.transport().trust(name, thumbprint);
        }
        Ok((Peer::Host, uri))
    }

    /// What is known of the host that the VM runs on.
    async fn host_door(&self) -> Result<HostDoor, CallError> {
        const THUMBPRINT: &str = "summary.config.sslThumbprint";
        const NETWORK: &str = "config.virtualNicManagerInfo.netConfig";
        let runtime = self.observer.properties(&self.vm, &["runtime.host"]).await?;
        let Some(host) = runtime.moref("runtime.host") else { return Ok(HostDoor::default()) };
        let read = self.observer.properties(host, &[THUMBPRINT, NETWORK]).await?;
        Ok(HostDoor {
            thumbprint: read.str(THUMBPRINT).and_then(|text| text.parse().ok()),
            management_address: read.get(NETWORK).and_then(management_address),
        })
    }
}

#[derive(Debug, Default)]
struct HostDoor {
    thumbprint: Option<Thumbprint>,
    /// The name that a host has for itself need not resolve here; its management address is reachable for who manages it.
    management_address: Option<String>,
}

/// `address` with the server in place of the host `*`; `None` if it names a host.
fn on_the_server(address: &str, base: &url::Url) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    let is_server = host == "*" || host.starts_with("*:");
    is_server.then(|| format!("{base}{path}"))
}

fn with_host(uri: &Uri, host: &str) -> Option<Uri> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let authority = uri.port().map_or(host.clone(), |port| format!("{host}:{port}"));
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// The address of the card that a host is managed through.
fn management_address(configs: &Value) -> Option<String> {
    let elements = configs.items().iter().filter_map(|item| match item {
        Value::Other(element) => Some(&**element),
        _ => None,
    });
    let management =
        elements.into_iter().find(|config| config.text_of("nicType") == Some("management"))?;
    let is_selected = |candidate: &&Element| {
        let key = candidate.text_of("key").unwrap_or_default();
        management.children_named("selectedVnic").any(|selected| selected.text == key)
    };
    let card = management.children_named("candidateVnic").find(is_selected)?;
    let address = card.child("spec")?.child("ip")?.text_of("ipAddress")?;
    Some(address.to_owned()).filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_vim_wire::Array;

    #[test]
    fn a_star_is_the_server_that_we_talk_to() {
        let base = "https://vc.example.org:8989/".parse().unwrap();
        for (address, want) in [
            (
                "http://*/guestFile/run.sh?id=a&token=b",
                Some("https://vc.example.org:8989/guestFile/run.sh?id=a&token=b"),
            ),
            ("https://*:443/guestFile?id=1", Some("https://vc.example.org:8989/guestFile?id=1")),
            ("https://esx1.example.org/guestFile?id=1", None),
        ] {
            assert_eq!(on_the_server(address, &base).as_deref(), want);
        }
    }

    #[test]
    fn a_host_is_reached_by_its_management_address() {
        let config = Element::parse(
            b"<c xsi:type=\"VirtualNicManagerNetConfig\"><nicType>management</nicType>\
              <candidateVnic><key>a</key><spec><ip><ipAddress>10.0.0.8</ipAddress></ip></spec></candidateVnic>\
              <candidateVnic><key>b</key><spec><ip><ipAddress>10.0.0.9</ipAddress></ip></spec></candidateVnic>\
              <selectedVnic>b</selectedVnic></c>",
        );
        let items = vec![Value::Other(Box::new(config.unwrap()))];
        let configs = Value::Array(Array::new("VirtualNicManagerNetConfig", items));
        assert_eq!(management_address(&configs).as_deref(), Some("10.0.0.9"));
        let uri = "https://esx1.lan:443/guestFile?id=1".parse().unwrap();
        assert_eq!(
            with_host(&uri, "10.0.0.9").unwrap().to_string(),
            "https://10.0.0.9:443/guestFile?id=1"
        );
        assert_eq!(
            with_host(&uri, "fe80::1").unwrap().to_string(),
            "https://[fe80::1]:443/guestFile?id=1"
        );
    }
}
