//! What an autoscaler must know of a node that does not exist yet.

use kube::Api;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::reconcile::{PoolReconciler, Round};
use crate::api::names::NODE_POOL_ANNOTATION;
use crate::api::{PoolDefaults, VsphereAgentPool};
use crate::outside::{self, node_pool_of};

/// What the Cluster API provider of the cluster autoscaler reads.
const PREFIX: &str = "capacity.cluster-autoscaler.kubernetes.io/";

impl PoolReconciler {
    /// Writes the hardware of a node onto the MachineDeployments of the NodePool, so that it can be scaled up from zero.
    pub(super) async fn hint_autoscaler(&self, round: &Round) {
        let pool = &round.pool;
        if !pool.hints_autoscaler() {
            return;
        }
        let world = &self.world;
        let kind = outside::machine_deployments(&world.machine_kind.version);
        let api: Api<DynamicObject> =
            Api::namespaced_with(world.client.clone(), &pool.spec.control_plane_namespace, &kind);
        let hints = hints(pool);
        let told = async {
            for found in api.list(&ListParams::default()).await? {
                let is_ours = found.annotations().get(NODE_POOL_ANNOTATION);
                let is_ours = is_ours.is_some_and(|it| *it == node_pool_of(pool));
                let missing: Map<String, Value> = hints
                    .iter()
                    .filter(|(key, value)| found.annotations().get(*key) != Some(*value))
                    .map(|(key, value)| (key.clone(), json!(value)))
                    .collect();
                if !is_ours || missing.is_empty() {
                    continue;
                }
                let patch = json!({"metadata": {"annotations": missing}});
                api.patch(&found.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            }
            Ok::<_, kube::Error>(())
        };
        // The pool works without it.
        if let Err(error) = told.await {
            let note = Self::failure("MachineDeployments", &error);
            world.events.warning(pool.as_ref(), "ScaleFromZeroHintsFailed", &note);
        }
    }
}

fn hints(pool: &VsphereAgentPool) -> std::collections::BTreeMap<String, String> {
    let amounts = [
        ("cpu", pool.cpus().to_string()),
        ("memory", format!("{}Mi", pool.memory_mib())),
        ("ephemeral-disk", format!("{}Gi", pool.disk_gib())),
    ];
    amounts.map(|(what, amount)| (format!("{PREFIX}{what}"), amount)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PoolSpec;

    #[test]
    fn hints_are_what_a_node_has() {
        let pool = VsphereAgentPool::new("ns", "p", PoolSpec::default());
        let all: Vec<(String, String)> = hints(&pool).into_iter().collect();
        let pair = |key: &str, value: &str| (format!("{PREFIX}{key}"), value.to_owned());
        assert_eq!(
            all,
            [pair("cpu", "4"), pair("ephemeral-disk", "100Gi"), pair("memory", "16384Mi")]
        );
    }
}
