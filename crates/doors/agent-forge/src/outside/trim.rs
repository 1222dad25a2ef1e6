//! What is kept of objects that others own. Agents of every cluster are watched, and most of each is an inventory that nobody here reads.

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

/// Leaves what [`AgentView`](super::AgentView) reads.
pub(crate) fn agent(object: &mut DynamicObject) {
    let cards = object.data.pointer("/status/inventory/interfaces").and_then(Value::as_array);
    let addresses = |card: &Value| {
        let keep = ["macAddress", "mac"].into_iter();
        let kept = keep.filter_map(|name| Some((name.to_owned(), card.get(name)?.clone())));
        Value::Object(kept.collect())
    };
    let cards: Vec<Value> = cards.into_iter().flatten().map(addresses).collect();
    let mut data = keep(
        &object.data,
        &[
            "/spec/approved",
            "/spec/role",
            "/spec/hostname",
            "/spec/clusterDeploymentName",
            "/status/inventory/hostname",
            "/status/inventory/systemVendor/serialNumber",
            "/status/conditions",
        ],
    );
    if !cards.is_empty() {
        put(&mut data, "/status/inventory/interfaces", json!(cards));
    }
    object.data = data;
}

/// Leaves what [`MachineView`](super::MachineView) reads.
pub(crate) fn machine(object: &mut DynamicObject) {
    object.data = keep(&object.data, &["/status/phase"]);
}

/// Leaves what [`AgentMachineView`](super::AgentMachineView) reads.
pub(crate) fn agent_machine(object: &mut DynamicObject) {
    let paths =
        ["/spec/agentLabelSelector", "/spec/providerID", "/status/agentRef", "/status/conditions"];
    object.data = keep(&object.data, &paths);
}

fn keep(data: &Value, paths: &[&str]) -> Value {
    let mut kept = json!({});
    for path in paths {
        if let Some(value) = data.pointer(path) {
            put(&mut kept, path, value.clone());
        }
    }
    kept
}

fn put(into: &mut Value, path: &str, value: Value) {
    let mut at = into;
    for part in path.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[part];
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::{
        AgentMachineView, AgentView, MachineView, agent_machines, agents, machines,
    };

    #[test]
    fn what_is_not_read_of_others_objects_is_not_kept() {
        let mut object = DynamicObject::new("a", &agents()).within("ns").data(json!({
            "spec": {"approved": true, "role": "worker", "hostname": "h", "clusterDeploymentName": {"name": "c"}, "ignitionConfigOverrides": "x".repeat(9000)},
            "status": {"conditions": [{"type": "Installed", "status": "True"}], "debugInfo": {"eventsURL": "x"},
                "inventory": {"hostname": "i", "disks": ["x".repeat(9000)], "systemVendor": {"serialNumber": "VMware-42 32 4d 21 27 4c 03 a8-b6 fe f9 e8 ed b5 5e 33", "manufacturer": "VMware"},
                    "interfaces": [{"name": "ens192", "macAddress": "00:50:56:b2:db:c8", "flags": ["up"]}, {"mac": "00:50:56:b2:db:c9"}]}}}));
        let before = AgentView::of(&object);
        assert!(before.is_installed && before.identity.macs.len() == 2);
        agent(&mut object);
        assert_eq!(AgentView::of(&object), before);
        assert!(object.data.to_string().len() < 500, "{}", object.data);

        let mut object = DynamicObject::new("a", &machines("v1beta1")).within("ns");
        object.data =
            json!({"spec": {"bootstrap": {}}, "status": {"phase": "Deleting", "nodeRef": {}}});
        let before = MachineView::of(&object);
        machine(&mut object);
        assert_eq!(MachineView::of(&object), before);
        assert_eq!(object.data, json!({"status": {"phase": "Deleting"}}));

        let mut object = DynamicObject::new("a", &agent_machines()).within("ns");
        object.data = json!({"spec": {"agentLabelSelector": {"matchLabels": {"a": "b"}}, "providerID": "agent://x"},
            "status": {"addresses": [], "conditions": [{"type": "Ready", "status": "False", "reason": "NoSuitableAgents"}]}});
        let before = AgentMachineView::of(&object);
        agent_machine(&mut object);
        assert_eq!(AgentMachineView::of(&object), before);
        assert!(object.data.pointer("/status/addresses").is_none());
    }
}
