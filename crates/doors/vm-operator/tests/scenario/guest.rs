//! What a guest is told and what it tells.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use roost_vim::Reconfigure;
use roost_vim::wire::types::Hidden;
use roost_vm_operator::api::VirtualMachine;
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::names::{annotation, extra_config, label};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, vm};

async fn set(lab: &Lab, key: &str, value: &str) {
    let change = Reconfigure {
        extra_config: vec![(key.to_owned(), Hidden(value.to_owned()))],
        ..Reconfigure::default()
    };
    let machine = lab.machine("web-0").unwrap().moref;
    lab.fleet.client().reconfigure(&machine, &change).await.unwrap();
}

/// W19: nobody touches the object.
#[tokio::test(start_paused = true)]
async fn a_secret_that_is_edited_is_what_the_guest_reads_next() {
    let lab = Lab::new().await;
    let mut secret = Secret::default();
    secret.metadata.name = Some("boot".into());
    secret.string_data = Some([("user-data".to_owned(), "#cloud-config\n".to_owned())].into());
    let secrets = lab.api::<Secret>();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let mut told = vm("web-0");
    let raw = json!({ "cloudInit": { "rawCloudConfig": { "name": "boot", "key": "user-data" } } });
    told.spec.bootstrap = Some(serde_json::from_value(raw).unwrap());
    lab.apply(&told).await;
    lab.until_on("web-0").await;
    sleep(minutes(1)).await;
    let userdata = || {
        let all = lab.machine("web-0").unwrap().extra_config;
        all.into_iter().find(|(key, _)| key == extra_config::USERDATA).unwrap().1
    };
    let first = userdata();
    let change = json!({ "stringData": { "user-data": "#cloud-config\nssh_pwauth: false\n" } });
    secrets.patch("boot", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    sleep(minutes(1)).await;
    assert_ne!(userdata(), first);
    let (calls, writes) = (lab.calls(), lab.writes());
    sleep(minutes(30)).await;
    assert_eq!(lab.writes(), writes);
    assert!(lab.calls() - calls <= 10, "keep-alives only");
}

#[tokio::test(start_paused = true)]
async fn the_label_says_who_has_paused_a_vm() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    let by = |who: Option<&'static str>| {
        move |vm: &VirtualMachine| vm.labels().get(label::PAUSED).map(String::as_str) == who
    };
    lab.annotate("web-0", annotation::PAUSED, Some("")).await;
    let paused = lab.until("paused", "web-0", by(Some("devops"))).await;
    let why = condition(&paused, ConditionType::ReconcileReady);
    assert_eq!(why, Some(("False", "VirtualMachineReconcilePaused")));
    set(&lab, extra_config::PAUSE, "true").await;
    lab.until("paused by both", "web-0", by(Some("both"))).await;
    lab.annotate("web-0", annotation::PAUSED, None).await;
    lab.until("paused by an administrator", "web-0", by(Some("admin"))).await;
    set(&lab, extra_config::PAUSE, "").await;
    let free = lab.until("free", "web-0", by(None)).await;
    assert_eq!(condition(&free, ConditionType::ReconcileReady), Some(("True", "True")));
}

#[tokio::test(start_paused = true)]
async fn a_probe_turns_with_what_the_guest_says_and_each_turn_is_one_event() {
    let lab = Lab::new().await;
    let mut probed = vm("web-0");
    let probe = json!({ "guestInfo": [{ "key": "ready", "value": "^yes$" }] });
    probed.spec.readiness_probe = Some(serde_json::from_value(probe).unwrap());
    lab.apply(&probed).await;
    lab.until_on("web-0").await;
    let is = |want: (&'static str, &'static str)| {
        move |vm: &VirtualMachine| condition(vm, ConditionType::Ready) == Some(want)
    };
    lab.until("not ready", "web-0", is(("False", "NotReady"))).await;
    set(&lab, "guestinfo.ready", "yes").await;
    lab.until("ready", "web-0", is(("True", "True"))).await;
    let sleep_now = json!({ "spec": { "powerState": "Suspended", "suspendMode": "Hard" } });
    lab.patch("web-0", sleep_now).await;
    lab.until("asleep", "web-0", is(("False", "NotReady"))).await;
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOn" } })).await;
    lab.until("awake", "web-0", is(("True", "True"))).await;
    sleep(minutes(30)).await;
    let events = lab.events().await;
    let count = |reason: &str| events.iter().filter(|(own, _)| own == reason).count();
    assert!((1..=2).contains(&count("Ready")), "a series counts: {events:#?}");
    assert!((1..=2).contains(&count("NotReady")), "{events:#?}");
}
