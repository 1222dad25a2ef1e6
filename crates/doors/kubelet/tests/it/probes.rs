use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use roost_kubelet::key;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::lab::{Lab, is_ready, secs};

/// A pod whose container asks for these probes, and more.
async fn apply(lab: &Lab, container: Value) {
    let mut whole = json!({"name": "agent", "image": "pause"});
    whole.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "a", "annotations": {
            key::VM_NAME: "vk-default-a", key::MANAGED: "true", key::MODE: "run", key::IMAGE: "img",
            key::SNAPSHOT_POLICY: "never",
        }},
        "spec": {"nodeName": "node-1", "containers": [whole]},
    }))
    .unwrap();
    lab.pods().create(&PostParams::default(), &pod).await.unwrap();
}

fn restarts(pod: &Pod) -> i32 {
    pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].restart_count
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_ready_when_its_own_probe_says_so() {
    let lab = Lab::new();
    lab.host.programs_exit(Some(1));
    let _node = lab.start().await.unwrap();
    apply(&lab, json!({"readinessProbe": {"exec": {"command": ["check"]}, "periodSeconds": 5}}))
        .await;
    sleep(secs(120)).await;
    let pod = lab.pod("a").await.unwrap();
    assert!(!is_ready(&pod), "the VM runs and has an address, and the probe fails");
    let status = pod.status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let ready = status.conditions.unwrap().into_iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!(ready.message.as_deref(), Some("the command ended with 1"));
    lab.host.programs_exit(Some(0));
    lab.ready("a").await;
    lab.host.programs_exit(Some(1));
    sleep(secs(8)).await;
    assert!(is_ready(&lab.pod("a").await.unwrap()), "one failure is a hiccup");
    sleep(secs(12)).await;
    assert!(!is_ready(&lab.pod("a").await.unwrap()));
    assert_eq!(restarts(&lab.pod("a").await.unwrap()), 0, "readiness restarts nothing");
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_liveness_probe_fails_is_started_anew_and_not_given_up() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    apply(&lab, json!({"livenessProbe": {"exec": {"command": ["check"]}, "periodSeconds": 2, "failureThreshold": 2}})).await;
    lab.ready("a").await;
    let before = lab.vm_names();
    lab.host.programs_exit(Some(3));
    lab.until("it is started anew twice", async |lab: &Lab| {
        restarts(&lab.pod("a").await.unwrap()) == 2
    })
    .await;
    lab.host.programs_exit(Some(0));
    lab.ready("a").await;
    sleep(secs(300)).await;
    assert_eq!(restarts(&lab.pod("a").await.unwrap()), 2);
    assert_eq!(lab.vm_names(), before, "the same VM, with its disk");
    let told = lab.events("Unhealthy").await;
    assert!(told[0].contains("liveness probe failed: the command ended with 3"), "{told:?}");
    let stops = lab.host.journal().iter().filter(|verb| verb.starts_with("vm stop")).count();
    assert_eq!(stops, 2);
}

#[tokio::test(start_paused = true)]
async fn liveness_is_not_asked_before_the_guest_has_started() {
    let lab = Lab::new();
    lab.host.programs_exit(Some(1));
    let _node = lab.start().await.unwrap();
    let probe = |failures: u32| json!({"exec": {"command": ["check"]}, "periodSeconds": 1, "failureThreshold": failures});
    apply(&lab, json!({"startupProbe": probe(300), "livenessProbe": probe(1)})).await;
    sleep(secs(200)).await;
    assert_eq!(restarts(&lab.pod("a").await.unwrap()), 0, "it takes its time to start");
    assert!(!is_ready(&lab.pod("a").await.unwrap()));
    lab.host.programs_exit(Some(0));
    lab.ready("a").await;
    lab.host.programs_exit(Some(1));
    lab.until("now liveness counts", async |lab: &Lab| restarts(&lab.pod("a").await.unwrap()) == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn fields_that_a_vm_cannot_follow_are_named_in_an_event() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    apply(&lab, json!({"command": ["nginx"], "env": [{"name": "A", "value": "b"}]})).await;
    lab.ready("a").await;
    let told = lab.events("FieldsIgnored").await;
    let wanted = "a microVM does not follow spec.containers[0].command, spec.containers[0].env";
    assert_eq!(told, [wanted]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_for_other_processors_is_refused() {
    let lab = Lab::new();
    let _node = lab.start_with(&[("VK_SNAPSHOT_CPU_CLASS", "zen4")]).await.unwrap();
    apply(&lab, json!({})).await;
    lab.ready("a").await;
    let other: Pod = serde_json::from_value(json!({
        "metadata": {"name": "b", "annotations": {
            key::VM_NAME: "vk-default-b", key::MANAGED: "true", key::MODE: "run", key::IMAGE: "img",
        }},
        "spec": {
            "nodeName": "node-1", "nodeSelector": {key::CPU_CLASS: "icelake"},
            "containers": [{"name": "agent", "image": "pause"}],
        },
    }))
    .unwrap();
    lab.pods().create(&PostParams::default(), &other).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(lab.vm_names(), ["vk-default-a"]);
    let status = lab.pod("b").await.unwrap().status.unwrap();
    assert!(
        status.message.unwrap().contains("wants snapshot CPU class icelake, this node has zen4")
    );
}

/// The environment does not reach the guest, so what it is made from may be missing.
#[tokio::test(start_paused = true)]
async fn a_config_map_that_is_missing_holds_no_vm_back() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    let from = json!({"configMapKeyRef": {"name": "nowhere", "key": "x"}});
    apply(&lab, json!({"env": [{"name": "X", "valueFrom": from}]})).await;
    lab.ready("a").await;
}

/// Ready went to False and back at every restart of the kubelet, after as long as the probe's delay.
#[tokio::test(start_paused = true)]
async fn a_guest_that_was_ready_stays_so_when_the_kubelet_is_started_again() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    let probe = json!({
        "exec": {"command": ["check"]}, "initialDelaySeconds": 60, "periodSeconds": 5, "successThreshold": 1,
    });
    let startup = json!({"exec": {"command": ["check"]}, "initialDelaySeconds": 10});
    apply(&lab, json!({"readinessProbe": probe, "livenessProbe": probe, "startupProbe": startup}))
        .await;
    lab.ready("a").await;
    let since = async |lab: &Lab| {
        let status = lab.pod("a").await.unwrap().status.unwrap();
        let ready = status.conditions.unwrap().into_iter().find(|it| it.type_ == "Ready").unwrap();
        (ready.status, ready.last_transition_time)
    };
    sleep(secs(60)).await;
    let before = since(&lab).await;
    node.kill().await;
    sleep(secs(20)).await;
    let _node = lab.start().await.unwrap();
    let looks = lab.host.journal().len();
    sleep(secs(20)).await;
    let asked = lab.host.journal()[looks..].iter().any(|call| call.starts_with("vm exec"));
    assert!(asked, "the delay counts from the guest's start, not from ours");
    sleep(secs(180)).await;
    assert_eq!(since(&lab).await, before);
    assert_eq!(restarts(&lab.pod("a").await.unwrap()), 0);
}
