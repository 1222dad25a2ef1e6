//! The door on govmomi's `vcsim`, a vCenter that we did not write, as far as that one goes: it has no guests.

use std::sync::Arc;

use roost_clock::SystemClock;
use roost_fleet::{Fleet, FleetRules, FleetSettings};
use roost_oracle::{Vcsim, VcsimOptions};
use roost_vim::{Credentials, HttpTransport, Settings, TlsTrust};
use roost_vm_operator::OwnVms;
use roost_vm_operator::api::VirtualMachineImage;
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::vm::{ImageReference, PowerState};
use serde_json::json;

use crate::lab::{Lab, condition, vm};

const TEMPLATE: &str = "DC0_C0_RP0_VM0";

async fn open(vcsim: &Vcsim) -> Fleet {
    let login = Credentials::new(vcsim.username(), vcsim.password());
    let settings = FleetSettings {
        vcenter: Settings::new(&vcsim.endpoint(), login).unwrap(),
        transport: Arc::new(HttpTransport::new(&TlsTrust::Insecure).unwrap()),
        clock: Arc::new(SystemClock),
        doors: vec![Arc::new(OwnVms)],
        phases: None,
        rules: FleetRules::default(),
    };
    Fleet::open(settings).await.unwrap()
}

/// With backup on, as it is without a word on it. Upstream's controller ends the pass after its backup and waits for a signal that its own filter
/// drops, so that no VM ever goes on there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_vm_with_backup_on_reaches_powered_on() {
    let started = tokio::task::spawn_blocking(|| Vcsim::start(VcsimOptions::default())).await;
    let Some(vcsim) = started.unwrap() else { return };
    let mut lab = Lab::idle().await;
    lab.fleet = open(&vcsim).await;
    let client = lab.fleet.client().clone();
    let finder = client.finder("DC0").await.unwrap();
    let template = finder.vm(TEMPLATE).await.unwrap().moref;
    client.power_off(&template).await.unwrap();
    client.mark_as_template(&template).await.unwrap();
    let datacenter = lab.fleet.observer().find_datacenter("DC0").await.unwrap();
    lab.fleet.cover(&datacenter.moref);
    lab.image("vmi-00000000000000001", "VM", &template.id).await;
    assert!(lab.settings.provider.features.backup);
    lab.start();
    let mut wanted = vm("web-0");
    wanted.spec.image = Some(ImageReference {
        kind: VirtualMachineImage::KIND.into(),
        name: "vmi-00000000000000001".into(),
    });
    lab.apply(&wanted).await;
    let is = |state| {
        move |vm: &roost_vm_operator::api::VirtualMachine| vm.current_power_state() == Some(state)
    };
    let on = lab.until("powered on", "web-0", is(PowerState::PoweredOn)).await;
    assert_eq!(condition(&on, ConditionType::Created), Some(("True", "True")));
    assert_eq!(condition(&on, ConditionType::BackupUpToDate), Some(("True", "True")));
    let made = finder.vm("web-0").await.unwrap();
    assert_eq!(on.status.unwrap().unique_id, *made.moref.id);

    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard" } }))
        .await;
    lab.until("powered off", "web-0", is(PowerState::PoweredOff)).await;
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    assert!(finder.vm("web-0").await.is_err(), "its VM went with it");
    lab.stop().await;
}
