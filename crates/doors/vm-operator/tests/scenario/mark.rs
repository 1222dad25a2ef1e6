//! Under whose name VMs are managed.

use roost_vcenter_sim::{Action, Power, Rule};
use roost_vim::wire::methods::ReconfigVmTask;
use roost_vim::wire::types::{ManagedByInfo, VirtualMachineConfigSpec};
use roost_vm_operator::EXTENSION_KEY;
use roost_vm_operator::api::names::SUPERVISOR_EXTENSION;
use roost_vm_operator::api::vm::PowerState;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, minutes, secs, vm};

#[tokio::test(start_paused = true)]
async fn the_extension_is_registered_once_and_what_refuses_it_holds_up_no_vm() {
    let mut lab = Lab::idle().await;
    let refused = Action::fault("NoPermission", "Extension.Register");
    lab.site.vcenter.faults().add(Rule::new("RegisterExtension", refused).once());
    lab.start();
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    sleep(minutes(5)).await;
    let calls = |lab: &Lab| lab.site.vcenter.counters().calls_of("RegisterExtension");
    assert_eq!(calls(&lab), 2, "refused, then taken");
    lab.stop().await;
    lab.renew().await;
    lab.start();
    sleep(minutes(5)).await;
    assert_eq!(calls(&lab), 2, "the next process finds it");
}

async fn manage(lab: &Lab, name: &str, extension_key: &str) {
    let spec = VirtualMachineConfigSpec {
        managed_by: Some(ManagedByInfo {
            extension_key: extension_key.to_owned(),
            kind: "VirtualMachine".to_owned(),
        }),
        ..VirtualMachineConfigSpec::default()
    };
    let call = ReconfigVmTask { this: lab.machine(name).unwrap().moref, spec };
    lab.fleet.client().submit(&call).await.unwrap().wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_vm_of_the_supervisor_is_neither_changed_nor_deleted() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    sleep(minutes(5)).await;
    manage(&lab, "web-0", SUPERVISOR_EXTENSION).await;
    let counters = lab.site.vcenter.counters();
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    sleep(minutes(10)).await;
    lab.delete("web-0").await;
    sleep(minutes(10)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::On);
    assert!(!lab.is_gone("web-0").await);
    let now = lab.site.vcenter.counters();
    for call in ["ReconfigVM_Task", "PowerOffVM_Task", "ShutdownGuest", "Destroy_Task"] {
        assert_eq!(now.calls_of(call), counters.calls_of(call), "{call}");
    }
    let said = lab.events().await;
    assert!(said.iter().any(|(_, why)| why.contains(SUPERVISOR_EXTENSION)), "{said:#?}");
    // Given to us, it goes on where it was.
    manage(&lab, "web-0", EXTENSION_KEY).await;
    lab.until_gone("web-0").await;
    assert!(lab.machine("web-0").is_none());
}

/// As after a migration from the upstream controller, which marks all VMs so.
#[tokio::test(start_paused = true)]
async fn under_the_supervisors_name_its_vms_are_ours() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.extension_key = SUPERVISOR_EXTENSION.to_owned();
    lab.start();
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    lab.until("off", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOff)).await;
    sleep(secs(60)).await;
    assert_eq!(lab.site.vcenter.counters().calls_of("RegisterExtension"), 0, "it is not ours");
}
