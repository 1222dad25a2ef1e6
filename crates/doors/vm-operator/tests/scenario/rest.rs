//! What it costs: nothing at rest, little on the way.

use std::collections::BTreeSet;

use roost_vcenter_sim::{Action, Rule};
use roost_vm_operator::api::condition::{ConditionType, find};
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
    let mut lab = Lab::idle().await;
    lab.settings.provider.max_creates = 200;
    lab.start();
    // The three hosts of the lab have room for 192 of the class that others have.
    lab.class("tiny", 1, "1Gi").await;
    let names: Vec<String> = (0..200).map(|number| format!("web-{number}")).collect();
    for name in &names {
        let mut vm = vm(name);
        vm.spec.class_name = "tiny".into();
        lab.apply(&vm).await;
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
    println!("a restart with 200 VMs: {calls} calls, {writes} writes");
    assert_eq!(writes, 0);
    assert!(calls <= 20, "{calls} calls");
    assert_eq!(lab.site.vcenter.vm_names().len(), 200 + 3 + 1);
}

/// A2. With one worker, which waits for the end of a create: whatever it does before is seen.
#[tokio::test(start_paused = true)]
async fn a_new_vm_is_made_before_a_thousand_that_are_there_are_looked_at() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.max_creates = 1_000;
    lab.start();
    let names: Vec<String> = (0..1_000).map(|number| format!("web-{number}")).collect();
    for name in &names {
        let mut vm = vm(name);
        vm.spec.power_state = Some(PowerState::PoweredOff);
        lab.apply(&vm).await;
    }
    for name in &names {
        lab.until("made", name, roost_vm_operator::api::VirtualMachine::is_created).await;
    }
    sleep(minutes(10)).await;
    lab.stop().await;
    lab.renew().await;
    lab.settings.workers = 1;
    lab.settings.provider.async_create = false;
    let slow = Rule::new("CloneVM_Task", Action::Delay(minutes(1)));
    lab.site.vcenter.faults().add(slow.once());
    lab.apply(&vm("new")).await;
    let made = lab.site.vcenter.counters().calls_of("CloneVM_Task");
    lab.start();
    // As long as nothing is known of the vCenter, a pass does nothing.
    let mut before = 0;
    while lab.fleet.mirror().freshness().as_of.is_none() {
        before = lab.passes();
        sleep(secs(1) / 1_000).await;
    }
    sleep(secs(20)).await;
    assert_eq!(lab.site.vcenter.counters().calls_of("CloneVM_Task"), made + 1, "it is under way");
    let passes = lab.passes() - before;
    println!("the create of a new VM behind 1,000 that are there: after {passes} passes");
    assert!(passes < 1_000, "{passes} passes went before it");
    lab.until_on("new").await;
    assert!(lab.passes() >= before + 1_000, "all were looked at");
}

/// What a host cannot take is said where people look, and not only in the log.
#[tokio::test(start_paused = true)]
async fn why_a_vm_does_not_come_on_stands_in_its_condition() {
    let lab = Lab::new().await;
    let full = Action::fail_task("InsufficientMemoryResourcesFault", "the host is full");
    lab.site.vcenter.faults().add(Rule::new("PowerOnVM_Task", full));
    lab.apply(&vm("web-0")).await;
    let says_why = |vm: &roost_vm_operator::api::VirtualMachine| {
        let synced = find(vm.conditions(), ConditionType::PowerStateSynced);
        synced.is_some_and(|synced| synced.message.contains("the host is full"))
    };
    lab.until("said to be held up", "web-0", says_why).await;
    lab.site.vcenter.faults().clear();
    let on = lab.until_on("web-0").await;
    assert!(!says_why(&on), "what is over is not shown");
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

/// Whatever a process was about to do when it ended.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_request_makes_one_vm_that_comes_on() {
    for request in 1..=24 {
        let mut lab = Lab::new().await;
        sleep(secs(5)).await;
        let before = lab.site.vcenter.counters().total_calls();
        lab.apply(&vm("web-0")).await;
        for _ in 0..60_000 {
            if lab.site.vcenter.counters().total_calls() >= before + request {
                break;
            }
            sleep(secs(1) / 1_000).await;
        }
        lab.crash().await;
        lab.start();
        let on = lab.until_on("web-0").await;
        let machine = lab.machine("web-0").unwrap();
        assert_eq!(on.status.unwrap().unique_id, machine.moref.id.to_string(), "{request}");
        assert_eq!(lab.site.vcenter.vm_names().len(), 3 + 1 + 1, "request {request}");
    }
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
