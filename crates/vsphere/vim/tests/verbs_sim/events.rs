use std::time::Duration;

use roost_vcenter_sim::Outage;
use roost_vim::wire::types::Event;
use roost_vim::{EventQuery, EventTail, Recursion, TailFrom};
use tokio::time::timeout;

use crate::lab::Lab;

fn power_events(lab: &Lab) -> EventQuery {
    let all = EventQuery {
        recursion: Recursion::All,
        ..EventQuery::of(lab.finder.datacenter().moref.clone())
    };
    all.types(&["VmPoweredOnEvent", "DrsVmPoweredOnEvent", "VmPoweredOffEvent"])
}

/// Collects until so many have come, and some time more for those that should not.
async fn collect(tail: &mut EventTail, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < count {
        events.extend(
            timeout(Duration::from_mins(30), tail.next()).await.expect("more events").unwrap(),
        );
    }
    assert!(timeout(Duration::from_mins(5), tail.next()).await.is_err(), "no event comes twice");
    events
}

#[tokio::test(start_paused = true)]
async fn events_are_queried_by_object_type_and_time_in_their_order() {
    let lab = Lab::start().await;
    let (vm, other) = (lab.vm("DC0_H0_VM0").await, lab.vm("DC0_H0_VM1").await);
    for _ in 0..3 {
        lab.client.power_on(&vm, None).await.unwrap();
        lab.client.power_off(&vm).await.unwrap();
    }
    lab.client.power_on(&other, None).await.unwrap();
    let off = EventQuery::of(vm.clone()).types(&["VmPoweredOffEvent"]);
    let found = lab.client.events(&off).await.unwrap();
    assert_eq!(found.len(), 3);
    assert!(found.is_sorted_by_key(|event| event.key));
    assert!(found.iter().all(|event| event.vm.as_ref().and_then(|it| it.vm.as_ref()) == Some(&vm)));
    let late = EventQuery { from: Some(found[1].created_time), ..off };
    assert_eq!(lab.client.events(&late).await.unwrap().len(), 2);
    assert_eq!(lab.client.events(&power_events(&lab)).await.unwrap().len(), 7);
    let renamed = EventQuery::of(vm.clone()).types(&["VmRenamedEvent"]);
    lab.client.rename(&vm, "worker-1").await.unwrap();
    assert_eq!(lab.client.events(&renamed).await.unwrap()[0].text("newName"), Some("worker-1"));
}

#[tokio::test(start_paused = true)]
async fn more_events_than_a_page_holds_all_come() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    for _ in 0..510 {
        lab.client.power_on(&vm, None).await.unwrap();
        lab.client.power_off(&vm).await.unwrap();
    }
    let found = lab.client.events(&power_events(&lab)).await.unwrap();
    assert_eq!(found.len(), 1020);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(lab.vcenter.counters().open_event_collectors, 0);
}

#[tokio::test(start_paused = true)]
async fn a_tail_brings_what_happens_after_it_began() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    lab.client.power_on(&vm, None).await.unwrap();
    let mut tail = lab.client.tail_events(power_events(&lab), TailFrom::Now).await.unwrap();
    lab.client.power_off(&vm).await.unwrap();
    lab.client.power_on(&vm, None).await.unwrap();
    let classes: Vec<_> =
        collect(&mut tail, 2).await.into_iter().map(|event| event.class).collect();
    assert_eq!(classes[0], "VmPoweredOffEvent");
    drop(tail);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        lab.vcenter.counters().open_event_collectors,
        0,
        "a dropped tail leaves nothing behind"
    );
}

#[tokio::test(start_paused = true)]
async fn a_burst_larger_than_the_page_is_brought_whole() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    let mut tail = lab.client.tail_events(power_events(&lab), TailFrom::Now).await.unwrap();
    for _ in 0..60 {
        lab.client.power_on(&vm, None).await.unwrap();
        lab.client.power_off(&vm).await.unwrap();
    }
    let events = collect(&mut tail, 120).await;
    assert_eq!(events.len(), 120);
    assert!(events.is_sorted_by_key(|event| event.key));
}

#[tokio::test(start_paused = true)]
async fn a_tail_goes_on_after_a_lost_session_and_a_restart_without_a_gap() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    let mut tail = lab.client.tail_events(power_events(&lab), TailFrom::Now).await.unwrap();
    let mut seen = Vec::new();
    for round in 0..6 {
        match round {
            2 => lab.vcenter.expire_sessions(),
            4 => lab.vcenter.restart(Outage { lasts: Duration::from_secs(3), refuses: false }),
            _ => {}
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        lab.client.power_on(&vm, None).await.unwrap();
        lab.client.power_off(&vm).await.unwrap();
        seen.extend(timeout(Duration::from_mins(30), tail.next()).await.expect("events").unwrap());
    }
    let rest = 12 - seen.len();
    seen.extend(collect(&mut tail, rest).await);
    assert_eq!(seen.len(), 12);
    assert!(seen.is_sorted_by_key(|event| event.key));
}

#[tokio::test(start_paused = true)]
async fn a_tail_can_begin_in_the_past() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    for _ in 0..15 {
        lab.client.power_on(&vm, None).await.unwrap();
        lab.client.power_off(&vm).await.unwrap();
    }
    let all = lab.client.events(&power_events(&lab)).await.unwrap();
    let from = TailFrom::Time(all[4].created_time);
    let mut tail = lab.client.tail_events(power_events(&lab), from).await.unwrap();
    let keys: Vec<_> = collect(&mut tail, 26).await.iter().map(|event| event.key).collect();
    assert_eq!(keys, all[4..].iter().map(|event| event.key).collect::<Vec<_>>());
}
