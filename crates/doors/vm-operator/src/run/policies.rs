//! `VirtualMachineSetResourcePolicy` objects: a child folder and a child resource pool in every zone of the namespace.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_controller::{Draft, Next, Pass, Reconciler};

use crate::api::names::finalizer;
use crate::api::{ResourcePoolStatus, VirtualMachineSetResourcePolicy};
use crate::flow::{Context, Delays, Flow, Halt, PassError, result_of};

pub(crate) struct Policies {
    pub(crate) cx: Arc<Context>,
}

impl Reconciler for Policies {
    type Object = VirtualMachineSetResourcePolicy;
    type Error = PassError;

    async fn reconcile(
        &self,
        pass: &Pass<VirtualMachineSetResourcePolicy>,
    ) -> Result<Next, PassError> {
        let Some(mut policy) = pass.draft() else { return Ok(Next::AwaitChange) };
        if policy.is_being_deleted() {
            // Folder and pool may hold VMs, and are there again for the next policy of this name.
            policy.remove_finalizer(finalizer::SET_RESOURCE_POLICY);
            policy.remove_finalizer(finalizer::DEPRECATED_SET_RESOURCE_POLICY);
            self.cx.writer.save(&mut policy).await?;
            return Ok(Next::AwaitChange);
        }
        policy.remove_finalizer(finalizer::DEPRECATED_SET_RESOURCE_POLICY);
        policy.add_finalizer(finalizer::SET_RESOURCE_POLICY);
        let ended = self.furnish(&mut policy).await;
        self.cx.writer.save(&mut policy).await?;
        let create_requeue = self.cx.settings.create_requeue;
        result_of(ended, &Delays { create_requeue, has_signals: self.cx.has_signals() })
    }
}

impl Policies {
    async fn furnish(&self, policy: &mut Draft<VirtualMachineSetResourcePolicy>) -> Flow<Next> {
        let failed = |source| Halt::because("the resource policy")(source);
        let places = &self.cx.provider.places;
        let namespace = policy.namespace().unwrap_or_default();
        let (folder, pool) = (policy.spec.folder.clone(), policy.spec.resource_pool.name.clone());
        let mut pools = Vec::new();
        for zone in places.zones() {
            let place = places.of(&namespace, &zone.name).await.map_err(failed)?;
            if !folder.is_empty() {
                places.child_folder(&place, &folder).await.map_err(failed)?;
            }
            if !pool.is_empty() {
                let child = places.child_pool(&place, &pool).await.map_err(failed)?;
                let cluster = places.cluster_of(&child).await.map_err(failed)?;
                pools.push(ResourcePoolStatus {
                    cluster_id: cluster.id.to_string(),
                    child_resource_pool_id: child.id.to_string(),
                });
            }
        }
        policy.status_mut().resource_pools = pools;
        Ok(Next::AwaitChange)
    }
}
