//! Volumes by claim: for each one an attachment object of the vSphere CSI driver, which attaches the disk and says so. What it says is shown as a managed volume.
//!
//! The kind is the driver's and may not exist, so it is not watched: objects are asked for only while something is not as wanted, by time.

use std::time::Duration;

use kube::api::{DeleteParams, PostParams};
use kube::core::Status;
use kube::{Api, ResourceExt as _};
use roost_controller::Next;

use super::Context;
use super::outcome::{Flow, Halt};
use crate::api::condition::{ConditionType, Reason, is_false_because, mark_false, mark_true};
use crate::api::vm::{Volume, VolumeStatus, VolumeType};
use crate::api::{CnsNodeVmAttachment, CnsNodeVmAttachmentSpec, VirtualMachine};
use crate::run::owner;

/// The driver takes some seconds to attach a disk.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Somebody has to install a driver.
const NO_DRIVER_AGAIN: Duration = Duration::from_mins(1);

const NO_DRIVER: &str = "volumes of claims are attached by the vSphere CSI driver, and this cluster has no kind CnsNodeVmAttachment of cns.vmware.com";

/// What an attachment object is called.
fn attachment_name(vm: &VirtualMachine, volume: &str) -> String {
    format!("{}-{volume}", vm.name_any())
}

fn managed(vm: &VirtualMachine) -> impl Iterator<Item = &VolumeStatus> {
    let all = vm.status.as_ref().map(|status| status.volumes.as_slice()).unwrap_or_default();
    all.iter().filter(|volume| volume.type_ == VolumeType::Managed)
}

fn claims(vm: &VirtualMachine) -> impl Iterator<Item = (&Volume, &str)> {
    vm.spec.volumes.iter().filter_map(|volume| Some((volume, volume.claim_name()?)))
}

/// Whether every wanted volume is attached and no other one is.
fn is_settled(vm: &VirtualMachine) -> bool {
    let is_attached = |name: &str| managed(vm).any(|known| known.name == name && known.attached);
    claims(vm).all(|(volume, _)| is_attached(&volume.name))
        && managed(vm).all(|known| claims(vm).any(|(volume, _)| volume.name == known.name))
}

/// How a claim's disk is shown.
fn shown(volume: &str, attachment: &CnsNodeVmAttachment) -> VolumeStatus {
    VolumeStatus {
        name: volume.to_owned(),
        type_: VolumeType::Managed,
        attached: attachment.is_attached(),
        disk_uuid: attachment.disk_uuid().unwrap_or_default().to_owned(),
        error: attachment.status.as_ref().map(|status| status.error.clone()).unwrap_or_default(),
        ..VolumeStatus::default()
    }
}

/// When to look at the attachments of a VM again.
pub(super) fn pause(vm: &VirtualMachine) -> Duration {
    let has_no_driver =
        is_false_because(vm.conditions(), ConditionType::StorageReady, Reason::NotFound);
    if has_no_driver { NO_DRIVER_AGAIN } else { ASK_AGAIN }
}

/// When to look again; `AwaitChange` if all is as wanted. What is missing does not keep the other steps from running.
pub(super) async fn reconcile_volumes(cx: &Context, vm: &mut VirtualMachine) -> Flow<Next> {
    if is_settled(vm) || vm.spec.bios_uuid.is_empty() {
        return Ok(Next::AwaitChange);
    }
    let namespace = vm.namespace().unwrap_or_default();
    let api: Api<CnsNodeVmAttachment> = Api::namespaced(cx.writer.client().clone(), &namespace);
    let wanted: Vec<(String, String)> =
        claims(vm).map(|(volume, claim)| (volume.name.clone(), claim.to_owned())).collect();
    let others: Vec<VolumeStatus> = managed(vm)
        .filter(|known| !wanted.iter().any(|(volume, _)| *volume == known.name))
        .cloned()
        .collect();
    let mut all = Vec::new();
    for (volume, claim) in &wanted {
        let Some(attachment) = attach(&api, vm, volume, claim).await? else {
            let (kind, conditions) = (ConditionType::StorageReady, &mut vm.status_mut().conditions);
            mark_false(conditions, kind, Reason::NotFound, NO_DRIVER, cx.now());
            return Ok(Next::After(NO_DRIVER_AGAIN));
        };
        all.push(shown(volume, &attachment));
    }
    for known in others {
        if !detach(&api, &attachment_name(vm, &known.name)).await? {
            all.push(VolumeStatus { attached: false, ..known });
        }
    }
    let status = vm.status_mut();
    status.volumes.retain(|known| known.type_ != VolumeType::Managed);
    status.volumes.extend(all);
    status.volumes.sort_by(|one, other| one.disk_uuid.cmp(&other.disk_uuid));
    let kind = ConditionType::StorageReady;
    if is_false_because(&status.conditions, kind, Reason::NotFound) {
        mark_true(&mut status.conditions, kind, cx.now());
    }
    Ok(if is_settled(vm) { Next::AwaitChange } else { Next::After(ASK_AGAIN) })
}

/// The attachment as it is, made if there is none; `None` if the cluster does not know the kind.
async fn attach(
    api: &Api<CnsNodeVmAttachment>,
    vm: &VirtualMachine,
    volume: &str,
    claim: &str,
) -> Flow<Option<CnsNodeVmAttachment>> {
    let name = attachment_name(vm, volume);
    let asking = || format!("attaching volume {volume}");
    let found = match api.get_opt(&name).await {
        Err(kube::Error::Api(said)) if is_unknown_kind(&said) => return Ok(None),
        found => found.map_err(Halt::because(asking()))?,
    };
    if let Some(found) = found {
        let is_ours = owner::controller_of(&found) == vm.uid();
        let is_right = found.spec.volume_name == claim;
        if is_ours && is_right && found.metadata.deletion_timestamp.is_none() {
            return Ok(Some(found));
        }
        if is_ours {
            // Of another claim, or on its way out: a new one is made when it is gone.
            detach(api, &name).await?;
            let gone = CnsNodeVmAttachment { status: None, ..found };
            return Ok(Some(gone));
        }
        return Err(Halt::failed(format!("{name} belongs to somebody else")));
    }
    let spec = CnsNodeVmAttachmentSpec {
        node_uuid: vm.spec.bios_uuid.clone(),
        volume_name: claim.to_owned(),
    };
    let mut wanted = CnsNodeVmAttachment::new(&name, spec);
    wanted.metadata.namespace = vm.namespace();
    wanted.metadata.owner_references = Some(vec![owner::of(vm)]);
    match api.create(&PostParams::default(), &wanted).await {
        Ok(made) => Ok(Some(made)),
        Err(kube::Error::Api(said)) if is_unknown_kind(&said) => Ok(None),
        Err(kube::Error::Api(said)) if said.is_already_exists() => Ok(Some(wanted)),
        Err(source) => Err(Halt::because(asking())(source)),
    }
}

/// Of a kind that it does not serve the API server says 404 without a reason; of an object that is not there, with one.
fn is_unknown_kind(said: &Status) -> bool {
    said.code == 404 && !said.is_not_found()
}

/// Whether it is gone. The driver detaches the disk first.
async fn detach(api: &Api<CnsNodeVmAttachment>, name: &str) -> Flow<bool> {
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(false),
        Err(kube::Error::Api(said)) if said.code == 404 => Ok(true),
        Err(source) => Err(Halt::because(format!("detaching {name}"))(source)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_are_settled_when_all_are_attached_and_no_other_is() {
        let mut vm = VirtualMachine::default();
        assert!(is_settled(&vm), "there are none");
        let claim = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]);
        vm.spec.volumes = serde_json::from_value(claim).unwrap();
        assert!(!is_settled(&vm));
        let mut attachment = CnsNodeVmAttachment::new("x-data", CnsNodeVmAttachmentSpec::default());
        vm.status_mut().volumes = vec![shown("data", &attachment)];
        assert!(!is_settled(&vm), "the driver has not said that it is attached");
        let said = json!({"attached": true, "metadata": {"diskUUID": "6000"}, "error": ""});
        attachment.status = serde_json::from_value(said).unwrap();
        vm.status_mut().volumes = vec![shown("data", &attachment)];
        assert!(is_settled(&vm));
        assert_eq!(vm.status.as_ref().unwrap().volumes[0].disk_uuid, "6000");
        vm.spec.volumes.clear();
        assert!(!is_settled(&vm), "it is to be detached");
    }
}
