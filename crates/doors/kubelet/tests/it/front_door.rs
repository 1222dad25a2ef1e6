//! What a person is shown of a pod, and what they can have done.

use std::path::Path;

use kube::ResourceExt;
use roost_cocoon_sim::{EpochRegistry, Fault};
use roost_door::{Action, Core, FrontDoor, Order, Person, Shown, disagreement, needs_of};
use roost_kubelet::{KubeletDoor, key};
use roost_views::{DecisionQuery, NeedView, RequestState, Spawning, Verdict, VmKind, Waterfall};
use tokio::time::sleep;

use crate::lab::{Lab, Running, secs};

fn stands_at(door: &KubeletDoor, id: &str) -> Option<(String, String)> {
    let said = door.request(id)?.decisions.pop()?;
    Some((said.bound_by.unwrap_or_default(), said.reason))
}

/// One need, with what to do and a page that is there.
fn assert_helps(need: &NeedView, words: &str, advice: &str) {
    assert!(need.words.contains(words), "{need:?}");
    assert!(need.advice.contains(advice), "{need:?}");
    let page = format!("../../../docs/runbooks/{}.md", need.runbook.as_deref().unwrap());
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(page).is_file(), "{need:?}");
}

async fn act(node: &Running, action: Action) -> Result<String, String> {
    let by = Person { shown: Shown::Token, from: "127.0.0.1".parse().unwrap() };
    let order = Order { action, by, reason: Some("host upgrade".to_owned()) };
    node.door.steer().unwrap().act(order).await.map_err(|refused| refused.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_explained_from_its_annotations_to_its_answer() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.host.add_fault(Fault::of("vm run").fails("no space left on device"));
    lab.run_pod("a").await;
    let mut steps: Vec<String> = Vec::new();
    lab.until("a is explained whole", async |_: &Lab| {
        assert_eq!(disagreement(&node.door), None);
        let Some((at, _)) = stands_at(&node.door, "default/a") else { return false };
        if steps.last() != Some(&at) {
            steps.push(at.clone());
        }
        at.is_empty()
    })
    .await;
    assert!(steps.contains(&"vm".to_owned()), "{steps:?}");
    let shown = node.door.request("default/a").unwrap();
    assert_eq!(shown.request.state, RequestState::Working);
    let verdicts: Vec<_> = shown.decisions.iter().map(|said| said.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Failed, Verdict::Spawned, Verdict::Spawned],
        "{:#?}",
        shown.decisions
    );
    assert!(shown.decisions[0].reason.contains("no space left on device"));
    let last = shown.decisions.last().unwrap();
    let gates: Vec<_> = last.gates.iter().map(|gate| (gate.name.as_str(), gate.passed)).collect();
    assert_eq!(
        gates,
        [
            ("annotations", true),
            ("spawning", true),
            ("vm", true),
            ("address", true),
            ("ready", true)
        ]
    );
    let vm = shown.vm.unwrap();
    assert_eq!((vm.vm.name.as_str(), vm.vm.kind), ("vk-default-a", VmKind::Machine));
    let phases: Vec<_> = vm.timeline.iter().map(|step| step.phase.as_str()).collect();
    assert_eq!(
        phases,
        ["queued", "pulling-image", "booting", "queued", "pulling-image", "booting", "answering"]
    );
    let bars = Waterfall::of_request(&vm.timeline, shown.request.queued, lab.now()).unwrap();
    assert!(bars.bars.len() >= phases.len(), "{bars:?}");
    assert_eq!(node.door.vms().len(), 1);
    assert_eq!(node.core.decisions(&DecisionQuery::default()).len(), 2);
    assert!(node.core.overview().link.connected);

    lab.delete("a").await;
    lab.until("nothing is shown any more", async |_: &Lab| {
        assert_eq!(disagreement(&node.door), None);
        node.door.requests().is_empty() && node.door.vms().is_empty()
    })
    .await;
    let said = node.core.decisions(&DecisionQuery::default()).pop().unwrap();
    assert_eq!((said.verdict, said.subject.as_str()), (Verdict::Deleted, "default/a"));
}

#[tokio::test(start_paused = true)]
async fn what_only_a_person_can_change_is_refused_and_a_retry_can_be_asked_for() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.apply("a", &[(key::PROBE_PORT, "none")]).await;
    lab.until("it is refused", async |_: &Lab| {
        node.door.requests().first().is_some_and(|it| it.state == RequestState::Refused)
    })
    .await;
    let (at, why) = stands_at(&node.door, "default/a").unwrap();
    assert_eq!(at, "annotations");
    assert!(why.contains("probe-port"), "{why}");
    assert_eq!(node.door.summary().queue.refused, 1);
    let [need] = needs_of(&node.door).try_into().unwrap();
    assert_helps(&need, "probe-port", "correct its annotations");

    lab.host.add_fault(Fault::of("vm run").fails("no space").times(9));
    lab.run_pod("b").await;
    lab.until("it has failed often", async |_: &Lab| {
        stands_at(&node.door, "default/b").is_some_and(|(_, why)| why.contains("attempt 9"))
    })
    .await;
    let [fails, _] = needs_of(&node.door).try_into().unwrap();
    assert_helps(&fails, "no space", "roost doctor kubelet");
    let request = node.door.words().request("default/b");
    assert!(act(&node, Action::Recheck { request }).await.unwrap().contains("looked at now"));
    let before = lab.now();
    lab.ready("b").await;
    assert!(lab.now().duration_since(before).as_secs() < 60, "it did not wait for its next turn");
    let request = node.door.words().request("default/none");
    assert!(act(&node, Action::Recheck { request }).await.is_err());
    let refused = act(&node, Action::DeleteVm { vm: "x".into() }).await.unwrap_err();
    assert!(refused.contains("delete the pod"), "{refused}");
}

/// The whole of a maintenance: everything sleeps, a restart changes nothing, and everything wakes that the drain put to sleep.
#[tokio::test(start_paused = true)]
async fn a_drain_puts_all_to_sleep_and_its_end_wakes_them() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    for name in ["a", "b", "c"] {
        lab.run_pod(name).await;
    }
    for name in ["a", "b", "c"] {
        lab.ready(name).await;
    }
    lab.annotate("c", key::HIBERNATE, Some("true")).await;
    lab.host.with_host(|host| host.remember("vk-default-a", "count=7")).unwrap();
    let said = act(&node, Action::Drain).await.unwrap();
    assert!(said.contains("2 VMs are put to sleep"), "{said}");
    lab.until("all sleep", async |lab: &Lab| {
        assert_eq!(disagreement(&node.door), None);
        lab.vm_names().is_empty()
    })
    .await;
    assert_eq!(node.door.steering().spawning, Spawning::Draining);
    assert!(node.door.steering().held.unwrap().contains("host upgrade"));
    let cordoned = lab.nodes().get("node-1").await.unwrap().spec.unwrap().unschedulable;
    assert_eq!(cordoned, Some(true));

    // The host is restarted, and a pod comes that nobody scheduled.
    node.stop().await;
    let node = lab.start().await.unwrap();
    lab.run_pod("d").await;
    sleep(secs(120)).await;
    assert!(lab.vm_names().is_empty());
    let (at, why) = stands_at(&node.door, "default/d").unwrap();
    assert_eq!(at, "spawning");
    assert!(why.contains("the node is drained"), "{why}");
    let shown = lab.pod("d").await.unwrap().status.unwrap();
    assert!(shown.message.is_some_and(|message| message.contains("drained")));

    act(&node, Action::ResumeSpawning).await.unwrap();
    for name in ["a", "b", "d"] {
        lab.ready(name).await;
    }
    lab.host.with_host(|host| assert_eq!(host.memory("vk-default-a"), Some("count=7")));
    assert!(!lab.vm_names().contains(&"vk-default-c".to_owned()), "its owner wants it asleep");
    let pod = lab.pod("a").await.unwrap();
    assert!(!pod.annotations().contains_key(key::DRAINED));
    let cordoned = lab.nodes().get("node-1").await.unwrap().spec.unwrap().unschedulable;
    assert_ne!(cordoned, Some(true));
    let steered = DecisionQuery { verdict: Some("steered".into()), ..DecisionQuery::default() };
    assert_eq!(node.core.decisions(&steered).len(), 1);
}

/// What lies on this host or in the registry is told at the pod that it is for, and so is what is on its way.
#[tokio::test(start_paused = true)]
async fn snapshots_and_transfers_are_shown_at_their_pods() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let node = lab.start().await.unwrap();
    let fact = |id: &str, key: &str| {
        let shown = node.door.request(id).unwrap().request;
        shown.facts.get(key).map(str::to_owned).unwrap_or_default()
    };
    lab.apply("main", &[(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")])
        .await;
    lab.ready("main").await;
    assert_eq!(fact("default/main", "base"), "", "it is booted from an image");
    lab.apply("fork", &[(key::FORK_FROM, "vk-default-main")]).await;
    lab.ready("fork").await;
    assert_eq!(fact("default/fork", "base"), "snapshot fork-vk-default-main of this host");
    lab.annotate("fork", key::HIBERNATE, Some("true")).await;
    let mut transfer = String::new();
    lab.until("its way into the registry is shown", async |_: &Lab| {
        transfer = fact("default/fork", "transfer");
        !transfer.is_empty()
    })
    .await;
    lab.says("fork", "hibernated").await;
    assert_eq!(fact("default/fork", "saved"), "vk-default-fork:hibernate in the registry");
    assert_eq!(fact("default/fork", "transfer"), "", "it is over");

    lab.delete("main").await;
    lab.until("it is saved", async |lab: &Lab| lab.pod("main").await.is_none()).await;
    lab.apply("a", &[(key::IMAGE, "vk-default-main:latest")]).await;
    lab.ready("a").await;
    lab.until("its base is kept", async |_: &Lab| {
        let base = fact("default/a", "base");
        base.starts_with("snapshot vk-default-main, ") && base.contains(" on this host, last used ")
    })
    .await;
}

/// It was shown as "vCenter is unreachable", on a node that has none.
#[tokio::test(start_paused = true)]
async fn a_runtime_that_fails_is_named_as_what_it_is() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.host.add_fault(Fault::of("vm list").fails("open vms.lock: permission denied").times(10));
    lab.until("the runtime fails", async |_: &Lab| !node.core.overview().link.connected).await;
    let link = node.core.overview().link;
    assert_eq!(link.server, "microVM runtime");
    assert!(link.trouble.unwrap().contains("permission denied"));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_is_said_in_words_until_it_is_back() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    assert_eq!(node.door.outages(), []);
    let before = lab.now();
    lab.sim.restart(secs(120));
    sleep(secs(60)).await;
    let [outage] = node.door.outages().try_into().unwrap();
    assert_eq!(outage.server, "API server");
    assert!(outage.since.is_some_and(|since| since >= before), "{outage:?}");
    assert!(outage.trouble.is_some() && outage.held.contains("pods"), "{outage:?}");
    sleep(secs(90)).await;
    assert_eq!(node.door.outages(), [], "nothing changes on it, and it is known to be back");
}
