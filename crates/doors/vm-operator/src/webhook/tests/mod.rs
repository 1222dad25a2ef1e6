mod changes;
mod defaults;
mod kinds;
mod marks;
mod new;
mod reviews;

use serde_json::{Value, json};

use super::*;

/// An object that nothing is wrong with, changed by a merge patch.
pub(super) fn vm(patch: Value) -> VirtualMachine {
    let mut object = json!({
        "metadata": {"name": "web-0", "namespace": "team-a"},
        "spec": {
            "className": "small",
            "imageName": "ubuntu",
            "image": {"kind": "VirtualMachineImage", "name": "vmi-1"},
            "storageClass": "gold",
            "powerState": "PoweredOn",
            "instanceUUID": "i", "biosUUID": "b",
            "network": {"interfaces": [{"name": "eth0", "network": {"name": "VM Network"}}]},
        },
    });
    merge(&mut object, patch);
    serde_json::from_value(object).unwrap()
}

pub(super) fn merge(object: &mut Value, patch: Value) {
    match patch {
        Value::Object(fields) => {
            if !object.is_object() {
                *object = json!({});
            }
            for (key, value) in fields {
                if value.is_null() {
                    object.as_object_mut().unwrap().remove(&key);
                } else {
                    merge(&mut object[key], value);
                }
            }
        }
        value => *object = value,
    }
}

pub(super) fn problems(new: Value, old: Option<Value>, rights: Rights) -> Vec<String> {
    let old = old.map(vm);
    validate_vm(&vm(new), old.as_ref(), rights, &AdmissionSettings::default())
}

pub(super) fn assert_refused(found: &[String], expected: &[&str], case: &Value) {
    assert_eq!(found.len(), expected.len(), "{case}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{case}: {found}, not {expected}");
    }
}

pub(super) struct Images;

impl Lookup for Images {
    fn images(&self, _: &str) -> (Vec<NamedImage>, Vec<NamedImage>) {
        let image = |name: &str, display: &str| NamedImage {
            name: name.into(),
            display_name: display.into(),
        };
        (vec![image("vmi-1", "ubuntu")], vec![image("vmi-2", "photon"), image("vmi-3", "photon")])
    }

    fn vm(&self, _: &str, name: &str) -> Option<Arc<VirtualMachine>> {
        let node = json!({"metadata": {"labels": {"capv.vmware.com/cluster.role": "worker"}}});
        (name == "node").then(|| Arc::new(vm(node)))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
pub(super) fn defaulted(object: Value, rights: Rights) -> Result<Value, Vec<String>> {
    let (own, cluster) = Images.images("");
    let settings = AdmissionSettings::default();
    let defaults = Defaults {
        settings: &settings,
        own_images: &own,
        cluster_images: &cluster,
        uuid: &|_| "uuid".into(),
    };
    let mut vm: VirtualMachine =
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": object})).unwrap();
    let problems = default_on_create(&mut vm, &defaults, rights);
    if problems.is_empty() { Ok(serde_json::to_value(vm).unwrap()) } else { Err(problems) }
}
