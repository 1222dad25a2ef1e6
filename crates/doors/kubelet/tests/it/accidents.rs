use kube::ResourceExt;
use roost_cocoon_sim::Fault;
use roost_kube_sim::{Action, Rule, When};
use roost_kubelet::key;
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
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.with_host(|host| host.remove("vk-default-a", true)).unwrap();
    lab.host.cut_events();
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
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
