//! What the watches know, by kind.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;
use roost_controller::{Index, Key, Store};

use crate::api::{
    ClusterVirtualMachineImage, VirtualMachine, VirtualMachineClass, VirtualMachineGroup,
    VirtualMachineImage, VirtualMachineImageCache, VirtualMachineImageStatus,
    VirtualMachineSetResourcePolicy, VirtualMachineSnapshot,
};
use crate::bootstrap::DnsDefaults;
use crate::images::NamedImage;
use crate::webhook::Lookup;

/// Of upstream: what guests are told of DNS where objects are silent.
const NETWORK_CONFIG_MAP: &str = "vmoperator-network-config";

/// Reading it costs no call.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) vms: Store<VirtualMachine>,
    pub(crate) classes: Store<VirtualMachineClass>,
    pub(crate) images: Store<VirtualMachineImage>,
    pub(crate) cluster_images: Store<ClusterVirtualMachineImage>,
    pub(crate) secrets: Store<Secret>,
    pub(crate) storage_classes: Store<StorageClass>,
    pub(crate) claims: Store<PersistentVolumeClaim>,
    pub(crate) policies: Store<VirtualMachineSetResourcePolicy>,
    pub(crate) caches: Store<VirtualMachineImageCache>,
    /// Those of the operator's own namespace.
    pub(crate) config_maps: Store<ConfigMap>,
    pub(crate) groups: Store<VirtualMachineGroup>,
    pub(crate) snapshots: Store<VirtualMachineSnapshot>,
    /// By `namespace/name` of their VM.
    pub(crate) snapshots_of: Index<VirtualMachineSnapshot>,
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stores").finish_non_exhaustive()
    }
}

/// Every replica watches, so every replica can answer.
impl Lookup for Stores {
    fn images(&self, namespace: &str) -> (Vec<NamedImage>, Vec<NamedImage>) {
        let named = |name: String, status: Option<&VirtualMachineImageStatus>| NamedImage {
            name,
            display_name: status.map(|status| status.name.clone()).unwrap_or_default(),
        };
        let own = self.images.objects().into_iter();
        let own = own.filter(|image| image.namespace().as_deref() == Some(namespace));
        let cluster = self.cluster_images.objects().into_iter();
        (
            own.map(|image| named(image.name_any(), image.status.as_ref())).collect(),
            cluster.map(|image| named(image.name_any(), image.status.as_ref())).collect(),
        )
    }

    fn vm(&self, namespace: &str, name: &str) -> Option<Arc<VirtualMachine>> {
        self.vms.get(&Key::new(namespace, name))
    }
}

impl Stores {
    /// The status of an image, by its kind and name.
    pub(crate) fn image(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
    ) -> Option<VirtualMachineImageStatus> {
        if kind == ClusterVirtualMachineImage::KIND {
            let image = self.cluster_images.get(&Key::cluster(name))?;
            Some(image.status.clone().unwrap_or_default())
        } else {
            let image = self.images.get(&Key::new(namespace, name))?;
            Some(image.status.clone().unwrap_or_default())
        }
    }

    /// Name servers and search domains for guests whose objects name none.
    pub(crate) fn dns_defaults(&self, namespace: &str) -> DnsDefaults {
        let found = self.config_maps.get(&Key::new(namespace, NETWORK_CONFIG_MAP));
        let data = found.as_ref().and_then(|found| found.data.as_ref());
        let text = |key: &str| data.and_then(|data| data.get(key)).map_or("", String::as_str);
        DnsDefaults::of_config_map(text("nameservers"), text("searchsuffixes"))
    }

    /// One value of a Secret.
    pub(crate) fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>> {
        self.secrets.get(&Key::new(namespace, name))
    }
}
