use serde_json::{Value, json};

use super::*;
use crate::api::names::annotation;
use crate::api::vm::PowerState;

/// Each case: the old object, the new one, then what is refused.
#[test]
fn rules_of_changes() {
    let spec = |fields: Value| json!({"spec": fields});
    let on = json!({"status": {"powerState": "PoweredOn"}});
    let off = json!({"status": {"powerState": "PoweredOff"}});
    let cases: Vec<(Value, Value, &[&str])> = vec![
        (json!({}), json!({}), &[]),
        (
            json!({}),
            spec(json!({"storageClass": "silver"})),
            &["spec.storageClass: field is immutable"],
        ),
        (json!({}), spec(json!({"image": {"name": "vmi-2"}})), &["spec.image: field is immutable"]),
        (json!({}), spec(json!({"imageName": "x"})), &["spec.imageName: field is immutable"]),
        (
            json!({}),
            spec(json!({"biosUUID": "x", "instanceUUID": "y"})),
            &["spec.biosUUID", "spec.instanceUUID"],
        ),
        (spec(json!({"biosUUID": null})), json!({}), &[]),
        (
            spec(json!({"reserved": {"resourcePolicyName": "a"}})),
            spec(json!({"reserved": {"resourcePolicyName": "b"}})),
            &["spec.reserved.resourcePolicyName: field is immutable"],
        ),
        (json!({}), spec(json!({"className": "large"})), &[]),
        (
            json!({}),
            spec(json!({"powerState": null})),
            &["spec.powerState: cannot set power state to empty"],
        ),
        (
            spec(json!({"powerState": "PoweredOff"})),
            spec(json!({"powerState": "Suspended"})),
            &["cannot suspend a VM that is powered off"],
        ),
        (
            json!({}),
            spec(json!({"nextRestartTime": "tomorrow"})),
            &["must be formatted as RFC3339Nano"],
        ),
        (json!({}), spec(json!({"nextRestartTime": "2026-01-02T03:04:05.123456789Z"})), &[]),
        (
            on.clone(),
            spec(json!({"guestID": "x"})),
            &["spec.guestID: updates to this field are not allowed when"],
        ),
        (on.clone(), spec(json!({"guestID": "x", "powerState": "PoweredOff"})), &[]),
        (off.clone(), spec(json!({"guestID": "x"})), &[]),
        (
            on.clone(),
            json!({"spec": {"guestID": "x"}, "metadata": {"annotations": {"poweron.check.vmoperator.vmware.com/x": ""}}}),
            &["metadata.annotations[poweron.check.vmoperator.vmware.com/x]"],
        ),
        (
            on.clone(),
            spec(json!({"hardware": {"scsiControllers": [{"busNumber": 1}]}})),
            &["spec.hardware.scsiControllers"],
        ),
        (on.clone(), spec(json!({"hardware": {"ideControllers": [{"busNumber": 0}]}})), &[]),
        (
            on.clone(),
            spec(json!({"minHardwareVersion": 19})),
            &["cannot upgrade hardware version unless powered off"],
        ),
        (
            spec(json!({"minHardwareVersion": 19})),
            spec(json!({"minHardwareVersion": 17})),
            &["cannot downgrade"],
        ),
        (off, spec(json!({"minHardwareVersion": 19})), &[]),
        (
            spec(json!({"bootstrap": {"cloudInit": {}}})),
            spec(json!({"bootstrap": {"linuxPrep": {}}})),
            &["the bootstrap provider cannot be changed"],
        ),
        (
            json!({}),
            spec(
                json!({"network": {"interfaces": [{"name": "eth1", "network": {"name": "other"}}]}}),
            ),
            &[
                "interfaces[0].name: field is immutable",
                "interfaces[0].network: field is immutable",
            ],
        ),
        (
            json!({}),
            spec(json!({"network": {"interfaces": []}})),
            &["interfaces: network interfaces cannot be added or removed"],
        ),
        (
            spec(
                json!({"volumes": [{"name": "a", "removable": false, "persistentVolumeClaim": {"claimName": "c"}}]}),
            ),
            json!({}),
            &["spec.volumes: volume a is not removable"],
        ),
        (json!({}), spec(json!({"currentSnapshotName": "s"})), &[]),
        (
            spec(json!({"currentSnapshotName": "s"})),
            spec(json!({"currentSnapshotName": "t"})),
            &["a snapshot revert is already in progress"],
        ),
        (
            json!({}),
            json!({"spec": {"currentSnapshotName": "s"}, "metadata": {"labels": {"capv.vmware.com/cluster.role": "worker"}}}),
            &["spec.currentSnapshotName: is not supported for nodes"],
        ),
    ];
    for (old, new, expected) in cases {
        let case = json!({"old": old, "new": new});
        assert_refused(&problems(new, Some(old), Rights::Ordinary), expected, &case);
    }
}

#[test]
fn a_change_may_mean_more_than_it_says() {
    let now: jiff::Timestamp = "2026-01-02T03:04:05.123456789Z".parse().unwrap();
    let change = |old: Value, new: Value| {
        let mut object = vm(new);
        let problems = default_on_update(&mut object, &vm(old), now, Rights::Ordinary);
        if problems.is_empty() { Ok(object) } else { Err(problems.join("; ")) }
    };
    let wanting = |time: &str| json!({"spec": {"nextRestartTime": time}});
    let restarted = change(json!({}), wanting("now")).unwrap();
    assert_eq!(restarted.spec.next_restart_time, "2026-01-02T03:04:05.123456789Z");
    let off = json!({"spec": {"powerState": "PoweredOff"}});
    assert!(change(off, wanting("now")).unwrap_err().contains("can only restart powered on vm"));
    assert!(
        change(json!({}), wanting("later")).unwrap_err().contains("may only be set to \"now\"")
    );
    let emptied = change(wanting("2026-01-01T00:00:00Z"), json!({})).unwrap();
    assert_eq!(emptied.spec.next_restart_time, "2026-01-01T00:00:00Z");

    let resized = change(json!({}), json!({"spec": {"className": "large"}})).unwrap();
    assert_eq!(resized.annotations()[annotation::LAST_RESIZED_VM_CLASS], r#"{"name":"small"}"#);
    let delayed = json!({"metadata": {"annotations": {annotation::APPLY_POWER_STATE_TIME: "t"}}});
    let mut wanted_off = delayed.clone();
    merge(&mut wanted_off, json!({"spec": {"powerState": "PoweredOff"}}));
    let switched = change(delayed.clone(), wanted_off).unwrap();
    assert_eq!(switched.spec.power_state, Some(PowerState::PoweredOff));
    assert_eq!(switched.metadata.annotations, None);
    assert!(
        change(delayed.clone(), delayed)
            .unwrap()
            .annotations()
            .contains_key(annotation::APPLY_POWER_STATE_TIME)
    );
}
