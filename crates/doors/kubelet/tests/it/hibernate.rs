use kube::ResourceExt;
use roost_cocoon_sim::{EpochRegistry, Fault, RegistryEffect, RegistryFault};
use roost_kubelet::key;
use roost_kubelet::planted::{Bug, plant};

use crate::lab::{Lab, phase, secs};

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

/// What dashboards know: every transition of a pod is counted by what it was, and an event names the step that failed.
#[tokio::test(start_paused = true)]
async fn sleeps_wakes_and_what_comes_to_nothing_are_counted_apart() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    assert_eq!((node.count("create", "ok"), node.count("update", "noop")), (1, 0));
    lab.annotate("a", "example.org/note", Some("x")).await;
    tokio::time::sleep(secs(30)).await;
    assert_eq!(node.count("update", "noop"), 1, "something was asked and nothing was to do");
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.says("a", "hibernated").await;
    assert_eq!(node.count("update", "hibernated"), 1);

    lab.host.add_fault(Fault::of("snapshot import").fails("no space left on device"));
    lab.host.add_fault(Fault::of("vm clone").fails("no memory left"));
    lab.annotate("a", key::HIBERNATE, None).await;
    lab.ready("a").await;
    assert_eq!((node.count("update", "wake_failed"), node.count("update", "woken")), (2, 1));
    assert_eq!((node.count("create", "ok"), node.count("create", "failed")), (1, 0));
    for (reason, words) in
        [("WakePullFailed", "no space left on device"), ("WakeCloneFailed", "no memory left")]
    {
        let told = lab.events(reason).await;
        assert!(told[0].starts_with("update: wake vk-default-a: "), "{told:?}");
        assert!(told[0].contains(words), "{told:?}");
    }

    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.until("it sleeps", async |lab: &Lab| lab.vm_names().is_empty()).await;
    tokio::time::sleep(secs(10)).await;
    lab.delete("a").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert_eq!((node.count("delete", "no_vm"), node.count("delete", "ok")), (1, 0));
    lab.run_pod("b").await;
    lab.ready("b").await;
    lab.delete("b").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("b").await.is_none()).await;
    assert_eq!((node.count("delete", "no_vm"), node.count("delete", "ok")), (1, 1));
    assert_eq!(node.count("update", "noop"), 1);
}

/// The operator says it just before it deletes the pod.
#[tokio::test(start_paused = true)]
async fn a_snapshot_is_kept_if_that_is_asked_for_before_the_pod_goes() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    for name in ["a", "b"] {
        let annotations =
            [(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")];
        lab.apply(name, &annotations).await;
        lab.ready(name).await;
    }
    lab.annotate("a", key::KEEP_SNAPSHOT, Some("true")).await;
    // Nothing is asked for any more.
    lab.annotate("b", key::SNAPSHOT_POLICY, Some("never")).await;
    for name in ["a", "b"] {
        lab.delete(name).await;
        lab.until("the pod is gone", async |lab: &Lab| lab.pod(name).await.is_none()).await;
    }
    let kept: Vec<String> =
        lab.host.with_host(|host| host.snapshots().map(|it| it.name.clone()).collect());
    assert_eq!(kept, ["vk-default-a"]);
    assert_eq!(registry.tags(), ["vk-default-a:latest"]);
}

/// It is deleted while it is being saved for a sleep that will never end.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_on_its_way_to_sleep_is_saved_as_its_policy_says() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.apply("a", &[(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")])
        .await;
    lab.ready("a").await;
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.until("it is being pushed", async |lab: &Lab| {
        lab.host.journal().iter().any(|call| call.starts_with("snapshot export"))
    })
    .await;
    lab.delete("a").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert!(registry.tags().contains(&"vk-default-a:latest".to_owned()), "{:?}", registry.tags());
    assert!(lab.vm_names().is_empty());
}

/// The command that removes the VM is killed after it has done its work. The tag is all that is left of the VM then, and it was taken back.
#[tokio::test(start_paused = true)]
async fn a_removal_whose_answer_is_lost_keeps_what_was_saved() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.with_host(|host| host.remember("vk-default-a", "count=7")).unwrap();
    lab.host.add_fault(Fault::of("vm rm").fails("signal: killed").after_the_fact());
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    hibernated(&lab, "a").await;
    assert_eq!(registry.tags(), ["vk-default-a:hibernate"]);
    lab.annotate("a", key::HIBERNATE, None).await;
    lab.ready("a").await;
    lab.host.with_host(|host| assert_eq!(host.memory("vk-default-a"), Some("count=7")));
}

/// The operator takes a pod with the id of a VM for awake and deletes its tag, so a VM that is wanted awake again must not go.
#[tokio::test(start_paused = true)]
async fn a_vm_that_is_wanted_awake_while_it_is_saved_stays_and_its_tag_goes() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    let id = lab.pod("a").await.unwrap().annotations()[key::VM_ID].clone();
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.until("it is being pushed", async |lab: &Lab| {
        lab.host.journal().iter().any(|call| call.starts_with("snapshot export"))
    })
    .await;
    lab.annotate("a", key::HIBERNATE, None).await;
    lab.until("the tag is gone again", async |lab: &Lab| {
        let pod = lab.pod("a").await.unwrap();
        registry.tags().is_empty()
            && pod.annotations().get(key::LIFECYCLE_STATE).is_some_and(|state| state == "ready")
    })
    .await;
    lab.ready("a").await;
    assert_eq!(lab.pod("a").await.unwrap().annotations()[key::VM_ID], id, "the same VM");
    let calls = lab.host.journal();
    assert!(!calls.iter().any(|call| call.starts_with("vm rm")), "{calls:?}");
}

/// The VM crashed just before it was to hibernate, and a VM that is off cannot be saved.
#[tokio::test(start_paused = true)]
async fn a_vm_that_is_off_is_started_before_it_is_saved() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.crash("vk-default-a", false);
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    // A failure is told until the operator asks anew, so the pod says nothing better.
    lab.until("it sleeps at last", async |lab: &Lab| lab.vm_names().is_empty()).await;
    assert_eq!(registry.tags(), ["vk-default-a:hibernate"]);
}

#[tokio::test(start_paused = true)]
async fn a_windows_guest_loses_its_cards_to_sleep_and_has_them_back_if_it_stays_awake() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.host.with_host(|host| host.put_image("win", "cloudimg", jiff::Timestamp::UNIX_EPOCH));
    lab.apply("a", &[(key::MODE, "run"), (key::IMAGE, "win"), (key::OS, "windows")]).await;
    lab.ready("a").await;
    lab.host.add_fault(Fault::of("snapshot save").fails("no space left on device"));
    let cards = |lab: &Lab| {
        lab.host.with_host(|host| host.inspect("vk-default-a").map(|vm| vm.network_configs.len()))
    };
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.until("saving has failed", async |lab: &Lab| {
        let pod = lab.pod("a").await.unwrap();
        pod.annotations().get(key::LIFECYCLE_MESSAGE).is_some_and(|it| it.contains("no space"))
    })
    .await;
    assert_eq!(cards(&lab).unwrap(), 1, "it works on while it waits for the next attempt");
    // A failure is told until the operator asks anew, so the pod says nothing better.
    lab.until("it sleeps at last", async |lab: &Lab| lab.vm_names().is_empty()).await;
    let calls = lab.host.journal();
    let at = |verb: &str| calls.iter().rposition(|call| call.starts_with(verb)).unwrap();
    assert!(at("vm net") < at("snapshot save"), "{calls:?}");
    lab.annotate("a", key::HIBERNATE, None).await;
    lab.ready("a").await;
    assert_eq!(cards(&lab).unwrap(), 1);
}

/// The host is small: the base of the second pod does not fit beside that of the first, once nobody clones from it.
#[tokio::test(start_paused = true)]
async fn pulled_snapshots_go_when_they_take_too_much_and_what_others_saved_stays() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let node = lab.start_with(&[("VK_SNAPSHOT_CACHE", "1")]).await.unwrap();
    lab.apply("a", &[(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")])
        .await;
    lab.ready("a").await;
    lab.host.with_host(|host| host.save_snapshot("mine", "vk-default-a", lab.now())).unwrap();
    lab.delete("a").await;
    lab.until("a is saved", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    lab.apply("b", &[(key::IMAGE, "vk-default-a:latest")]).await;
    lab.ready("b").await;
    let kept = |lab: &Lab| -> Vec<String> {
        lab.host.with_host(|host| host.snapshots().map(|it| it.name.clone()).collect())
    };
    lab.until("the base is gone", async |lab: &Lab| kept(lab) == ["mine"]).await;
    lab.ready("b").await;
    node.stop().await;
}

/// The same accidents with the mistakes that they are about.
#[tokio::test(start_paused = true)]
async fn what_is_planted_is_seen_in_a_hibernation() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    for name in ["a", "b"] {
        lab.run_pod(name).await;
        lab.ready(name).await;
    }
    plant(Some(Bug::TakesTagsBackBlindly));
    lab.host.add_fault(Fault::of("vm rm").fails("signal: killed").after_the_fact());
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.until("the VM is gone and its tag too", async |lab: &Lab| {
        lab.vm_names() == ["vk-default-b"] && registry.tags().is_empty()
    })
    .await;
    plant(Some(Bug::RemovesTheAwake));
    let before = lab.host.journal().len();
    lab.annotate("b", key::HIBERNATE, Some("true")).await;
    lab.until("it is being pushed", async |lab: &Lab| {
        lab.host.journal()[before..].iter().any(|call| call.starts_with("snapshot export"))
    })
    .await;
    lab.annotate("b", key::HIBERNATE, None).await;
    lab.until("it is removed although it is wanted", async |lab: &Lab| {
        lab.host.journal()[before..].iter().any(|call| call.starts_with("vm rm"))
    })
    .await;
    plant(Some(Bug::NeverAdopts));
    lab.host.add_fault(Fault::of("vm run").fails("signal: killed").after_the_fact());
    lab.run_pod("c").await;
    lab.until("its own VM is in its way", async |lab: &Lab| {
        let status = lab.pod("c").await.unwrap().status;
        status.and_then(|status| status.message).is_some_and(|it| it.contains("exists already"))
    })
    .await;
    plant(None);
}
