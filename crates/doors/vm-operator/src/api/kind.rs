//! What makes a pair of spec and status a kind of the group.

/// The group of all kinds.
pub const GROUP: &str = "vmoperator.vmware.com";
/// The version that is stored and that this program speaks.
pub const VERSION: &str = "v1alpha6";
/// The version that is served beside it.
pub const OLDER_VERSION: &str = "v1alpha5";

/// A kind: metadata, spec, status. Objects without a spec can be read.
macro_rules! kind {
    ($kind:ident, $plural:literal, $scope:ident, $spec:ty, $status:ty) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $kind {
            #[serde(default = "crate::api::kind::api_version")]
            pub api_version: String,
            #[serde(default = "self::kind_name")]
            pub kind: String,
            #[serde(default)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            #[serde(default)]
            pub spec: $spec,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub status: Option<$status>,
        }

        fn kind_name() -> String {
            stringify!($kind).to_owned()
        }

        impl $kind {
            pub const KIND: &str = stringify!($kind);
            pub const PLURAL: &str = $plural;

            pub fn new(name: &str, spec: $spec) -> Self {
                Self {
                    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                        name: Some(name.to_owned()),
                        ..Default::default()
                    },
                    spec,
                    ..Self::default()
                }
            }

            /// The status, made if there is none yet.
            pub fn status_mut(&mut self) -> &mut $status {
                self.status.get_or_insert_default()
            }
        }

        impl Default for $kind {
            fn default() -> Self {
                Self {
                    api_version: crate::api::kind::api_version(),
                    kind: kind_name(),
                    metadata: Default::default(),
                    spec: Default::default(),
                    status: None,
                }
            }
        }

        impl kube::Resource for $kind {
            type DynamicType = ();
            type Scope = kube::core::$scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                crate::api::GROUP.into()
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                crate::api::VERSION.into()
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(
                &mut self,
            ) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) fn api_version() -> String {
    format!("{GROUP}/{VERSION}")
}
