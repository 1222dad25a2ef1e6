use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use roost_cocoon_sim::Fault;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, secs};

#[tokio::test(start_paused = true)]
async fn the_node_is_what_its_users_know() {
    let lab = Lab::new();
    let kubelet = lab
        .start_with(&[("VK_NODE_CPU", "32"), ("VK_NODE_MEM", "128Gi"), ("VK_NODE_POOL", "gpu")])
        .await
        .unwrap();
    sleep(secs(30)).await;
    assert_eq!(kubelet.metric("ping_unavailable"), Some(1), "no ping may be sent here");
    let node = lab.nodes().get("node-1").await.unwrap();
    assert_eq!(node.labels()["cocoonstack.io/pool"], "gpu");
    assert_eq!(node.labels()["type"], "virtual-kubelet");
    let taint = &node.spec.as_ref().unwrap().taints.as_ref().unwrap()[0];
    assert_eq!(
        (taint.key.as_str(), taint.effect.as_str()),
        ("virtual-kubelet.io/provider", "NoSchedule")
    );
    let status = node.status.unwrap();
    assert_eq!(status.capacity.unwrap()["cpu"].0, "32");
    assert_eq!(status.allocatable.unwrap()["cpu"].0, "25");
    assert_eq!(status.daemon_endpoints.unwrap().kubelet_endpoint.unwrap().port, 10250);
    let leases: Api<Lease> = Api::namespaced(lab.sim.client(), "kube-node-lease");
    let lease = leases.get("node-1").await.unwrap();
    assert_eq!(lease.metadata.owner_references.as_ref().unwrap()[0].kind, "Node");
    let first = lease.spec.unwrap().renew_time;
    sleep(secs(15)).await;
    assert_ne!(leases.get("node-1").await.unwrap().spec.unwrap().renew_time, first);
}

#[tokio::test(start_paused = true)]
async fn an_existing_node_is_made_ours_again_and_keeps_what_others_added() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    node.stop().await;
    let patch = json!({"metadata": {"labels": {"type": "other", "example.org/mine": "yes"}}, "spec": {"taints": [{"key": "example.org/t", "effect": "NoExecute"}]}});
    lab.nodes().patch("node-1", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let _node = lab.start_with(&[("VK_PROVIDER_ID", "cocoon://rack-7")]).await.unwrap();
    let node = lab.nodes().get("node-1").await.unwrap();
    assert_eq!(node.spec.as_ref().unwrap().provider_id.as_deref(), Some("cocoon://rack-7"));
    assert_eq!(node.labels()["type"], "virtual-kubelet");
    assert_eq!(node.labels()["example.org/mine"], "yes");
    let taints: Vec<String> =
        node.spec.unwrap().taints.unwrap().into_iter().map(|taint| taint.key).collect();
    assert_eq!(taints, ["example.org/t", "virtual-kubelet.io/provider"]);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_cannot_be_used_makes_the_node_not_ready_and_says_why() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.host.add_fault(Fault::of("vm list").fails("open vms.lock: permission denied").times(10));
    let ready = async |lab: &Lab| {
        let node = lab.nodes().get("node-1").await.unwrap();
        let conditions = node.status.unwrap().conditions.unwrap();
        conditions.into_iter().find(|condition| condition.type_ == "Ready").unwrap()
    };
    lab.until("the node is not ready", async |lab: &Lab| ready(lab).await.status == "False").await;
    assert!(ready(&lab).await.message.unwrap().contains("permission denied"));
    lab.until("the node is ready again", async |lab: &Lab| ready(lab).await.status == "True").await;
}
