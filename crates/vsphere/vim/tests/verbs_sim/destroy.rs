use std::time::Duration;

use roost_vcenter_sim::{Action, Rule};
use roost_vim::wire::methods::{PowerOnVmTask, ReconfigVmTask};
use roost_vim::wire::types::VirtualMachineConfigSpec;
use roost_vim::{Destroyed, PowerChange, Reconfigure, Remedy, Shutdown};

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn a_vm_is_destroyed_whether_on_off_or_gone() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_C0_RP0_VM0").await;
    lab.client.power_on(&vm, None).await.unwrap();
    assert_eq!(lab.client.destroy(&vm).await.unwrap(), Destroyed::Now);
    assert_eq!(lab.client.destroy(&vm).await.unwrap(), Destroyed::AlreadyGone);
    let suspended = lab.vm("DC0_C0_RP0_VM1").await;
    lab.client.power_on(&suspended, None).await.unwrap();
    lab.client.suspend(&suspended).await.unwrap();
    assert_eq!(lab.client.destroy(&suspended).await.unwrap(), Destroyed::Now);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_in_the_way_is_waited_for() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    lab.rule(Rule::new("ReconfigVM_Task", Action::DelayTask(Duration::from_secs(90))).once());
    let spec = VirtualMachineConfigSpec { annotation: Some("busy".into()), ..Default::default() };
    let other = lab.client.submit(&ReconfigVmTask { this: vm.clone(), spec }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(lab.client.destroy(&vm).await.unwrap(), Destroyed::Now);
    other.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_comes_on_between_the_steps_is_powered_off_again() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    lab.rule(Rule::new("Destroy_Task", Action::Delay(Duration::from_secs(20))).once());
    let power_on = PowerOnVmTask { this: vm.clone(), host: None };
    let meddle = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        lab.client.submit(&power_on).await.unwrap().wait().await.unwrap();
    };
    let (destroyed, ()) = tokio::join!(lab.client.destroy(&vm), meddle);
    assert_eq!(destroyed.unwrap(), Destroyed::Now);
}

#[tokio::test(start_paused = true)]
async fn lost_replies_and_passing_faults_do_not_keep_a_vm_alive() {
    for (method, action) in [
        ("Destroy_Task", Action::CutAfter),
        ("Destroy_Task", Action::CutBefore),
        ("Destroy_Task", Action::fail_task("FileLocked", "in use")),
        ("PowerOffVM_Task", Action::CutAfter),
        ("PowerOffVM_Task", Action::fail_task("HostNotReachable", "")),
    ] {
        let lab = Lab::start().await;
        let vm = lab.vm("DC0_H0_VM0").await;
        lab.client.power_on(&vm, None).await.unwrap();
        let rule = lab.rule(Rule::new(method, action.clone()).once());
        lab.client
            .destroy(&vm)
            .await
            .unwrap_or_else(|error| panic!("{method} {action:?}: {error}"));
        assert_eq!(lab.fired(rule), 1, "{method} {action:?}");
        assert_eq!(lab.client.destroy(&vm).await.unwrap(), Destroyed::AlreadyGone);
    }
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_an_error_with_its_reason() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    lab.rule(Rule::new("Destroy_Task", Action::fault("NoPermission", "not yours")));
    let error = lab.client.destroy(&vm).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::GiveUp);
    assert_eq!(error.to_string(), format!("destroying {vm}"));
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("not yours"));
}

#[tokio::test(start_paused = true)]
async fn power_verbs_name_an_end_state() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    let client = &lab.client;
    assert_eq!(client.power_off(&vm).await.unwrap(), PowerChange::Unchanged);
    assert_eq!(client.shut_down(&vm, Duration::from_mins(1)).await.unwrap(), Shutdown::AlreadyOff);
    let lost = lab.lose_answer_of("PowerOnVM_Task");
    client.power_on(&vm, None).await.unwrap();
    assert_eq!(lab.fired(lost), 1);
    assert_eq!(lab.power_state(&vm).await, "poweredOn");
    assert_eq!(client.power_on(&vm, None).await.unwrap(), PowerChange::Unchanged);
    client.reset(&vm).await.unwrap();
    assert_eq!(client.suspend(&vm).await.unwrap(), PowerChange::Changed);
}

#[tokio::test(start_paused = true)]
async fn a_guest_shuts_down_or_is_unplugged() {
    let lab = Lab::start().await;
    let (client, template) = (&lab.client, lab.template().await);
    let request = roost_vim::CloneVm { power_on: true, ..lab.clone_request("worker-1").await };
    let vm = client.clone_vm(&template, &request).await.unwrap();
    // Tools do not run yet.
    assert_eq!(client.shut_down(&vm, Duration::from_mins(5)).await.unwrap(), Shutdown::Hard);
    client.power_on(&vm, None).await.unwrap();
    client.wait_for_guest_operations(&vm, crate::lab::within(180)).await.unwrap();
    assert_eq!(client.shut_down(&vm, Duration::from_mins(5)).await.unwrap(), Shutdown::Soft);
    assert_eq!(lab.power_state(&vm).await, "poweredOff");
    client.power_on(&vm, None).await.unwrap();
    client.wait_for_guest_operations(&vm, crate::lab::within(180)).await.unwrap();
    assert_eq!(
        client.shut_down(&vm, Duration::from_secs(1)).await.unwrap(),
        Shutdown::Hard,
        "no time for the guest"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unregistered_vm_is_out_of_the_inventory() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    assert_eq!(lab.client.unregister(&vm).await.unwrap(), Destroyed::Now);
    assert_eq!(lab.client.unregister(&vm).await.unwrap(), Destroyed::AlreadyGone);
    let gone = lab.client.reconfigure(&vm, &Reconfigure::annotation("x")).await.unwrap_err();
    assert_eq!(gone.remedy(), Remedy::Gone);
}
