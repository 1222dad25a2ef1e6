use std::time::Duration;

use roost_vcenter_sim::{GuestBehaviour, HostConnection, Options, Power, Timings};
use roost_vim_wire::methods::{
    MarkAsTemplate, MarkAsVirtualMachine, RebootGuest, ResetVmTask, ShutdownGuest, StandbyGuest,
    SuspendVmTask, UnregisterVm,
};

use crate::story::{POOL, Story, instant, options};

#[tokio::test(start_paused = true)]
async fn power_changes_only_from_the_right_state() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    let refused = story.power_on(&vm).await.unwrap_err();
    assert_eq!(
        (refused.text("requestedState"), refused.text("existingState")),
        (Some("poweredOn"), Some("poweredOn"))
    );
    story.power_off(&vm).await.unwrap();
    let refused = story.power_off(&vm).await.unwrap_err();
    assert_eq!(
        (refused.class.as_str(), refused.text("existingState")),
        ("InvalidPowerState", Some("poweredOff"))
    );
    let task = story.client.call(ResetVmTask { this: vm.clone() }).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "InvalidPowerState");
    let template = story.vm_ref("debian12").await;
    assert_eq!(story.power_on(&template).await.unwrap_err().class, "NotSupported");
}

#[tokio::test(start_paused = true)]
async fn power_off_takes_all_guest_data_with_it() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    story.until_ready("worker-1").await;
    let first = story.vm("worker-1").ip;
    story.power_off(&vm).await.unwrap();
    let view = story.vm("worker-1");
    assert_eq!((view.power, view.ip, view.tools_running), (Power::Off, None, false));
    for path in [
        "guest.ipAddress",
        "guest.net",
        "guest.hostName",
        "guest.guestOperationsReady",
        "runtime.bootTime",
    ] {
        assert_eq!(story.property(&vm, path).await, None, "{path}");
    }
    story.power_on(&vm).await.unwrap();
    assert_eq!(story.vm("worker-1").ip, None, "an address of the last boot would be a lie");
    story.until_ready("worker-1").await;
    assert_eq!(story.vm("worker-1").ip, first, "the network remembers the card");
}

#[tokio::test(start_paused = true)]
async fn a_guest_is_asked_and_acts_when_it_acts() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    let ask = ShutdownGuest { this: vm.clone() };
    assert_eq!(story.client.call(ask.clone()).await.unwrap_err().class, "ToolsUnavailable");
    story.until_ready("worker-1").await;
    story.client.call(ask.clone()).await.unwrap();
    assert_eq!(story.vm("worker-1").power, Power::On);
    story.until("it is off", |story| story.vm("worker-1").power == Power::Off).await;
    assert!(
        story
            .events_of(&vm)
            .ends_with(&["VmGuestShutdownEvent".into(), "VmPoweredOffEvent".into()])
    );
    assert_eq!(story.client.call(ask).await.unwrap_err().class, "InvalidPowerState");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_does_not_obey_stays_on() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    story.until_ready("worker-1").await;
    let stubborn = GuestBehaviour { obeys: false, ..GuestBehaviour::default() };
    story.lab.vcenter.set_guest_behaviour("worker-1", stubborn).unwrap();
    story.client.call(ShutdownGuest { this: vm.clone() }).await.unwrap();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(story.vm("worker-1").power, Power::On);
    story.power_off(&vm).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reboot_and_a_reset_start_the_guest_anew() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    story.until_ready("worker-1").await;
    story.client.call(RebootGuest { this: vm.clone() }).await.unwrap();
    story.until("the guest goes down", |story| !story.vm("worker-1").tools_running).await;
    assert_eq!(story.vm("worker-1").power, Power::On);
    story.until_ready("worker-1").await;
    let task = story.client.call(ResetVmTask { this: vm.clone() }).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert!(!story.vm("worker-1").tools_running);
    story.until_ready("worker-1").await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_vm_takes_nothing_and_comes_back() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    story.until_ready("worker-1").await;
    let used = story.lab.vcenter.pool(POOL).unwrap().runtime.memory.reservation_used;
    let task = story.client.call(SuspendVmTask { this: vm.clone() }).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!(story.vm("worker-1").power, Power::Suspended);
    assert!(story.lab.vcenter.pool(POOL).unwrap().runtime.memory.reservation_used < used);
    story.power_on(&vm).await.unwrap();
    story.until_ready("worker-1").await;
    story.client.call(StandbyGuest { this: vm.clone() }).await.unwrap();
    story.until("it stands by", |story| story.vm("worker-1").power == Power::Suspended).await;
    story.power_off(&vm).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn destroying_needs_a_vm_that_is_off() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    let refused = story.destroy(&vm).await.unwrap_err();
    assert_eq!(
        (refused.class.as_str(), refused.text("requestedState"), refused.text("existingState")),
        ("InvalidPowerState", Some("poweredOff"), Some("poweredOn"))
    );
    let running = UnregisterVm { this: vm.clone() };
    assert_eq!(story.client.call(running).await.unwrap_err().class, "InvalidPowerState");
    story.power_off(&vm).await.unwrap();
    story.destroy(&vm).await.unwrap();
    assert!(!story.has_vm("worker-1"));
    assert_eq!(story.power_on(&vm).await.unwrap_err().class, "ManagedObjectNotFound");
    assert_eq!(story.event_classes().last().unwrap(), "VmRemovedEvent");
}

#[tokio::test(start_paused = true)]
async fn a_template_whose_disk_runs_in_linked_clones_is_locked() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    let template = story.vm_ref("debian12").await;
    assert_eq!(story.destroy(&template).await.unwrap_err().class, "FileLocked");
    story.power_off(&vm).await.unwrap();
    story.destroy(&template).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_vm_becomes_a_template_and_back() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    let mark = MarkAsTemplate { this: vm.clone() };
    assert_eq!(story.client.call(mark.clone()).await.unwrap_err().class, "InvalidPowerState");
    story.power_off(&vm).await.unwrap();
    story.client.call(mark).await.unwrap();
    assert_eq!(story.property(&vm, "resourcePool").await, None);
    assert_eq!(story.property(&vm, "summary.config.template").await.unwrap().as_bool(), Some(true));
    let pool = story.find(POOL).await;
    let back = MarkAsVirtualMachine { this: vm.clone(), pool: pool.clone(), host: None };
    story.client.call(back.clone()).await.unwrap();
    assert_eq!(story.property(&vm, "resourcePool").await.unwrap().as_ref(), Some(&pool));
    assert_eq!(story.client.call(back).await.unwrap_err().class, "NotSupported");
}

#[tokio::test(start_paused = true)]
async fn a_vm_on_a_disconnected_host_cannot_be_worked_on() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    let host = story.vm("worker-1").host;
    story.lab.vcenter.set_host_connection(&host, HostConnection::NotResponding).unwrap();
    let state = story.property(&vm, "runtime.connectionState").await.unwrap();
    assert_eq!(state.as_str(), Some("disconnected"));
    assert!(story.power_off(&vm).await.unwrap_err().is("HostCommunication"));
    story.lab.vcenter.set_host_connection(&host, HostConnection::Connected).unwrap();
    story.power_off(&vm).await.unwrap();
    let other = story.worker("worker-2").await;
    assert!(story.property(&other, "runtime.host").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_vm_does_not_start_on_a_host_that_is_gone() {
    let story = Story::start(Options { timings: Timings::instant(), hosts: 2, ..options() }).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let host = story.vm("worker-1").host;
    let other = if host.ends_with('0') { "DC0_C0_H1" } else { "DC0_C0_H0" };
    story.lab.vcenter.set_host_connection(other, HostConnection::Disconnected).unwrap();
    let used = story.lab.vcenter.pool(POOL).unwrap().runtime.memory.max_usage;
    assert_eq!(used, 256 << 30, "the pool has the other host's share only");
    story.power_on(&vm).await.unwrap();
}
