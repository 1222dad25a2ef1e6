//! Disks of claims, attached by a CSI driver that the test plays.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Patch, PatchParams, PostParams};
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::vm::{PowerState, VolumeType};
use roost_vm_operator::api::{CnsNodeVmAttachment, VirtualMachine};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::lab::{Lab, NAMESPACE, condition, minutes, secs, vm};

/// The kind of the CSI driver, without its rules.
fn definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "metadata": {"name": "cnsnodevmattachments.cns.vmware.com"},
        "spec": {
            "group": "cns.vmware.com",
            "scope": "Namespaced",
            "names": {"kind": "CnsNodeVmAttachment", "listKind": "CnsNodeVmAttachmentList",
                "plural": "cnsnodevmattachments", "singular": "cnsnodevmattachment"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}],
        },
    })
}

async fn claim(lab: &Lab, name: &str) {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
    lab.api().create(&PostParams::default(), &claim).await.unwrap();
}

fn with_volume(name: &str) -> VirtualMachine {
    let mut vm = vm(name);
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    vm.spec.volumes = serde_json::from_value(volumes).unwrap();
    vm
}

async fn attachment(lab: &Lab, name: &str) -> CnsNodeVmAttachment {
    for _ in 0..3_000 {
        if let Some(found) = lab.api::<CnsNodeVmAttachment>().get_opt(name).await.unwrap() {
            return found;
        }
        sleep(secs(1) / 5).await;
    }
    panic!("there is no {name}");
}

/// What the driver does when it has attached the disk.
async fn attach(lab: &Lab, name: &str) {
    let said =
        json!({"status": {"attached": true, "metadata": {"diskUUID": "6000C29a"}, "error": ""}});
    let api = lab.api::<CnsNodeVmAttachment>();
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(said)).await.unwrap();
}

fn managed(vm: &VirtualMachine) -> Vec<(String, bool, String)> {
    let volumes = vm.status.iter().flat_map(|status| &status.volumes);
    let managed = volumes.filter(|volume| volume.type_ == VolumeType::Managed);
    managed.map(|volume| (volume.name.clone(), volume.attached, volume.disk_uuid.clone())).collect()
}

/// A VM with a volume, from its making until the volume is taken away again.
pub(crate) async fn attach_and_detach(lab: &Lab, name: &str) {
    lab.sim().define([definition()]);
    claim(lab, "data").await;
    lab.apply(&with_volume(name)).await;
    let asked = attachment(lab, &format!("{name}-data")).await;
    let made = lab.get(name).await;
    assert_eq!(asked.spec.volume_name, "data");
    assert_eq!(asked.spec.node_uuid, made.spec.bios_uuid);
    assert_eq!(asked.metadata.owner_references.unwrap()[0].name, name);
    sleep(minutes(1)).await;
    let waits = lab.get(name).await;
    assert_eq!(waits.current_power_state(), Some(PowerState::PoweredOff), "not without its disk");
    attach(lab, &format!("{name}-data")).await;
    let on = lab.until_on(name).await;
    assert_eq!(managed(&on), [("data".to_owned(), true, "6000C29a".to_owned())]);
    assert_eq!(condition(&on, ConditionType::StorageReady), Some(("True", "True")));

    lab.patch(name, json!({ "spec": { "volumes": null } })).await;
    lab.until("without its volume", name, |vm| managed(vm).is_empty()).await;
    let left = lab.api::<CnsNodeVmAttachment>().get_opt(&format!("{name}-data")).await.unwrap();
    assert!(left.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_attached_by_the_driver_before_the_vm_goes_on_and_let_go_when_it_is_not_wanted()
{
    let lab = Lab::new().await;
    Box::pin(attach_and_detach(&lab, "web-0")).await;
    let writes = lab.writes();
    sleep(minutes(30)).await;
    assert_eq!(lab.writes(), writes, "settled volumes cost nothing");
}

#[tokio::test(start_paused = true)]
async fn without_a_driver_a_vm_with_a_claim_says_so_and_is_served_when_there_is_one() {
    let lab = Lab::new().await;
    claim(&lab, "data").await;
    lab.apply(&with_volume("web-0")).await;
    let says_so = |vm: &VirtualMachine| {
        condition(vm, ConditionType::StorageReady) == Some(("False", "NotFound"))
    };
    let poor = lab.until("without a driver", "web-0", says_so).await;
    let said = poor.status.unwrap().conditions;
    assert!(said.iter().any(|is| is.message.contains("vSphere CSI driver")), "{said:?}");
    sleep(minutes(5)).await;
    assert_eq!(lab.get("web-0").await.current_power_state(), Some(PowerState::PoweredOff));
    lab.sim().define([definition()]);
    attachment(&lab, "web-0-data").await;
    attach(&lab, "web-0-data").await;
    lab.until_on("web-0").await;
}
