//! The two objects by hand: the definitions admit objects without a spec, and one such object must not stop a watch.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::{Deserialize, Serialize};

use super::names::{GROUP, VERSION};
use super::{PoolSpec, PoolStatus, VsphereAgentSpec, VsphereAgentStatus};

macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident: $plural:literal, $spec:ident, $status:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $kind {
            pub api_version: String,
            pub kind: String,
            pub metadata: ObjectMeta,
            #[serde(default)]
            pub spec: $spec,
            #[serde(default)]
            pub status: $status,
        }

        impl $kind {
            pub fn new(namespace: &str, name: &str, spec: $spec) -> Self {
                let metadata = ObjectMeta {
                    name: Some(name.to_owned()),
                    namespace: Some(namespace.to_owned()),
                    ..ObjectMeta::default()
                };
                Self { metadata, spec, ..Self::default() }
            }
        }

        impl Default for $kind {
            fn default() -> Self {
                Self {
                    api_version: format!("{GROUP}/{VERSION}"),
                    kind: stringify!($kind).to_owned(),
                    metadata: ObjectMeta::default(),
                    spec: $spec::default(),
                    status: $status::default(),
                }
            }
        }

        impl Resource for $kind {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                GROUP.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                VERSION.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    )+};
}

kinds! {
    /// VMs that become Agents of one NodePool.
    VsphereAgentPool: "vsphereagentpools", PoolSpec, PoolStatus;
    /// One VM that becomes an Agent.
    VsphereAgent: "vsphereagents", VsphereAgentSpec, VsphereAgentStatus;
}
