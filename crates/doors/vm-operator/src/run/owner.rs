//! Objects that belong to others.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt as _};
use roost_controller::{Index, Object};

/// The reference by which an object belongs to this one.
pub(crate) fn of<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The uid of whoever controls an object.
pub(crate) fn controller_of(object: &impl Resource) -> Option<String> {
    let owners = object.meta().owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    owners.next().map(|owner| owner.uid.clone())
}

/// What belongs to this one, by name.
pub(crate) fn owned_by<K: Object>(by_owner: &Index<K>, owner: &impl Resource) -> Vec<Arc<K>> {
    let mut all = by_owner.objects(&owner.meta().uid.clone().unwrap_or_default());
    all.sort_by_key(|object| object.meta().name.clone());
    all
}
