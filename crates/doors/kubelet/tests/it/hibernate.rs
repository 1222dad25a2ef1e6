use kube::ResourceExt;
use roost_cocoon_sim::{EpochRegistry, Fault, RegistryEffect, RegistryFault};
use roost_kubelet::key;

use crate::lab::{Lab, phase};

async fn hibernated(lab: &Lab, name: &str) {
    lab.until("it is hibernated", async |lab: &Lab| {
        let pod = lab.pod(name).await.unwrap();
        pod.annotations().get(key::LIFECYCLE_STATE).is_some_and(|state| state == "hibernated")
    })
    .await;
}

#[tokio::test]
async fn a_vm_that_hibernates_wakes_with_its_memory() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_registry(&registry).await;
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.with_host(|host| host.remember("vk-default-a", "count=7")).unwrap();
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    hibernated(&lab, "a").await;
    assert!(lab.vm_names().is_empty());
    assert_eq!(registry.tags(), ["vk-default-a:hibernate"]);
    let pod = lab.pod("a").await.unwrap();
    assert_eq!((phase(&pod), pod.annotations().get(key::VM_ID)), ("Pending", None));
    assert_eq!(pod.status.unwrap().container_statuses.unwrap_or_default(), []);

    // The wake is asked for while nobody listens: the tag alone tells of what was saved.
    node.kill().await;
    lab.annotate("a", key::HIBERNATE, None).await;
    let _node = lab.start().await.unwrap();
    lab.ready("a").await;
    lab.host.with_host(|host| assert_eq!(host.memory("vk-default-a"), Some("count=7")));
}

#[tokio::test]
async fn a_push_that_fails_keeps_the_vm_and_is_tried_again() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_registry(&registry).await;
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    let refused = RegistryFault {
        method: "PUT".into(),
        path: "/manifests/".into(),
        times: 1,
        effect: RegistryEffect::Status(403),
    };
    registry.add_fault(refused);
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.until("the failure is told", async |lab: &Lab| {
        let pod = lab.pod("a").await.unwrap();
        pod.annotations()
            .get(key::LIFECYCLE_MESSAGE)
            .is_some_and(|message| message.contains("push snapshot"))
    })
    .await;
    lab.until("it is hibernated at last", async |lab: &Lab| lab.vm_names().is_empty()).await;
    assert_eq!(registry.tags(), ["vk-default-a:hibernate"]);
}

#[tokio::test]
async fn what_cannot_be_saved_is_not_deleted() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_registry(&registry).await;
    let _node = lab.start().await.unwrap();
    lab.apply("a", &[(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")])
        .await;
    lab.ready("a").await;
    lab.host.add_fault(Fault::of("snapshot save").fails("no space left on device").times(2));
    lab.delete("a").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert!(lab.vm_names().is_empty());
    assert_eq!(registry.tags(), ["vk-default-a:latest"], "saved before it went");
    let saves = lab.host.journal().iter().filter(|call| call.starts_with("snapshot save")).count();
    assert_eq!(saves, 3);
}
