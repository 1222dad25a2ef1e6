use roost_vcenter_sim::Power;
use roost_vim_wire::methods::{
    CreateSnapshotTask, RemoveAllSnapshotsTask, RemoveSnapshotTask, RevertToCurrentSnapshotTask,
    RevertToSnapshotTask,
};
use roost_vim_wire::types::{VirtualMachineConfigSpec, VirtualMachineSnapshotInfo};
use roost_vim_wire::{Fault, MoRef};

use crate::story::{Story, instant};

async fn take(story: &Story, vm: &MoRef, name: &str, memory: bool) -> Result<MoRef, Fault> {
    let call = CreateSnapshotTask {
        this: vm.clone(),
        name: name.into(),
        description: Some(format!("about {name}")),
        memory,
        quiesce: false,
    };
    let task = story.client.call(call).await?;
    Ok(story.client.finish(&task).await?.and_then(|value| value.as_ref().cloned()).unwrap())
}

async fn revert(story: &Story, snapshot: &MoRef, stay_off: bool) {
    let call = RevertToSnapshotTask {
        this: snapshot.clone(),
        host: None,
        suppress_power_on: Some(stay_off),
    };
    let task = story.client.call(call).await.unwrap();
    story.client.finish(&task).await.unwrap();
}

async fn tree(story: &Story, vm: &MoRef) -> VirtualMachineSnapshotInfo {
    let info = story.property(vm, "snapshot").await.unwrap();
    info.as_data::<VirtualMachineSnapshotInfo>().unwrap().clone()
}

fn depth(story: &Story) -> usize {
    let vm = story.vm("worker-1");
    let disk = vm.devices.iter().find(|device| device.is_disk()).unwrap().clone();
    std::iter::successors(disk.backing.as_ref(), |backing| backing.parent.as_deref()).count()
}

fn note(text: &str) -> VirtualMachineConfigSpec {
    VirtualMachineConfigSpec { annotation: Some(text.into()), ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn a_revert_restores_configuration_and_power() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    story.reconfigure(&vm, note("before")).await.unwrap();
    let running = take(&story, &vm, "running", true).await.unwrap();
    let cold = take(&story, &vm, "cold", false).await.unwrap();
    story.power_off(&vm).await.unwrap();
    let larger = VirtualMachineConfigSpec { num_cpus: Some(8), ..note("after") };
    story.reconfigure(&vm, larger).await.unwrap();
    revert(&story, &running, false).await;
    let view = story.vm("worker-1");
    assert_eq!((view.annotation.as_deref(), view.cpus, view.power), (Some("before"), 1, Power::On));
    story.until_ready("worker-1").await;
    revert(&story, &cold, false).await;
    assert_eq!(story.vm("worker-1").power, Power::Off, "it was taken without memory");
    revert(&story, &running, true).await;
    assert_eq!(story.vm("worker-1").power, Power::Off, "it was told to stay off");
    assert_eq!(tree(&story, &vm).await.current_snapshot, Some(running));
}

#[tokio::test(start_paused = true)]
async fn snapshots_form_a_tree_and_come_off_it() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("flat", "worker-1", story.linked().await).await.unwrap();
    let a = take(&story, &vm, "a", false).await.unwrap();
    let b = take(&story, &vm, "b", false).await.unwrap();
    take(&story, &vm, "c", false).await.unwrap();
    assert_eq!(depth(&story), 4);
    revert(&story, &a, false).await;
    let d = take(&story, &vm, "d", false).await.unwrap();
    let info = tree(&story, &vm).await;
    let names: Vec<_> = info.root_snapshot_list[0]
        .child_snapshot_list
        .iter()
        .map(|child| child.name.as_str())
        .collect();
    assert_eq!((info.root_snapshot_list[0].name.as_str(), names), ("a", vec!["b", "d"]));
    assert_eq!(info.current_snapshot.as_ref(), Some(&d));
    let remove =
        RemoveSnapshotTask { this: b.clone(), remove_children: true, consolidate: Some(true) };
    let task = story.client.call(remove).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!(story.vm("worker-1").snapshots, ["a", "d"]);
    let again =
        story.client.call(RemoveSnapshotTask { this: b, ..Default::default() }).await.unwrap_err();
    assert_eq!(again.class, "ManagedObjectNotFound");
    let only = RemoveSnapshotTask { this: a, remove_children: false, consolidate: None };
    let task = story.client.call(only).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!(tree(&story, &vm).await.root_snapshot_list[0].name, "d");
    assert_eq!(depth(&story), 2);
    let task = story
        .client
        .call(RemoveAllSnapshotsTask { this: vm.clone(), consolidate: None })
        .await
        .unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!((story.property(&vm, "snapshot").await, depth(&story)), (None, 1));
    let task = story
        .client
        .call(RevertToCurrentSnapshotTask { this: vm.clone(), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn the_current_snapshot_is_the_one_to_go_back_to() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    story.power_off(&vm).await.unwrap();
    take(&story, &vm, "clean", false).await.unwrap();
    story.reconfigure(&vm, note("dirty")).await.unwrap();
    let task = story
        .client
        .call(RevertToCurrentSnapshotTask { this: vm.clone(), ..Default::default() })
        .await
        .unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!(story.vm("worker-1").annotation, None);
    let template = story.vm_ref("debian12").await;
    assert_eq!(take(&story, &template, "x", false).await.unwrap_err().class, "NotSupported");
}

#[tokio::test(start_paused = true)]
async fn a_disk_with_snapshots_does_not_grow() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("flat", "worker-1", story.linked().await).await.unwrap();
    take(&story, &vm, "s", false).await.unwrap();
    let mut disk = story
        .vm("worker-1")
        .devices
        .into_iter()
        .find(roost_vim_wire::types::VirtualDevice::is_disk)
        .unwrap();
    disk.capacity_in_kb = disk.capacity_in_kb.map(|kb| kb * 2);
    let device_change = vec![roost_vim_wire::types::VirtualDeviceConfigSpec {
        operation: Some(roost_vim_wire::types::VirtualDeviceConfigSpecOperation::Edit),
        device: disk,
        ..Default::default()
    }];
    let spec = VirtualMachineConfigSpec { device_change, ..Default::default() };
    assert_eq!(story.reconfigure(&vm, spec).await.unwrap_err().class, "InvalidDeviceOperation");
}
