//! The role that is shipped, found out by running the door under it through everything that it does.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use prometheus_client::registry::Registry;
use roost_agent_forge::access::{NAMESPACE as HOME, names, needs};
use roost_agent_forge::api::names::LEASE;
use roost_agent_forge::outside;
use roost_controller::LeaseSettings;
use roost_controller::rbac::Audit;
use roost_controller::serve::{Access, metrics_router};
use roost_kube_sim::{Action, Rule, User, When};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::ServiceExt as _;

use crate::lab::{Lab, NS, mins};

fn own(kind: &str, plural: &str) -> ApiResource {
    let group = roost_agent_forge::api::names::GROUP;
    let gvk = kube::core::GroupVersionKind::gvk(group, "v1alpha1", kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

/// One object of each kind that is watched, which nobody has to do anything about.
fn spares() -> Vec<(ApiResource, Value)> {
    let pool = json!({
        "hostedClusterRef": {"name": "none"}, "nodePoolRef": {"name": "none"}, "infraEnvRef": {"name": "none"},
        "controlPlaneNamespace": "none",
        "vsphere": {"credentialsSecretRef": {"name": "none"}, "datacenter": "none", "datastore": "none", "isoDatastore": "none",
            "resourcePool": "none", "folder": "none", "network": "none"},
        "template": {"numCPUs": 1, "memoryMiB": 1024, "diskGiB": 20}, "agent": {"labels": {"tenant": "none"}},
    });
    vec![
        (own("VsphereAgentPool", "vsphereagentpools"), pool),
        (own("VsphereAgent", "vsphereagents"), json!({"poolRef": {"name": "none"}})),
        (outside::agent_machines(), json!({})),
        (
            outside::machines(outside::V1BETA1),
            json!({"clusterName": "none", "bootstrap": {}, "infrastructureRef": {}}),
        ),
        (outside::agents(), json!({"approved": false, "role": ""})),
        (outside::infra_envs(), json!({"pullSecretRef": {"name": "none"}})),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_role_that_is_shipped_is_enough_and_used() {
    let lab = Lab::new().await;
    let mut home = Namespace::default();
    home.metadata.name = Some(HOME.into());
    let namespaces: Api<Namespace> = Api::all(lab.client.clone());
    namespaces.create(&PostParams::default(), &home).await.unwrap();
    let audit = Audit::grant(&lab.client, needs(), names(), HOME).await.unwrap();
    lab.apply_pool(json!({"spec": {"scaling": {"scaleFromZeroHints": true}}})).await;
    let forge = lab.forge_as(audit.client(), Some(LeaseSettings::new(HOME, LEASE, "one")));
    lab.neighbours.scale(2);
    lab.until("two nodes", mins(60), async |lab| lab.ready_nodes().await == 2).await;
    lab.neighbours.scale(0);
    lab.until("all is gone", mins(60), async |lab| {
        lab.node_vms().is_empty()
            && lab.vsphere_agents().await.is_empty()
            && lab.agents().await.is_empty()
    })
    .await;

    let spare = |kind: &ApiResource| -> Api<DynamicObject> {
        Api::namespaced_with(lab.client.clone(), NS, kind)
    };
    for (kind, spec) in spares() {
        let object = DynamicObject::new("spare", &kind).data(json!({"spec": spec}));
        spare(&kind).create(&PostParams::default(), &object).await.unwrap();
    }
    sleep(Duration::from_secs(30)).await;
    // What goes while the watches are cut, and their history with it, is asked for by name.
    lab.kube.add_rule(Rule {
        verb: "watch".to_owned(),
        when: When { times: Some(100), ..When::default() },
        action: Action::WatchGone { after: 0 },
        ..Rule::default()
    });
    lab.kube.cut_watches();
    for (kind, _) in spares() {
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        spare(&kind).patch("spare", &PatchParams::default(), &free).await.unwrap();
        spare(&kind).delete("spare", &DeleteParams::default()).await.unwrap();
    }
    sleep(mins(10)).await;
    // What `roost agent-forge` does beside its controllers.
    lab.kube.add_token("x", User::named("scraper"));
    let access = Access::reviewed(audit.client());
    let metrics = metrics_router(Arc::new(Registry::default()), access);
    let asked = http::Request::get("/metrics").header("Authorization", "Bearer x");
    metrics.oneshot(asked.body(String::new()).unwrap()).await.unwrap();
    forge.stop().await;
    audit.verdict().assert_exact();
}
