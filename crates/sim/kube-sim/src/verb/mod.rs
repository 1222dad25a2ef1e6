//! What requests about resources do.

mod defaults;
mod draft;
mod read;
mod remove;
mod scale;
mod strategy;
mod subresource;
mod validate;
mod wish;

use std::sync::Arc;

pub(crate) use draft::{Commit, Draft, Operation};
pub(crate) use wish::{check_dry_run, unsupported};

use crate::kind::{Kind, Version};
use crate::path::Target;
use crate::status::ApiError;
use crate::store::Key;
use crate::world::World;

/// The kind and the object that a request is about.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) kind: Arc<Kind>,
    pub(crate) key: Key,
}

impl Subject {
    pub(crate) fn find(world: &World, target: &Target) -> Result<Self, ApiError> {
        let kind =
            world.kind(&target.group, &target.plural).ok_or_else(ApiError::no_such_resource)?;
        let version = kind.version(&target.version).filter(|version| version.is_served);
        let version = version.ok_or_else(ApiError::no_such_resource)?;
        if !kind.is_namespaced && !target.namespace.is_empty() {
            return Err(ApiError::no_such_resource());
        }
        let is_known =
            target.subresource.is_empty() || version.has_subresource(&target.subresource);
        if !is_known {
            let part = target.subresource.as_str();
            let is_of_a_kubelet =
                matches!(part, "log" | "exec" | "attach" | "portforward" | "proxy");
            return Err(if kind.kind == "Pod" && is_of_a_kubelet {
                ApiError::nothing_runs(part)
            } else {
                ApiError::no_such_resource()
            });
        }
        let key = (target.namespace.clone(), target.name.clone());
        Ok(Self { kind, key })
    }

    pub(crate) fn version(&self, target: &Target) -> Result<&Version, ApiError> {
        self.kind.version(&target.version).ok_or_else(ApiError::no_such_resource)
    }
}
