//! What a person is shown of an AgentMachine: where it stands, since when, and who has to move.

use std::path::Path;
use std::time::Duration;

use roost_agent_forge::ForgeDoor;
use roost_clock::Clock as _;
use roost_door::{Action, Core as _, FrontDoor, Order, Person, Shown, disagreement, needs_of};
use roost_views::{BarKind, DecisionQuery, NeedView, RequestState, Verdict, VmKind, Waterfall};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, mins};

const ID: &str = "blue-blue/blue-gp-0001";

fn stands_at(door: &ForgeDoor) -> Option<(String, String)> {
    let said = door.request(ID)?.decisions.pop()?;
    Some((said.bound_by.unwrap_or_default(), said.reason))
}

/// One need, with what to do and a page that is there.
fn assert_helps(need: &NeedView, words: &str, advice: &str) {
    assert!(need.words.contains(words), "{need:?}");
    assert!(need.advice.contains(advice), "{need:?}");
    let page = format!("../../../docs/runbooks/{}.md", need.runbook.as_deref().unwrap());
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(page).is_file(), "{need:?}");
}

async fn until_it_stands_at(lab: &Lab, door: &ForgeDoor, step: &str) -> String {
    let what = format!("it stands at {step}");
    lab.until(&what, mins(30), async |_| stands_at(door).is_some_and(|(at, _)| at == step)).await;
    stands_at(door).unwrap().1
}

#[tokio::test(start_paused = true)]
async fn every_step_is_shown_in_its_order_and_the_end_has_all_of_them() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    let mut steps: Vec<String> = Vec::new();
    lab.until("a node", mins(30), async |_| {
        assert_eq!(disagreement(&forge.door), None);
        let Some((at, _)) = stands_at(&forge.door) else { return false };
        if steps.last() != Some(&at) {
            steps.push(at.clone());
        }
        at.is_empty()
    })
    .await;
    let order = [
        "demand",
        "pool",
        "vcenter",
        "iso",
        "vsphereagent",
        "vm",
        "registered",
        "prepared",
        "bound",
        "",
    ];
    let place = |step: &String| order.iter().position(|known| known == step).unwrap();
    assert!(steps.is_sorted_by_key(place), "{steps:?}");
    assert!(steps.iter().any(|step| step == "registered"), "{steps:?}");

    let shown = forge.door.request(ID).unwrap();
    assert_eq!(shown.request.state, RequestState::Working);
    assert_eq!(shown.request.vm.as_deref(), Some("blue-gp-0001"));
    assert_eq!(shown.request.project.as_deref(), Some("blue/blue-gp"));
    assert!(shown.request.waited_secs.is_some_and(|waited| waited > 60));
    assert!(shown.decisions[0].gates.iter().all(|gate| gate.passed), "{:?}", shown.decisions);
    for fact in ["machine", "vsphere_agent", "agent", "vm_id"] {
        assert!(shown.request.facts.get(fact).is_some(), "{fact} in {:?}", shown.request.facts);
    }
    let vm = shown.vm.unwrap();
    let phases: Vec<_> = vm.timeline.iter().map(|step| step.phase.as_str()).collect();
    assert!(phases.ends_with(&["registering", "binding", "bound"]), "{phases:?}");
    let waits = Waterfall::of_request(&vm.timeline, shown.request.queued, lab.clock.now()).unwrap();
    assert!(waits.bars.iter().all(|bar| bar.kind != BarKind::Going), "{waits:?}");
    let waited = shown.request.waited_secs.unwrap() * 1_000;
    assert!(waits.length_ms + 2_000 > waited, "{} of {waited} ms are bars", waits.length_ms);
    assert_eq!((vm.vm.kind, vm.vm.cpus), (VmKind::Machine, Some(2)));
    let pool = forge.door.pools().remove(0);
    assert_eq!((pool.in_use, pool.missing), (1, 0));
    let summary = forge.door.summary();
    assert_eq!((summary.queue.waiting, summary.queue.refused, summary.lanes[0].count), (0, 0, 1));

    lab.neighbours.scale(0);
    lab.until("nothing is shown any more", mins(30), async |_| {
        assert_eq!(disagreement(&forge.door), None);
        forge.door.requests().is_empty() && forge.door.vms().is_empty()
    })
    .await;
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_person_has_to_do_is_told_from_what_only_takes_time() {
    let lab = Lab::new().await;
    lab.apply_pool(
        json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/paused": "true"}}}),
    )
    .await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    let why = until_it_stands_at(&lab, &forge.door, "pool").await;
    assert_eq!(why, "blue/blue-gp is paused");
    let request = forge.door.requests().remove(0);
    assert_eq!(request.state, RequestState::Refused, "only a person takes the annotation off");
    assert_eq!(forge.door.summary().queue.refused, 1);
    let [need] = needs_of(&forge.door).try_into().unwrap();
    assert_helps(&need, "blue/blue-gp is paused", "agent-forge.containeroo.ch/paused");

    let limit = json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/paused": null}}, "spec": {"scaling": {"maxVMs": 0}}});
    lab.patch_pool(limit).await;
    lab.until("the limit binds", mins(5), async |_| {
        stands_at(&forge.door).is_some_and(|(_, why)| why == "spec.scaling.maxVMs: 0 of 0 VMs")
    })
    .await;
    assert_eq!(forge.door.requests().remove(0).state, RequestState::Waiting);
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_is_named_as_what_blocks() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"vsphere": {"folder": "nodes"}}})).await;
    lab.add_vm("nodes", "blue-gp-0001").await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("the conflict is told", mins(30), async |_| {
        let said = forge.door.request(ID).and_then(|shown| shown.request.verdict);
        said.is_some_and(|said| {
            said.verdict == Verdict::Failed && said.bound_by.as_deref() == Some("vm")
        })
    })
    .await;
    let (_, why) = stands_at(&forge.door).unwrap();
    assert!(why.contains("blue-gp-0001"), "{why}");
    let [need] = needs_of(&forge.door).try_into().unwrap();
    assert_helps(&need, "blue-gp-0001", "never touched");
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_person_can_have_it_looked_at_now_and_is_told_what_cannot_be_done_here() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    until_it_stands_at(&lab, &forge.door, "registered").await;
    sleep(mins(1)).await;
    let by = Person { shown: Shown::Token, from: "127.0.0.1".parse().unwrap() };
    let act = async |action| {
        let order = Order { action, by: by.clone(), reason: None };
        forge.door.steer().unwrap().act(order).await
    };
    let request = forge.door.words().request(ID);
    assert!(act(Action::Recheck { request }).await.unwrap().contains("looked at now"));
    let request = forge.door.words().request("blue-blue/none");
    assert!(act(Action::Recheck { request }).await.is_err());
    let refused = act(Action::PauseSpawning).await.unwrap_err().to_string();
    assert!(refused.contains("agent-forge.containeroo.ch/paused=true"), "{refused}");
    let steered = DecisionQuery { verdict: Some("steered".into()), ..DecisionQuery::default() };
    let said = forge.core.decisions(&steered);
    let said: Vec<_> = said.iter().map(|it| (it.subject.as_str(), it.reason.as_str())).collect();
    assert_eq!(said.len(), 3, "each order is in the journal: {said:?}");
    assert!(said[0].1.contains("looked at now, by whoever has the token"), "{said:?}");
    assert!(said[2].1.starts_with("not done: "), "{said:?}");
    forge.stop().await;
}

/// The pool writes that the ISO is there; its VMs depend on it and do not wait for their next look.
#[tokio::test(start_paused = true)]
async fn a_vm_is_asked_for_as_soon_as_the_iso_is_there() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(2);
    let iso = async |lab: &Lab| {
        let iso = lab.pool().await.status.iso;
        iso.is_some_and(|iso| !iso.path.is_empty())
    };
    lab.until("the ISO", mins(5), iso).await;
    let made = async |lab: &Lab| lab.vcenter.counters().calls_of("CreateVM_Task") == 2;
    lab.until("both VMs are asked for", Duration::from_secs(5), made).await;
    forge.stop().await;
}
