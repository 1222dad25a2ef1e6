//! Images that are put into drives.

use kube::ResourceExt as _;

use super::{Provider, WantedCdrom};
use crate::api::{VirtualMachine, VirtualMachineImage, VirtualMachineImageStatus};
use crate::flow::{Context, Flow, Halt};

impl Provider {
    /// The drives that the spec wants, with the files that are in them.
    pub(crate) async fn cdroms(&self, cx: &Context, vm: &VirtualMachine) -> Flow<Vec<WantedCdrom>> {
        let Some(hardware) = &vm.spec.hardware else { return Ok(Vec::new()) };
        let namespace = vm.namespace().unwrap_or_default();
        let mut all = Vec::new();
        for cdrom in &hardware.cdrom {
            let image = &cdrom.image;
            let kind = if image.kind.is_empty() { VirtualMachineImage::KIND } else { &image.kind };
            let status = cx.stores.image(&namespace, kind, &image.name);
            let status = status.filter(VirtualMachineImageStatus::is_ready).ok_or_else(|| {
                Halt::failed(format!("cdrom {}: image {} is not ready", cdrom.name, image.name))
            })?;
            let file = self.places.iso_file(&status.provider_item_id).await;
            let file = file.map_err(Halt::because(format!("cdrom {}", cdrom.name)))?;
            all.push(WantedCdrom {
                file,
                connected: cdrom.is_connected(),
                guest_control: cdrom.is_guest_controlled(),
            });
        }
        Ok(all)
    }
}

/// `ds:///vmfs/volumes/<id>/contentlib-1/a/b.iso?serverId=..` is `contentlib-1/a/b.iso`.
pub(crate) fn path_of_uri(uri: &str) -> Option<&str> {
    let below = uri.strip_prefix("ds:///vmfs/volumes/")?;
    let (_, path) = below.split_once('/')?;
    Some(path.split('?').next().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_item_is_named_below_its_datastore() {
        let uri = "ds:///vmfs/volumes/5a-1/contentlib-1/x/a.iso?serverId=7";
        assert_eq!(path_of_uri(uri), Some("contentlib-1/x/a.iso"));
        assert_eq!(path_of_uri("http://x/y"), None);
    }
}
