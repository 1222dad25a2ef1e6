//! One request has at most one VM, whatever happens to its replies.

use roost_vcenter_sim::{Action, Outage, Rule, When};
use roost_vim::wire::MoRef;
use roost_vim::{CreateVm, Faulted as _, Made, Namesake, NewDisk, PowerChange, Remedy, VmError};
use std::time::Duration;

use crate::lab::Lab;

fn ours(namesake: &Namesake) -> bool {
    namesake.annotation.as_deref() == Some(&format!("request of {}", namesake.name))
}

async fn vms_named(lab: &Lab, name: &str) -> Vec<MoRef> {
    let found = lab.finder.list(roost_vim::Kind::VirtualMachine, name).await.unwrap();
    found.into_iter().map(|found| found.moref).collect()
}

#[tokio::test(start_paused = true)]
async fn a_clone_whose_reply_was_lost_is_found_and_not_made_twice() {
    for action in [
        Action::CutAfter,
        Action::CutBefore,
        Action::LateAnswer(Duration::from_hours(1)),
        Action::Status(502),
    ] {
        let lab = Lab::start().await;
        let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
        let rule = lab.rule(Rule::new("CloneVM_Task", action.clone()).once());
        let made = lab.client.clone_or_adopt(&template, &request, ours).await;
        let vm = made.unwrap_or_else(|error| panic!("{action:?}: {error}")).into_vm();
        assert_eq!(lab.fired(rule), 1);
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(vms_named(&lab, "worker-1").await, std::slice::from_ref(&vm), "{action:?}");
        assert_eq!(lab.annotation(&vm).await, "request of worker-1");
    }
}

/// The answer of the first attempt was lost and its VM came later; meanwhile the second was refused, the caller took that for the outcome, and gave the
/// address of the VM to another one.
#[tokio::test(start_paused = true)]
async fn a_refusal_after_an_answer_that_was_lost_does_not_say_that_nothing_was_made() {
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    lab.rule(Rule::new("CloneVM_Task", Action::CutAfter).when(When::Nth(1)));
    lab.rule(Rule::new("CloneVM_Task", Action::fault("RuntimeFault", "no")).when(When::Nth(2)));
    let error = lab.client.clone_or_adopt(&template, &request, ours).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error:?}");
    assert!(error.is_fault("RuntimeFault"), "{error:?}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(vms_named(&lab, "worker-1").await.len(), 1);
    // With nothing before it, a refusal is one.
    let request = lab.clone_request("worker-2").await;
    lab.rule(Rule::new("CloneVM_Task", Action::fault("RuntimeFault", "no")).once());
    let error = lab.client.clone_or_adopt(&template, &request, ours).await.unwrap_err();
    assert!(!error.outcome_unknown(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_request_again_gets_the_same_vm_and_another_is_refused() {
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    let first = lab.client.clone_or_adopt(&template, &request, ours).await.unwrap();
    let Made::Now(vm) = first else { panic!("{first:?}") };
    assert_eq!(
        lab.client.clone_or_adopt(&template, &request, ours).await.unwrap(),
        Made::Before(vm.clone())
    );
    let error = lab.client.clone_or_adopt(&template, &request, |_| false).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the name worker-1 is taken by {vm}"));
    assert_eq!(error.remedy(), Remedy::GiveUp);
    let plain = lab.client.clone_vm(&template, &request).await.unwrap_err();
    assert!(matches!(plain, VmError::Task { .. } | VmError::Call { .. }), "{plain}");
}

#[tokio::test(start_paused = true)]
async fn two_that_make_the_same_vm_at_once_get_one() {
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    let both = tokio::join!(
        lab.client.clone_or_adopt(&template, &request, ours),
        lab.client.clone_or_adopt(&template, &request, ours),
    );
    let (one, other) = (both.0.unwrap(), both.1.unwrap());
    assert_eq!(one.vm(), other.vm());
    assert_eq!(vms_named(&lab, "worker-1").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_restarts_under_a_clone_leaves_one_vm() {
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    let vcenter = lab.vcenter.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        vcenter.restart(Outage { lasts: Duration::from_secs(5), refuses: true });
    });
    let made = lab.client.clone_or_adopt(&template, &request, ours).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let vms = vms_named(&lab, "worker-1").await;
    assert!(vms.len() <= 1, "{vms:?}");
    match made {
        Ok(made) => assert_eq!(vms, [made.into_vm()]),
        // The caller repeats, and then it is there.
        Err(error) => {
            assert!(error.outcome_unknown() || error.remedy() == Remedy::Retry, "{error}");
            lab.client.clone_or_adopt(&template, &request, ours).await.unwrap();
            assert_eq!(vms_named(&lab, "worker-1").await.len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_could_not_be_powered_on_is_adopted_when_it_is_asked_for_again() {
    let lab = Lab::start().await;
    let template = lab.template().await;
    let request = roost_vim::CloneVm {
        power_on: true,
        memory_mb: Some(1 << 30),
        ..lab.clone_request("worker-1").await
    };
    let error = lab.client.clone_or_adopt(&template, &request, ours).await.unwrap_err();
    assert!(roost_vim::Faulted::is_capacity(&error), "{error:?}");
    let again = lab.client.clone_or_adopt(&template, &request, ours).await;
    if let Ok(Made::Before(vm)) = &again {
        assert_eq!(lab.power_state(vm).await, "poweredOff");
    }
    assert!(vms_named(&lab, "worker-1").await.len() <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_created_vm_whose_reply_was_lost_is_found_and_not_made_twice() {
    let lab = Lab::start().await;
    let (folder, pool) = (
        lab.finder.vm_folder("").await.unwrap().moref,
        lab.finder.resource_pool("DC0_C0").await.unwrap().moref,
    );
    let request = CreateVm {
        annotation: Some("request of node-1".into()),
        disks: vec![NewDisk::thin(1 << 30)],
        ..CreateVm::new(folder, "node-1", pool, "LocalDS_0")
    };
    let rule = lab.lose_answer_of("CreateVM_Task");
    let vm = lab.client.create_or_adopt(&request, ours).await.unwrap().into_vm();
    assert_eq!(lab.fired(rule), 1);
    assert_eq!(lab.client.create_or_adopt(&request, ours).await.unwrap(), Made::Before(vm.clone()));
    assert_eq!(vms_named(&lab, "node-1").await, std::slice::from_ref(&vm));
    assert_eq!(lab.client.power_on(&vm, None).await.unwrap(), PowerChange::Changed);
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_does_not_end_in_time_is_not_asked_for_twice() {
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    lab.rule(Rule::new("CloneVM_Task", Action::HangTask));
    let error = lab.client.clone_or_adopt(&template, &request, ours).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error:?}");
    assert_eq!(error.remedy(), Remedy::Wait);
    assert_eq!(lab.calls("CloneVM_Task"), 1);
}

/// It was asked for again every 30 s. The first request that was carried out made the VM; when that was renamed, the next one found the name free and made a
/// second one.
#[tokio::test(start_paused = true)]
async fn a_clone_that_is_not_answered_in_time_is_not_asked_for_twice() {
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    lab.rule(Rule::new("CloneVM_Task", Action::LateAnswer(Duration::from_mins(5))));
    let made = lab.client.clone_or_adopt(&template, &request, ours).await.unwrap();
    assert!(matches!(made, Made::Before(_)), "{made:?}");
    assert_eq!(lab.calls("CloneVM_Task"), 1);
    // One that is never carried out either.
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    lab.rule(Rule::new("CloneVM_Task", Action::Hang));
    let error = lab.client.clone_or_adopt(&template, &request, ours).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error:?}");
    assert_eq!(lab.calls("CloneVM_Task"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_whose_owner_may_not_be_seen_is_taken() {
    let lab = Lab::start().await;
    let (template, request) = (lab.template().await, lab.clone_request("worker-1").await);
    let vm = lab.client.clone_vm(&template, &request).await.unwrap();
    lab.vcenter.deny("System.Read", Some(vm.clone()));
    let before = tokio::time::Instant::now();
    let error = lab.client.clone_or_adopt(&template, &request, |_| true).await.unwrap_err();
    assert!(matches!(&error, VmError::NameTaken { existing, .. } if *existing == vm), "{error:?}");
    assert!(before.elapsed() < Duration::from_mins(2));
}
