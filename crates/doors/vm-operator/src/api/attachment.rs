//! `CnsNodeVmAttachment` of the vSphere CSI driver, as much of it as is asked for and read: which claim is attached to which VM.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CnsNodeVmAttachment {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub spec: CnsNodeVmAttachmentSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<CnsNodeVmAttachmentStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CnsNodeVmAttachmentSpec {
    /// The `biosUUID` of the VM.
    #[serde(rename = "nodeuuid")]
    pub node_uuid: String,
    /// The claim.
    #[serde(rename = "volumename")]
    pub volume_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CnsNodeVmAttachmentStatus {
    pub attached: bool,
    #[serde(rename = "metadata")]
    pub attributes: BTreeMap<String, String>,
    pub error: String,
}

impl CnsNodeVmAttachment {
    pub const KIND: &str = "CnsNodeVmAttachment";

    pub fn new(name: &str, spec: CnsNodeVmAttachmentSpec) -> Self {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        Self {
            api_version: "cns.vmware.com/v1alpha1".to_owned(),
            kind: Self::KIND.to_owned(),
            metadata,
            spec,
            status: None,
        }
    }

    pub fn is_attached(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.attached)
    }

    pub fn disk_uuid(&self) -> Option<&str> {
        self.status.as_ref()?.attributes.get("diskUUID").map(String::as_str)
    }
}

impl kube::Resource for CnsNodeVmAttachment {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Self::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "cns.vmware.com".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "cnsnodevmattachments".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
