use serde_json::json;

use super::*;
use crate::api::names::annotation;

#[test]
fn a_new_object_is_filled_in() {
    let made =
        defaulted(json!({"imageName": "ubuntu", "bootstrap": {"cloudInit": {}}}), Rights::Ordinary)
            .unwrap();
    let expected = json!({
        "imageName": "ubuntu",
        "image": {"kind": "VirtualMachineImage", "name": "vmi-1"},
        "powerState": "PoweredOn",
        "instanceUUID": "uuid",
        "biosUUID": "uuid",
        "bootstrap": {"cloudInit": {"instanceID": "uuid"}},
        "network": {"interfaces": [{"name": "eth0", "network": {"name": "VM Network"}}]},
        "hardware": {"ideControllers": [{"busNumber": 0}, {"busNumber": 1}]},
    });
    assert_eq!(made["spec"], expected);
    assert_eq!(made["metadata"]["annotations"][annotation::CREATED_AT_SCHEMA_VERSION], "v1alpha6");

    let given = json!({
        "imageName": "vmi-1", "powerState": "PoweredOff", "biosUUID": "mine", "network": {"disabled": true},
        "hardware": {"ideControllers": [{"busNumber": 1}], "cdrom": [{"name": "cd1", "image": {"kind": "", "name": "vmi-2"}}]},
    });
    let kept = defaulted(given, Rights::Ordinary).unwrap();
    assert_eq!(kept["spec"]["network"], json!({"disabled": true}));
    assert_eq!(kept["spec"]["biosUUID"], "mine");
    assert_eq!(kept["spec"]["hardware"]["ideControllers"], json!([{"busNumber": 1}]));
    assert_eq!(kept["spec"]["hardware"]["cdrom"][0]["image"]["kind"], "VirtualMachineImage");

    let from_disc =
        json!({"hardware": {"cdrom": [{"name": "cd1", "image": {"kind": "", "name": "vmi-2"}}]}});
    let made = defaulted(from_disc, Rights::Ordinary).unwrap();
    assert_eq!(
        made["spec"]["image"],
        json!({"kind": "ClusterVirtualMachineImage", "name": "vmi-2"})
    );
}

#[test]
fn an_object_that_cannot_be_filled_in_is_refused() {
    let refused = |object, rights| defaulted(object, rights).unwrap_err().join("; ");
    assert!(
        refused(json!({"imageName": "none"}), Rights::Ordinary)
            .contains("no VM image exists for \"none\"")
    );
    assert!(
        refused(json!({"imageName": "photon"}), Rights::Ordinary)
            .contains("multiple VM images exist")
    );
    let other = json!({"imageName": "ubuntu", "image": {"kind": "ClusterVirtualMachineImage", "name": "vmi-2"}});
    assert!(refused(other, Rights::Ordinary).contains("must refer to the same resource"));
    let identified = json!({"imageName": "ubuntu", "instanceUUID": "mine"});
    assert!(
        refused(identified.clone(), Rights::Ordinary)
            .contains("spec.instanceUUID: only privileged")
    );
    assert_eq!(defaulted(identified, Rights::Privileged).unwrap()["spec"]["instanceUUID"], "mine");
}
