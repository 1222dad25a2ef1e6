use std::fmt::Debug;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What an object must be able to do to be watched: typed ones that derive the usual traits can, and so can
/// `kube::api::DynamicObject`.
pub trait Object:
    Resource<DynamicType: Clone + Debug + Send + Sync + 'static>
    + Clone
    + Debug
    + PartialEq
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType: Clone + Debug + Send + Sync + 'static>
        + Clone
        + Debug
        + PartialEq
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}
