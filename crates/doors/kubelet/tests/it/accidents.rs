use kube::ResourceExt;
use roost_cocoon_sim::{EpochRegistry, Fault};
use roost_door::Core;
use roost_kube_sim::{Action, Rule, When};
use roost_kubelet::key;
use roost_views::DecisionQuery;
use tokio::time::sleep;

use crate::lab::{Lab, phase, secs};

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_dies_finds_its_vms_again() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    let before = lab.pod("a").await.unwrap();
    node.kill().await;
    let _node = lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await.unwrap();
    sleep(secs(120)).await;
    let after = lab.pod("a").await.unwrap();
    assert_eq!(after.annotations().get(key::VM_ID), before.annotations().get(key::VM_ID));
    assert_eq!(after.status.unwrap().start_time, before.status.unwrap().start_time);
    assert_eq!(lab.vm_names().len(), 1);
    lab.ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_moment_of_a_start_leaves_one_vm() {
    for millis in (0..26_000).step_by(1300) {
        let lab = Lab::new();
        let node = lab.start().await.unwrap();
        lab.run_pod("a").await;
        sleep(std::time::Duration::from_millis(millis)).await;
        node.kill().await;
        let _node = lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await.unwrap();
        lab.ready("a").await;
        assert_eq!(lab.vm_names(), ["vk-default-a"], "killed after {millis} ms");
    }
}

/// Each moment once with commands that die with their caller, and once with commands that finish without it.
fn moments(until_ms: u64, step_ms: usize) -> impl Iterator<Item = (std::time::Duration, bool)> {
    let all = (0..until_ms).step_by(step_ms).map(std::time::Duration::from_millis);
    all.flat_map(|at| [(at, false), (at, true)])
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_moment_of_a_hibernation_ends_in_one_that_is_told() {
    for (at, outlive) in moments(13_500, 900) {
        let registry = EpochRegistry::default();
        let lab = Lab::with_epoch(&registry);
        lab.host.commands_outlive_callers(outlive);
        let node = lab.start().await.unwrap();
        lab.run_pod("a").await;
        lab.ready("a").await;
        lab.annotate("a", key::HIBERNATE, Some("true")).await;
        sleep(at).await;
        node.kill().await;
        let _node = lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await.unwrap();
        lab.says("a", "hibernated").await;
        assert!(lab.vm_names().is_empty(), "killed after {at:?}");
        assert_eq!(registry.tags(), ["vk-default-a:hibernate"], "killed after {at:?}");
    }
}

/// As before, but while nobody is there the sleep is called off.
#[tokio::test(start_paused = true)]
async fn a_hibernation_that_is_called_off_while_nobody_listens_ends_awake_and_says_so() {
    for (at, outlive) in moments(13_500, 900) {
        let registry = EpochRegistry::default();
        let lab = Lab::with_epoch(&registry);
        lab.host.commands_outlive_callers(outlive);
        let node = lab.start().await.unwrap();
        lab.run_pod("a").await;
        lab.ready("a").await;
        lab.host.with_host(|host| host.remember("vk-default-a", "count=7")).unwrap();
        lab.annotate("a", key::HIBERNATE, Some("true")).await;
        sleep(at).await;
        node.kill().await;
        lab.annotate("a", key::HIBERNATE, None).await;
        let was_removed = lab.vm_names().is_empty();
        let _node = lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await.unwrap();
        lab.ready("a").await;
        lab.says("a", "ready").await;
        lab.host.with_host(|host| assert_eq!(host.memory("vk-default-a"), Some("count=7")));
        if !was_removed {
            lab.until("the old tag is gone", async |_: &Lab| registry.tags().is_empty()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_moment_of_a_wake_leaves_one_vm_with_its_memory() {
    for (at, outlive) in moments(7_000, 500) {
        let registry = EpochRegistry::default();
        let lab = Lab::with_epoch(&registry);
        lab.host.commands_outlive_callers(outlive);
        let node = lab.start().await.unwrap();
        lab.run_pod("a").await;
        lab.ready("a").await;
        lab.host.with_host(|host| host.remember("vk-default-a", "count=7")).unwrap();
        lab.annotate("a", key::HIBERNATE, Some("true")).await;
        lab.says("a", "hibernated").await;
        lab.annotate("a", key::HIBERNATE, None).await;
        sleep(at).await;
        node.kill().await;
        let _node = lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await.unwrap();
        lab.ready("a").await;
        lab.says("a", "ready").await;
        assert_eq!(lab.vm_names(), ["vk-default-a"], "killed after {at:?}");
        lab.host.with_host(|host| {
            assert_eq!(host.memory("vk-default-a"), Some("count=7"), "killed after {at:?}");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_moment_of_a_delete_saves_first_and_leaves_nothing() {
    for (at, outlive) in moments(14_000, 1000) {
        let registry = EpochRegistry::default();
        let lab = Lab::with_epoch(&registry);
        lab.host.commands_outlive_callers(outlive);
        let node = lab.start().await.unwrap();
        let saved = [(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")];
        lab.apply("a", &saved).await;
        lab.ready("a").await;
        lab.delete("a").await;
        sleep(at).await;
        node.kill().await;
        let _node = lab.start().await.unwrap();
        lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
        assert!(lab.vm_names().is_empty(), "killed after {at:?}");
        assert_eq!(registry.tags(), ["vk-default-a:latest"], "killed after {at:?}");
    }
}

/// Somebody breaks an annotation while the kubelet is away. The VM is still that pod's.
#[tokio::test(start_paused = true)]
async fn a_vm_whose_pod_cannot_be_read_any_more_is_no_orphan() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    for name in ["a", "b"] {
        lab.run_pod(name).await;
        lab.ready(name).await;
    }
    let ours = lab.vm_names();
    node.stop().await;
    lab.annotate("a", key::PROBE_PORT, Some("none")).await;
    // Known by its id alone.
    lab.annotate("b", key::VM_NAME, Some("")).await;
    let options = roost_microvm::RunOptions {
        name: "toolbox".into(),
        image: "img".into(),
        ..roost_microvm::RunOptions::default()
    };
    lab.host.with_host(|host| host.run(&options, lab.now())).unwrap();
    // Of somebody else, and only named.
    lab.apply("c", &[(key::MANAGED, "false"), (key::VM_NAME, "toolbox")]).await;
    let node = lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await.unwrap();
    sleep(secs(1200)).await;
    let there = lab.vm_names();
    let is_there = |name: &String| there.contains(name);
    assert!(ours.iter().all(is_there) && is_there(&"toolbox".to_owned()), "{there:?}");
    let annotations = lab.pod("a").await.unwrap().annotations().clone();
    assert!(annotations[key::LIFECYCLE_MESSAGE].contains("probe-port"), "{annotations:?}");

    lab.annotate("a", key::PROBE_PORT, None).await;
    lab.annotate("b", key::VM_NAME, Some("vk-default-b")).await;
    for name in ["a", "b"] {
        lab.ready(name).await;
        lab.delete(name).await;
        lab.until("the pod is gone", async |lab: &Lab| lab.pod(name).await.is_none()).await;
    }
    assert_eq!(lab.vm_names(), ["toolbox"]);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn vms_that_no_pod_wants_are_kept_or_removed_as_the_policy_says() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    node.stop().await;
    lab.delete("a").await;
    let pods = lab.pods();
    pods.delete("a", &kube::api::DeleteParams::default().grace_period(0)).await.ok();
    lab.until("the object is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    let node = lab.start().await.unwrap();
    assert_eq!(lab.vm_names().len(), 1, "alert removes nothing");
    node.stop().await;
    let _node = lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await.unwrap();
    assert!(lab.vm_names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_stops_is_started_again_and_one_that_stops_twice_ends_its_pod() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.crash("vk-default-a", true);
    lab.until("it is restarted", async |lab: &Lab| {
        let status = lab.pod("a").await.and_then(|pod| pod.status).unwrap_or_default();
        status.container_statuses.is_some_and(|all| all[0].restart_count == 1)
    })
    .await;
    sleep(secs(10)).await;
    lab.host.crash("vk-default-a", true);
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert!(lab.vm_names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_lost_is_found_by_the_next_list() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.with_host(|host| host.remove("vk-default-a", true)).unwrap();
    lab.host.cut_events();
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    let told = node.core.decisions(&of("default/a"));
    assert!(told.iter().any(|it| it.reason == "vm no longer exists"), "{told:#?}");
}

fn of(subject: &str) -> DecisionQuery {
    DecisionQuery { subject: Some(subject.to_owned()), ..DecisionQuery::default() }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_cannot_be_started_again_is_removed_and_its_pod_ends() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.add_fault(Fault::of("vm start").fails("no space left on device"));
    lab.host.crash("vk-default-a", true);
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert!(lab.vm_names().is_empty(), "nobody would remove it later");
    let told = node.core.decisions(&of("default/a"));
    let ended = told.iter().find(|it| it.reason.starts_with("RestartFailed")).unwrap();
    assert!(ended.reason.contains("no space left on device"), "{told:#?}");
}

/// Neither an event nor a list tells of it: the process does.
#[tokio::test]
async fn the_end_of_a_vms_process_is_seen_before_anybody_asks_for_vms() {
    let lab = Lab::quick();
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    node.stop().await;
    let mut process = tokio::process::Command::new("sleep");
    let mut process = process.arg("600").kill_on_drop(true).spawn().unwrap();
    let id = lab.pod("a").await.unwrap().annotations()[key::VM_ID].clone();
    lab.host.with_host(|host| host.set_process(&id, process.id().unwrap()));
    let _node = lab.start().await.unwrap();
    let lists = |calls: &[String]| calls.iter().filter(|it| it.starts_with("vm list")).count();
    let before = lists(&lab.host.journal());
    // Right after a list there is none for ten seconds.
    lab.until("VMs are listed", async |lab: &Lab| lists(&lab.host.journal()) > before + 2).await;
    let calls = lab.host.journal().len();
    lab.host.crash("vk-default-a", false);
    process.kill().await.unwrap();
    lab.until("it is started again", async |lab: &Lab| {
        lab.host.journal()[calls..].iter().any(|call| call.starts_with("vm start"))
    })
    .await;
    assert_eq!(lists(&lab.host.journal()[calls..]), 0, "{:?}", &lab.host.journal()[calls..]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_of_vms_by_mistake_ends_no_pod() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.add_fault(Fault::of("vm inspect").fails("open vms.json: input/output error").times(5));
    lab.host.crash("vk-default-a", true);
    lab.host.with_host(|host| host.start("vk-default-a", jiff_now())).unwrap();
    sleep(secs(600)).await;
    assert_eq!(phase(&lab.pod("a").await.unwrap()), "Running");
}

fn jiff_now() -> jiff::Timestamp {
    jiff::Timestamp::UNIX_EPOCH
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_view_of_the_host_makes_no_node() {
    let lab = Lab::new();
    lab.host.add_fault(Fault::of("vm list").fails("cocoon: command not found"));
    assert!(lab.start().await.is_err());
    assert!(lab.object("nodes", "node-1").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_does_not_inherit_the_vm() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    let first = lab.pod("a").await.unwrap().annotations()[key::VM_ID].clone();
    lab.pods().delete("a", &kube::api::DeleteParams::default().grace_period(0)).await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    let second = lab.pod("a").await.unwrap().annotations()[key::VM_ID].clone();
    assert_ne!(first, second);
    assert_eq!(lab.vm_names().len(), 1);
}

/// A command that made a VM ended after the kubelet that called it, and its pod is gone.
#[tokio::test(start_paused = true)]
async fn a_vm_that_appears_later_without_a_pod_is_found_while_the_kubelet_runs() {
    for (policy, is_left) in [("destroy", false), ("alert", true)] {
        let lab = Lab::new();
        let node = lab.start_with(&[("VK_ORPHAN_POLICY", policy)]).await.unwrap();
        lab.run_pod("a").await;
        lab.ready("a").await;
        let options = roost_microvm::RunOptions {
            name: "vk-default-late".into(),
            image: "img".into(),
            ..roost_microvm::RunOptions::default()
        };
        lab.host.with_host(|host| host.run(&options, lab.now())).unwrap();
        tokio::time::sleep(secs(200)).await;
        assert_eq!(lab.vm_names().len(), 2, "it is seen for a while before anything is done");
        tokio::time::sleep(secs(400)).await;
        assert_eq!(lab.vm_names().contains(&"vk-default-late".to_owned()), is_left, "{policy}");
        assert!(lab.vm_names().contains(&"vk-default-a".to_owned()));
        node.stop().await;
    }
}

/// The runtime answers nothing about the VM. Either it does again in time, or the pod cannot be kept.
#[tokio::test(start_paused = true)]
async fn a_vm_that_cannot_be_looked_at_ends_its_pod_after_half_an_hour_and_not_before() {
    for (failures, ends) in [(10, false), (10_000, true)] {
        let lab = Lab::new();
        let _node = lab.start().await.unwrap();
        lab.run_pod("a").await;
        lab.ready("a").await;
        lab.host.add_fault(Fault::of("vm inspect").fails("no answer").times(failures));
        lab.host.crash("vk-default-a", true);
        sleep(secs(25 * 60)).await;
        assert!(lab.pod("a").await.is_some(), "it is not given up yet");
        sleep(secs(10 * 60)).await;
        assert_eq!(lab.pod("a").await.is_none(), ends);
        if !ends {
            lab.ready("a").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_pod_of_a_lost_vm_is_deleted_as_soon_as_the_api_server_lets_it_be() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.sim.add_rule(Rule {
        verb: "delete".into(),
        resource: "pods".into(),
        when: When { times: Some(4), ..When::default() },
        action: Action::Status { code: 500 },
        ..Rule::default()
    });
    lab.host.with_host(|host| host.remove("vk-default-a", true)).unwrap();
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert_eq!(lab.sim.rules()[0].fired, 4);
    assert!(lab.vm_names().is_empty(), "and it gets no other VM");
}
