//! Many seeds of faults over the verbs that must not do anything twice, and what must be true afterwards.

use std::time::Duration;

use roost_clock::Random;
use roost_vcenter_sim::{Action, Options, Outage, Rule, When};
use roost_vim::{EventQuery, Kind, Namesake, Recursion, TailFrom};
use tokio::time::timeout;

use crate::lab::Lab;

/// Faults that pass: each call of these methods meets one with this chance.
fn make_trouble(lab: &Lab, random: &mut Random) {
    let outage =
        Outage { lasts: Duration::from_secs(random.below(5)), refuses: random.chance(0.5) };
    for (method, action, chance) in [
        ("*_Task", Action::CutBefore, 0.05),
        ("*_Task", Action::CutAfter, 0.1),
        ("*_Task", Action::Status(502), 0.05),
        ("*_Task", Action::LateAnswer(Duration::from_mins(2)), 0.03),
        ("Destroy_Task", Action::fail_task("FileLocked", "in use"), 0.1),
        ("FindChild", Action::CutAfter, 0.1),
        ("RetrievePropertiesEx", Action::LoseSession, 0.03),
        ("WaitForUpdatesEx", Action::CutAfter, 0.05),
        ("WaitForUpdatesEx", Action::Restart(outage), 0.01),
    ] {
        lab.rule(Rule::new(method, action).when(When::Chance(chance)));
    }
}

fn ours(namesake: &Namesake) -> bool {
    namesake.annotation.as_deref() == Some(&format!("request of {}", namesake.name))
}

#[tokio::test(start_paused = true)]
async fn no_request_ever_has_two_vms_and_none_is_left_behind() {
    for seed in 0..8 {
        let lab = Lab::with(Options { seed, ..Options::default() }).await;
        let (template, mut random) = (lab.template().await, Random::from_seed(seed));
        let names: Vec<_> = (0..6).map(|number| format!("worker-{number}")).collect();
        let mut requests = Vec::new();
        for name in &names {
            requests.push(lab.clone_request(name).await);
        }
        make_trouble(&lab, &mut random);
        let made = futures_util::future::join_all(requests.iter().map(async |request| {
            for _ in 0..50 {
                match lab.client.clone_or_adopt(&template, request, ours).await {
                    Ok(made) => return made.into_vm(),
                    // What a controller does: it comes back later.
                    Err(_) => tokio::time::sleep(Duration::from_secs(20)).await,
                }
            }
            panic!("seed {seed}: {} was never made", request.name);
        }))
        .await;
        let destroyed = futures_util::future::join_all(made.iter().map(async |vm| {
            for _ in 0..50 {
                match lab.client.destroy(vm).await {
                    Ok(_) => return true,
                    Err(_) => tokio::time::sleep(Duration::from_secs(20)).await,
                }
            }
            false
        }))
        .await;
        assert!(destroyed.iter().all(|gone| *gone), "seed {seed}");
        lab.vcenter.faults().clear();
        // Anything that was still on its way has come out by now.
        tokio::time::sleep(Duration::from_hours(1)).await;
        let left = lab.finder.list(Kind::VirtualMachine, "worker-*").await.unwrap();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
        assert_eq!(lab.vcenter.counters().panics, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tail_brings_every_event_once_through_any_trouble() {
    for seed in 0..6 {
        let lab = Lab::with(Options { seed, ..Options::default() }).await;
        let mut random = Random::from_seed(seed);
        let vm = lab.vm("DC0_H0_VM0").await;
        let query = EventQuery {
            recursion: Recursion::All,
            ..EventQuery::of(lab.finder.datacenter().moref.clone())
        }
        .types(&["VmReconfiguredEvent"]);
        let mut tail = lab.client.tail_events(query, TailFrom::Now).await.unwrap();
        for (action, chance) in [
            (Action::CutAfter, 0.1),
            (Action::LoseSession, 0.05),
            (Action::Restart(Outage::default()), 0.03),
        ] {
            lab.rule(Rule::new("WaitForUpdatesEx", action).when(When::Chance(chance)));
        }
        lab.rule(Rule::new("QueryEvents", Action::CutAfter).when(When::Chance(0.2)));
        let (mut expected, mut seen) = (0_usize, Vec::new());
        for round in 0..10 {
            for _ in 0..random.below(60) {
                let change = roost_vim::Reconfigure::annotation(format!("round {round}"));
                let _ = lab.client.reconfigure(&vm, &change).await;
            }
            // Sometimes nobody reads for a while.
            if random.chance(0.7) {
                expected = lab
                    .vcenter
                    .events()
                    .iter()
                    .filter(|event| event.class == "VmReconfiguredEvent")
                    .count();
                while seen.len() < expected {
                    match timeout(Duration::from_hours(1), tail.next()).await {
                        Ok(Ok(events)) => seen.extend(events.into_iter().map(|event| event.key)),
                        Ok(Err(_)) => tokio::time::sleep(Duration::from_secs(5)).await,
                        Err(late) => {
                            panic!("seed {seed}: {} of {expected} events came: {late}", seen.len())
                        }
                    }
                }
            }
        }
        assert!(seen.len() >= expected && seen.is_sorted(), "seed {seed}");
        seen.dedup();
        let all: Vec<_> = lab
            .vcenter
            .events()
            .iter()
            .filter(|event| event.class == "VmReconfiguredEvent")
            .map(|event| event.key)
            .collect();
        assert!(all.starts_with(&seen), "seed {seed}: no event is missing in between");
    }
}
