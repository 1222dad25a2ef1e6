//! What a person is shown of a VirtualMachine: where it stands, since when, who has to move, and what the last passes did.

use std::path::Path;

use roost_door::{Action, FrontDoor as _, Order, Person, Shown, disagreement, needs_of};
use roost_views::{NeedView, RequestState, Verdict, VmKind};
use tokio::time::sleep;

use crate::lab::{Lab, minutes, secs, vm};

const ID: &str = "team-a/web-0";

/// One need, with what to do and a page that is there.
fn assert_helps(need: &NeedView, words: &str, advice: &str) {
    assert!(need.words.contains(words), "{need:?}");
    assert!(need.advice.contains(advice), "{need:?}");
    let page = format!("../../../docs/runbooks/{}.md", need.runbook.as_deref().unwrap());
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(page).is_file(), "{need:?}");
}

impl Lab {
    fn stands_at(&self) -> Option<(String, String)> {
        let said = self.shown.as_ref()?.request(ID)?.decisions.pop()?;
        Some((said.bound_by.unwrap_or_default(), said.reason))
    }

    async fn until_it_stands_at(&self, step: &str) -> String {
        for _ in 0..9_000 {
            if let Some((at, why)) = self.stands_at()
                && at == step
            {
                return why;
            }
            sleep(secs(1) / 5).await;
        }
        panic!("it does not stand at {step}: {:?}", self.stands_at());
    }

    async fn act(&self, action: Action) -> Result<String, String> {
        let by = Person { shown: Shown::Token, from: "127.0.0.1".parse().unwrap() };
        let order = Order { action, by, reason: Some("upgrade".into()) };
        let steer = self.shown.as_ref().unwrap().steer().unwrap();
        steer.act(order).await.map_err(|refused| refused.to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn every_step_is_shown_in_its_order_and_the_waterfall_ends_with_the_address() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    let mut steps: Vec<String> = Vec::new();
    for _ in 0..90_000 {
        assert_eq!(disagreement(lab.shown.as_ref().unwrap()), None);
        if let Some((at, _)) = lab.stands_at() {
            if steps.last() != Some(&at) {
                steps.push(at.clone());
            }
            if at.is_empty() {
                break;
            }
        }
        sleep(secs(1) / 50).await;
    }
    let order = [
        "accepted",
        "class",
        "image",
        "storage",
        "placement",
        "created",
        "configured",
        "power",
        "address",
        "",
    ];
    let place = |step: &String| order.iter().position(|known| known == step).unwrap_or(99);
    assert_eq!(steps.last().map(String::as_str), Some(""), "{steps:?}");
    for wanted in ["created", "address"] {
        assert!(steps.iter().any(|step| step == wanted), "{steps:?}");
    }
    // Configuration and power take turns until both are as asked for.
    let mut before_power = steps.clone();
    before_power.retain(|step| !matches!(step.as_str(), "configured" | "power"));
    assert!(before_power.is_sorted_by_key(place), "{steps:?}");

    let shown = lab.shown.as_ref().unwrap().request(ID).unwrap();
    let request = &shown.request;
    assert_eq!((request.state, request.vm.as_deref()), (RequestState::Working, Some("web-0")));
    assert_eq!(request.project.as_deref(), Some("team-a"));
    assert!(request.waited_secs.is_some_and(|waited| waited > 10), "{:?}", request.waited_secs);
    assert_eq!(request.facts.get("flow"), Some("update"));
    assert_eq!(request.facts.get("level"), Some("default"));
    let last = shown.decisions.last().unwrap();
    assert!(last.gates.iter().all(|gate| gate.passed), "{last:?}");
    let did: Vec<_> = shown.decisions.iter().map(|it| (it.verdict, &*it.reason)).collect();
    assert!(did.contains(&(Verdict::Spawned, "vCenter makes the VM")), "{did:?}");
    assert!(did.contains(&(Verdict::Changed, "vCenter changes its power state")), "{did:?}");
    let vm = shown.vm.unwrap();
    assert_eq!((vm.vm.kind, vm.vm.cpus, vm.vm.memory_mb), (VmKind::Machine, Some(2), Some(4096)));
    let phases: Vec<_> = vm.timeline.iter().map(|step| step.phase.as_str()).collect();
    let wait = vm.timeline.iter().find(|step| step.phase == "waiting-for-address").unwrap();
    assert!(wait.took_ms.is_some_and(|took| took > 1_000), "{wait:?}");
    assert!(phases.ends_with(&["waiting-for-address", "running"]), "{phases:?}");

    lab.delete("web-0").await;
    while !lab.is_gone("web-0").await {
        assert_eq!(disagreement(lab.shown.as_ref().unwrap()), None);
        sleep(secs(1) / 5).await;
    }
    sleep(minutes(1)).await;
    let door = lab.shown.as_ref().unwrap();
    assert!(door.requests().is_empty() && door.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_person_has_to_do_is_told_from_what_only_takes_time() {
    let lab = Lab::new().await;
    let mut wanted = vm("web-0");
    wanted.spec.class_name = "huge".into();
    lab.apply(&wanted).await;
    let why = lab.until_it_stands_at("class").await;
    assert!(why.contains("huge"), "{why}");
    let door = lab.shown.as_ref().unwrap();
    assert_eq!(door.requests().remove(0).state, RequestState::Refused);
    assert_eq!(door.summary().queue.refused, 1);
    let [need] = needs_of(door).try_into().unwrap();
    assert_helps(&need, "huge", "VirtualMachineClass of this name");
    let last = door.request(ID).unwrap().decisions.pop().unwrap();
    assert!(last.next_look.is_some());
    lab.class("huge", 8, "16Gi").await;
    lab.until_on("web-0").await;
    lab.until_it_stands_at("").await;
}

#[tokio::test(start_paused = true)]
async fn creates_beyond_the_limit_wait_for_a_slot_and_say_so() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.max_creates = 1;
    lab.start();
    for number in 0..3 {
        lab.apply(&vm(&format!("web-{number}"))).await;
    }
    let mut seen = None;
    for _ in 0..9_000 {
        let door = lab.shown.as_ref().unwrap();
        let all = door.requests();
        let waits = all.iter().find_map(|it| {
            let said = it.verdict.as_ref()?;
            (said.bound_by.as_deref() == Some("slot")).then(|| said.reason.clone())
        });
        if waits.is_some() {
            let gauge = door.summary().gauges.get("creates").cloned().unwrap();
            seen = waits.zip(Some((gauge.used, gauge.is_full())));
            break;
        }
        sleep(secs(1) / 20).await;
    }
    let (why, gauge) = seen.expect("one of them waits for a slot");
    assert_eq!((why.as_str(), gauge), ("1 of 1 VMs are being made", (1, true)));
    for number in 0..3 {
        lab.until_on(&format!("web-{number}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_vm_is_paused_resumed_and_looked_at_by_a_person() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    let door = lab.shown.as_ref().unwrap();
    let request = door.words().request(ID);
    let paused = lab.act(Action::PauseRequest { request: request.clone() }).await.unwrap();
    assert!(paused.contains("paused"), "{paused}");
    let why = lab.until_it_stands_at("accepted").await;
    assert!(why.contains("vmoperator.vmware.com/paused"), "{why}");
    // Whoever pauses it means it: nothing is changed.
    let spec = serde_json::json!({"spec": {"powerState": "PoweredOff", "powerOffMode": "Hard"}});
    lab.patch("web-0", spec).await;
    sleep(minutes(5)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, roost_vcenter_sim::Power::On);
    lab.act(Action::ResumeRequest { request: request.clone() }).await.unwrap();
    lab.until_it_stands_at("").await;
    assert_eq!(lab.machine("web-0").unwrap().power, roost_vcenter_sim::Power::Off);
    assert!(lab.act(Action::Recheck { request }).await.unwrap().contains("looked at now"));
    let unknown = door.words().request("team-a/none");
    assert!(lab.act(Action::Recheck { request: unknown }).await.is_err());
    let refused = lab.act(Action::Drain).await.unwrap_err();
    assert!(refused.contains("roost pause vm"), "{refused}");
    let journal = lab.fleet.journal().find(&roost_fleet::Query::default());
    let steered: Vec<_> = journal.iter().map(|it| it.reason.to_string()).collect();
    assert!(steered.iter().any(|said| said.contains("paused") && said.contains("(upgrade)")));
}
