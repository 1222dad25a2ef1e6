//! Ways to a VM beside a clone, questions before it, and who may ask.

use std::time::Duration;

use roost_vim_wire::methods::{
    AcquireCloneTicket, CancelTask, CheckVmConfigTask, CreateContainerView, InstantCloneTask,
    PromoteDisksTask,
};
use roost_vim_wire::types::{VirtualMachineConfigSpec, VirtualMachineInstantCloneSpec};
use roost_vim_wire::{MoRef, MoType};

use crate::story::{Story, instant, is_on, options};

fn promote(vm: &MoRef) -> PromoteDisksTask {
    PromoteDisksTask { this: vm.clone(), unlink: true, disks: Vec::new() }
}

async fn has_parent(story: &Story, vm: &MoRef) -> bool {
    let layout = story.property(vm, "layoutEx.disk").await.unwrap();
    format!("{layout:?}").matches("DiskUnit").count() > 1
}

#[tokio::test(start_paused = true)]
async fn promoting_disks_takes_time_and_can_be_cancelled() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    assert!(has_parent(&story, &vm).await, "a linked clone shares a disk");
    let task = story.client.call(promote(&vm)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    story.client.call(CancelTask { this: task.clone() }).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "RequestCanceled");
    assert!(has_parent(&story, &vm).await, "nothing has changed");
    let before = tokio::time::Instant::now();
    let task = story.client.call(promote(&vm)).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert!(tokio::time::Instant::now() > before);
    assert!(!has_parent(&story, &vm).await, "the disk is its own");
}

#[tokio::test(start_paused = true)]
async fn an_instant_clone_runs_beside_its_source() {
    let story = Story::start(instant()).await;
    let source = story.worker("worker-1").await;
    let spec = VirtualMachineInstantCloneSpec { name: "fork".into(), ..Default::default() };
    let call = InstantCloneTask { this: source.clone(), spec };
    let task = story.client.call(call.clone()).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert!(is_on(&story.vm("fork")) && is_on(&story.vm("worker-1")));
    story.power_off(&source).await.unwrap();
    let refused = story.client.call(call).await.unwrap_err();
    assert_eq!(refused.class, "InvalidPowerState", "only a running VM can be forked");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_judged_without_being_tried() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    let this = MoRef::new("VirtualMachineCompatibilityChecker".into(), "CompatChecker");
    let ask = |cpus: i32, guest: &str| CheckVmConfigTask {
        this: this.clone(),
        vm: Some(vm.clone()),
        spec: VirtualMachineConfigSpec {
            num_cpus: Some(cpus),
            guest_id: Some(guest.into()),
            ..Default::default()
        },
        ..Default::default()
    };
    for (cpus, guest, wanted) in [
        (2, "debian12_64Guest", None),
        (4000, "debian12_64Guest", Some("NotEnoughCpus")),
        (2, "abacus", Some("UnsupportedGuest")),
    ] {
        let task = story.client.call(ask(cpus, guest)).await.unwrap();
        let found = format!("{:?}", story.client.finish(&task).await.unwrap());
        match wanted {
            Some(class) => assert!(found.contains(class), "{cpus} {guest}: {found}"),
            None => assert!(!found.contains("localizedMessage"), "{cpus} {guest}: {found}"),
        }
    }
    assert_eq!(story.vm("worker-1").cpus, 1);
}

#[tokio::test(start_paused = true)]
async fn a_clone_ticket_and_a_view_of_nothing_known() {
    let story = Story::start(instant()).await;
    let manager = MoRef::new(MoType::SessionManager, "SessionManager");
    let ticket = story.client.call(AcquireCloneTicket { this: manager }).await.unwrap();
    assert!(!ticket.is_empty());
    let view = CreateContainerView {
        this: MoRef::new(MoType::ViewManager, "ViewManager"),
        container: MoRef::new(MoType::Folder, "group-d1"),
        kind: vec!["Spaceship".into()],
        recursive: true,
    };
    assert_eq!(story.client.call(view).await.unwrap_err().class, "InvalidArgument");
}
