//! The copy of an object that its VM carries.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use roost_vcenter_sim::{Action, Rule};
use roost_vim::Reconfigure;
use roost_vim::wire::types::Hidden;
use roost_vm_operator::api::VirtualMachine;
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::names::{annotation, extra_config};
use roost_vm_operator::api::vm::PowerState;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, secs, vm};

fn carried(lab: &Lab, key: &str) -> Option<String> {
    let machine = lab.machine("web-0").unwrap();
    machine.extra_config.iter().find(|(own, _)| own == key).map(|(_, value)| value.clone())
}

fn off() -> VirtualMachine {
    let mut off = vm("web-0");
    off.spec.power_state = Some(PowerState::PoweredOff);
    off
}

fn backed_up(vm: &VirtualMachine) -> bool {
    condition(vm, ConditionType::BackupUpToDate) == Some(("True", "True"))
}

#[tokio::test(start_paused = true)]
async fn secrets_are_in_the_copy_only_where_it_is_asked_for() {
    let mut lab = Lab::new().await;
    let mut secret = Secret::default();
    secret.metadata.name = Some("boot".into());
    secret.string_data = Some([("user-data".to_owned(), "#cloud-config".to_owned())].into());
    let secrets = lab.api::<Secret>();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let mut wanted = off();
    let bootstrap =
        json!({ "cloudInit": { "rawCloudConfig": { "name": "boot", "key": "user-data" } } });
    wanted.spec.bootstrap = Some(serde_json::from_value(bootstrap).unwrap());
    lab.apply(&wanted).await;
    lab.until("backed up", "web-0", backed_up).await;
    assert!(carried(&lab, extra_config::BACKUP_VM_YAML).is_some());
    assert_eq!(carried(&lab, extra_config::BACKUP_ADDITIONAL_YAML), None);

    lab.stop().await;
    lab.settings.provider.features.backup_secrets = true;
    lab.renew().await;
    lab.start();
    sleep(minutes(1)).await;
    let first = carried(&lab, extra_config::BACKUP_ADDITIONAL_YAML).unwrap();
    let change = json!({ "stringData": { "user-data": "#cloud-config\nssh_pwauth: false\n" } });
    secrets.patch("boot", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    sleep(minutes(1)).await;
    assert_ne!(carried(&lab, extra_config::BACKUP_ADDITIONAL_YAML), Some(first), "kept current");
    let calls = lab.site.vcenter.counters().calls_of("ReconfigVM_Task");
    sleep(minutes(60)).await;
    assert_eq!(lab.site.vcenter.counters().calls_of("ReconfigVM_Task"), calls);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_restored_keeps_the_copy_that_came_with_it() {
    let lab = Lab::new().await;
    lab.apply(&off()).await;
    lab.until("backed up", "web-0", backed_up).await;
    let older = Reconfigure {
        extra_config: vec![(extra_config::BACKUP_VERSION.to_owned(), Hidden("1000".to_owned()))],
        ..Reconfigure::default()
    };
    let machine = lab.machine("web-0").unwrap().moref;
    lab.fleet.client().reconfigure(&machine, &older).await.unwrap();
    lab.annotate("web-0", annotation::BACKUP_VERSION, Some("2000")).await;
    let paused = |vm: &VirtualMachine| {
        condition(vm, ConditionType::BackupUpToDate)
            == Some(("False", "VirtualMachineBackupPaused"))
    };
    lab.until("paused", "web-0", paused).await;
    let copy = carried(&lab, extra_config::BACKUP_VM_YAML);
    lab.patch("web-0", json!({ "metadata": { "labels": { "app": "web" } } })).await;
    sleep(minutes(1)).await;
    assert_eq!(carried(&lab, extra_config::BACKUP_VM_YAML), copy);
    lab.annotate("web-0", annotation::BACKUP_VERSION, None).await;
    lab.until("backed up again", "web-0", backed_up).await;
    assert_ne!(carried(&lab, extra_config::BACKUP_VM_YAML), copy);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_vcenter_refuses_is_told() {
    let lab = Lab::new().await;
    lab.apply(&off()).await;
    lab.until("backed up", "web-0", backed_up).await;
    sleep(secs(10)).await;
    let no = Action::fail_task("GenericVmConfigFault", "no");
    lab.site.vcenter.faults().add(Rule::new("ReconfigVM_Task", no));
    lab.patch("web-0", json!({ "metadata": { "labels": { "app": "web" } } })).await;
    let failed = |vm: &VirtualMachine| {
        condition(vm, ConditionType::BackupUpToDate)
            == Some(("False", "VirtualMachineBackupFailed"))
    };
    lab.until("without a current copy", "web-0", failed).await;
    lab.site.vcenter.faults().clear();
    lab.until("backed up again", "web-0", backed_up).await;
}

#[tokio::test(start_paused = true)]
async fn disks_and_the_version_are_in_the_copy_only_where_it_is_asked_for() {
    let mut lab = Lab::new().await;
    lab.apply(&off()).await;
    lab.until("backed up", "web-0", backed_up).await;
    let keys = [extra_config::BACKUP_CLASSIC_DISKS, extra_config::BACKUP_VERSION];
    assert_eq!(keys.map(|key| carried(&lab, key)), [None, None]);
    lab.stop().await;
    lab.settings.provider.features.backup_disks = true;
    lab.renew().await;
    lab.start();
    sleep(minutes(1)).await;
    let version = carried(&lab, extra_config::BACKUP_VERSION).unwrap();
    assert!(carried(&lab, extra_config::BACKUP_CLASSIC_DISKS).is_some());
    let noted = |vm: &VirtualMachine| vm.annotations().get(annotation::BACKUP_VERSION).cloned();
    assert_eq!(noted(&lab.get("web-0").await).as_ref(), Some(&version));
    let (calls, writes) = (lab.calls(), lab.writes());
    sleep(minutes(60)).await;
    assert_eq!(lab.writes(), writes, "nothing is new");
    assert!(lab.calls() - calls <= 20, "keep-alives only");
    // A change has a new version, in the VM first.
    lab.patch("web-0", json!({ "metadata": { "labels": { "app": "web" } } })).await;
    sleep(minutes(1)).await;
    let newer = carried(&lab, extra_config::BACKUP_VERSION).unwrap();
    assert!(newer.parse::<i64>().unwrap() > version.parse::<i64>().unwrap());
    let vm = lab.get("web-0").await;
    assert_eq!(noted(&vm), Some(newer));
    assert!(backed_up(&vm));
}
