//! From a waiting AgentMachine to a node, and back.

use kube::ResourceExt;
use roost_agent_forge::api::Phase;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, mins};

#[tokio::test(start_paused = true)]
async fn a_waiting_machine_becomes_a_node_and_goes_with_its_machine() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(2);
    lab.until("two nodes", mins(30), async |lab| lab.ready_nodes().await == 2).await;
    sleep(mins(2)).await;

    let names = ["blue-gp-0001", "blue-gp-0002"];
    assert_eq!(lab.node_vms(), names);
    let agents = lab.vsphere_agents().await;
    assert_eq!(agents.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), names);
    assert_eq!(lab.phases().await, names.map(|name| (name.to_owned(), Phase::Bound)));
    let vm = lab.vcenter.vm(names[0]).unwrap();
    assert_eq!(vm.path, "/DC0/vm/nodes/blue/blue-gp-0001");
    assert!(["LocalDS_1", "LocalDS_2"].contains(&vm.datastore.as_str()), "{}", vm.datastore);
    let pool = lab.pool().await;
    let iso = pool.status.iso.unwrap();
    assert_eq!(iso.sha256, "9d8a03fda862703f60c30a0c83fae3cff00beb7e3d718ff78e0a791e6fe71048");
    assert_eq!(iso.path, format!("agent-forge/blue/blue-gp/{}.iso", iso.sha256));
    assert_eq!(lab.vcenter.counters().calls_of("Login"), 1);
    assert!(forge.metrics().contains(
        r#"agent_forge_vsphere_vm_operations_total{operation="create",result="success"} 2"#
    ));

    lab.neighbours.scale(0);
    lab.until("everything is gone", mins(30), async |lab| {
        lab.node_vms().is_empty()
            && lab.vsphere_agents().await.is_empty()
            && lab.agents().await.is_empty()
    })
    .await;
    assert_eq!(lab.vcenter.vm_names().len(), 3, "nobody else's VM was touched");
    forge.stop().await;
}
