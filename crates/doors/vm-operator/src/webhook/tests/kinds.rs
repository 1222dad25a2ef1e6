use serde_json::{Value, json};

use super::*;

#[test]
fn classes_snapshots_and_console_requests_have_rules() {
    let class = |requests: Value, limits: Value| {
        let class = json!({"metadata": {"name": "c"}, "spec": {"policies": {"resources": {"requests": requests, "limits": limits}}}});
        validate_class(&serde_json::from_value(class).unwrap(), None, Rights::Ordinary)
    };
    assert_eq!(
        class(json!({"cpu": "1", "memory": "2Gi"}), json!({"cpu": "1000m", "memory": "4Gi"})),
        [""; 0]
    );
    assert_eq!(class(json!({"cpu": "2"}), json!({})), [""; 0]);
    assert_eq!(
        class(json!({"cpu": "2", "memory": "4Gi"}), json!({"cpu": "1", "memory": "2Gi"})).len(),
        2
    );

    let snapshot = |spec: Value| -> VirtualMachineSnapshot {
        serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).unwrap()
    };
    let check = |new: Value, old: Option<Value>, vm: &str| {
        let (new, old, vm) = (snapshot(new), old.map(snapshot), Images.vm("", vm));
        validate_snapshot(&new, old.as_ref(), vm.as_deref(), Rights::Ordinary)
    };
    assert_eq!(check(json!({"vmName": "a"}), None, "missing"), [""; 0]);
    assert!(check(json!({}), None, "")[0].contains("spec.vmName: is required"));
    assert!(check(json!({"vmName": "node"}), None, "node")[0].contains("nodes of a cluster"));
    assert!(
        check(json!({"vmName": "a", "quiesce": {"timeout": "x"}}), None, "")[0]
            .contains("no duration")
    );
    let changed = json!({"vmName": "b", "memory": true, "quiesce": {"timeout": "1m"}});
    assert_eq!(check(changed, Some(json!({"vmName": "a"})), "").len(), 3);

    let request = |key: &str| -> VirtualMachineWebConsoleRequest {
        serde_json::from_value(
            json!({"metadata": {"name": "r"}, "spec": {"name": "vm", "publicKey": key}}),
        )
        .unwrap()
    };
    let key = "-----BEGIN PUBLIC KEY-----\nAA\n-----END PUBLIC KEY-----";
    assert_eq!(validate_web_console_request(&request(key), None, Rights::Ordinary), [""; 0]);
    assert_eq!(validate_web_console_request(&request("AA"), None, Rights::Ordinary).len(), 1);
    let old = request(key);
    let other = request(&format!("{key}\n"));
    assert_eq!(validate_web_console_request(&other, Some(&old), Rights::Ordinary).len(), 1);
}
