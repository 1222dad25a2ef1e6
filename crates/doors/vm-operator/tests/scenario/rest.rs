//! What it costs: nothing at rest, little on the way.

use std::collections::BTreeSet;

use roost_vcenter_sim::{Action, Rule};
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::vm::PowerState;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, secs, vm};

#[tokio::test(start_paused = true)]
async fn a_vm_is_made_with_few_calls_and_writes() {
    let lab = Lab::new().await;
    // The first pays for what is found once.
    lab.apply(&vm("first")).await;
    lab.until_on("first").await;
    sleep(minutes(5)).await;
    let (calls, writes) = (lab.calls(), lab.writes());
    lab.apply(&vm("web-0")).await;
    lab.until("on", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOn)).await;
    sleep(secs(2)).await;
    let (calls, writes) = (lab.calls() - calls, lab.writes() - writes - 1);
    println!("a VM from applied to powered on: {calls} calls, {writes} writes");
    let counters = lab.site.vcenter.counters();
    assert!(calls <= 12, "{calls} calls: {counters:#?}");
    assert!(writes <= 8, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn settled_vms_cost_nothing_however_often_they_are_looked_at() {
    let mut lab = Lab::idle().await;
    lab.settings.resync = secs(60);
    lab.start();
    for name in ["a", "b", "c"] {
        lab.apply(&vm(name)).await;
    }
    for name in ["a", "b", "c"] {
        lab.until_on(name).await;
    }
    sleep(minutes(5)).await;
    let (calls, writes) = (lab.calls(), lab.writes());
    sleep(minutes(100)).await;
    assert_eq!(lab.writes() - writes, 0, "a hundred passes write nothing");
    assert!(lab.calls() - calls <= 20, "keep-alives only: {}", lab.calls() - calls);
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_everything_as_it_is_and_writes_nothing() {
    let mut lab = Lab::new().await;
    let names: Vec<String> = (0..20).map(|number| format!("web-{number}")).collect();
    for name in &names {
        lab.apply(&vm(name)).await;
    }
    for name in &names {
        lab.until_on(name).await;
    }
    sleep(minutes(5)).await;
    lab.stop().await;
    lab.renew().await;
    let (calls, writes) = (lab.calls(), lab.writes());
    lab.start();
    sleep(minutes(2)).await;
    let (calls, writes) = (lab.calls() - calls, lab.writes() - writes);
    println!("a restart with 20 VMs: {calls} calls, {writes} writes");
    assert_eq!(writes, 0);
    assert!(calls <= 20, "{calls} calls");
    assert_eq!(lab.site.vcenter.vm_names().len(), 20 + 3 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_create_and_status_makes_no_second_vm() {
    let mut lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    for _ in 0..600 {
        if lab.site.vcenter.counters().calls_of("CloneVM_Task") > 0 {
            break;
        }
        sleep(secs(1) / 10).await;
    }
    lab.crash().await;
    sleep(minutes(1)).await;
    assert!(lab.machine("web-0").is_some());
    lab.start();
    let made = lab.until_on("web-0").await;
    assert_eq!(made.status.unwrap().unique_id, lab.machine("web-0").unwrap().moref.id.to_string());
    assert_eq!(lab.site.vcenter.counters().calls_of("CloneVM_Task"), 1);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_are_made_at_once_and_the_others_wait_without_errors() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.max_creates = 4;
    lab.start();
    let names: BTreeSet<String> = (0..10).map(|number| format!("web-{number}")).collect();
    for name in &names {
        lab.apply(&vm(name)).await;
    }
    let mut most = 0;
    for _ in 0..1_200 {
        let tasks = lab.site.vcenter.tasks();
        let running = tasks.iter().filter(|task| {
            task.description_id == "VirtualMachine.clone" && task.complete_time.is_none()
        });
        most = most.max(running.count());
        sleep(secs(1) / 10).await;
    }
    assert!((1..=4).contains(&most), "{most} at once");
    for name in &names {
        lab.until_on(name).await;
    }
    assert!(lab.events().await.iter().all(|(reason, _)| reason == "CreateSuccess"));
}

#[tokio::test(start_paused = true)]
async fn a_create_that_fails_is_shown_and_tried_again() {
    let lab = Lab::new().await;
    let rule = Rule::new("CloneVM_Task", Action::fail_task("NoDiskSpace", "full"));
    lab.site.vcenter.faults().add(rule.once());
    lab.apply(&vm("web-0")).await;
    let failed = |vm: &roost_vm_operator::api::VirtualMachine| {
        condition(vm, ConditionType::Created) == Some(("False", "Error"))
    };
    lab.until("failed", "web-0", failed).await;
    lab.until_on("web-0").await;
    assert!(lab.events().await.iter().any(|(reason, _)| reason == "CreateFailure"));
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_said_at_once_and_its_coming_is_enough() {
    let lab = Lab::new().await;
    let mut poor = vm("web-0");
    poor.spec.class_name = "huge".into();
    lab.apply(&poor).await;
    let missing = |vm: &roost_vm_operator::api::VirtualMachine| {
        condition(vm, ConditionType::ClassReady) == Some(("False", "NotFound"))
    };
    lab.until("waiting for its class", "web-0", missing).await;
    lab.class("huge", 8, "16Gi").await;
    lab.until_on("web-0").await;
    assert_eq!(lab.machine("web-0").unwrap().cpus, 8);
}
