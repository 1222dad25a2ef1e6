use std::time::Duration;

use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{
    CreateCollectorForEvents, DestroyCollector, Logout, QueryEvents, ReadNextEvents,
    ReadPreviousEvents, ResetCollector, RewindCollector, SetCollectorPageSize,
};
use roost_vim_wire::types::{
    Event, EventFilterSpec, EventFilterSpecByEntity, EventFilterSpecByTime,
    EventFilterSpecRecursionOption as Recursion, PropertyFilterSpec, PropertySpec,
};
use roost_vim_wire::{Fault, MoRef};

use crate::lab::session_manager;
use crate::lab::watch::Watch;
use crate::story::{Story, instant};

async fn query(story: &Story, filter: EventFilterSpec) -> Result<Vec<Event>, Fault> {
    let this = story.client.content.event_manager.clone().unwrap();
    let mut events = story.client.call(QueryEvents { this, filter }).await?;
    events.sort_by_key(|event| event.key);
    Ok(events)
}

fn classes(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.class.as_str()).collect()
}

fn about(entity: &MoRef, recursion: Recursion) -> EventFilterSpec {
    EventFilterSpec {
        entity: Some(EventFilterSpecByEntity { entity: entity.clone(), recursion }),
        ..Default::default()
    }
}

fn kinds(kinds: &[&str]) -> EventFilterSpec {
    EventFilterSpec {
        event_type_id: kinds.iter().map(|kind| (*kind).into()).collect(),
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_found_by_entity_type_time_and_chain() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    story.worker("worker-2").await;
    let middle = story.lab.vcenter.events().last().unwrap().created_time;
    tokio::time::sleep(Duration::from_mins(1)).await;
    story.client.rename(&vm, "worker-9").await;
    let own = query(&story, about(&vm, Recursion::This)).await.unwrap();
    assert!(
        own.iter()
            .all(|event| event.vm.as_ref().is_some_and(|found| found.vm.as_ref() == Some(&vm)))
    );
    assert_eq!(classes(&own).last(), Some(&"VmRenamedEvent"));
    let renamed = own.last().unwrap();
    assert_eq!(
        renamed.full_formatted_message.as_deref(),
        Some("Renamed worker-1 from worker-1 to worker-9 in DC0")
    );
    let started = query(&story, kinds(&["VmPoweredOnEvent"])).await.unwrap();
    assert_eq!(
        classes(&started),
        ["DrsVmPoweredOnEvent", "DrsVmPoweredOnEvent"],
        "a base class finds its subclasses"
    );
    let late = EventFilterSpec {
        time: Some(EventFilterSpecByTime {
            begin_time: Some(middle.checked_add(jiff::SignedDuration::from_secs(1)).unwrap()),
            end_time: None,
        }),
        ..kinds(&["VmEvent"])
    };
    assert_eq!(classes(&query(&story, late).await.unwrap()), ["VmRenamedEvent"]);
    let chain = EventFilterSpec { event_chain_id: Some(renamed.chain_id), ..Default::default() };
    assert_eq!(classes(&query(&story, chain).await.unwrap()), ["TaskEvent", "VmRenamedEvent"]);
    let folder = story.find("/DC0/vm").await;
    let datacenter = story.find("/DC0").await;
    for (entity, recursion) in [(folder, Recursion::Children), (datacenter, Recursion::All)] {
        let filter = EventFilterSpec {
            event_type_id: vec!["VmRenamedEvent".into()],
            ..about(&entity, recursion)
        };
        assert_eq!(query(&story, filter).await.unwrap().len(), 1);
    }
    let newest = EventFilterSpec { max_count: Some(1), ..Default::default() };
    assert_eq!(classes(&query(&story, newest).await.unwrap()), ["VmRenamedEvent"]);
    let quiet = EventFilterSpec { disable_full_message: Some(true), ..kinds(&["VmRenamedEvent"]) };
    assert_eq!(query(&story, quiet).await.unwrap()[0].full_formatted_message, None);
    let greedy = EventFilterSpec { max_count: Some(1001), ..Default::default() };
    assert_eq!(query(&story, greedy).await.unwrap_err().class, "InvalidArgument");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_vm_that_is_gone_are_still_found_by_its_place() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    story.power_off(&vm).await.unwrap();
    story.destroy(&vm).await.unwrap();
    let folder = story.find("/DC0/vm").await;
    let filter = EventFilterSpec {
        event_type_id: vec!["VmRemovedEvent".into()],
        ..about(&folder, Recursion::All)
    };
    assert_eq!(query(&story, filter).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_events_are_dropped() {
    let story = Story::start(Options { event_retention: 5, ..instant() }).await;
    story.worker("worker-1").await;
    let events = story.lab.vcenter.events();
    assert_eq!(events.len(), 5);
    assert!(events[0].key > 1, "the login is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_collector_scrolls_both_ways_and_shows_the_newest_page() {
    let story = Story::start(instant()).await;
    let this = story.client.content.event_manager.clone().unwrap();
    let filter = kinds(&["VmEvent"]);
    let collector = story
        .client
        .call(CreateCollectorForEvents { this: this.clone(), filter: filter.clone() })
        .await
        .unwrap();
    story
        .client
        .call(SetCollectorPageSize { this: collector.clone(), max_count: 3 })
        .await
        .unwrap();
    let mut watch = Watch::on(
        &story.client,
        PropertyFilterSpec {
            prop_set: vec![PropertySpec::new("EventHistoryCollector", &["latestPage"])],
            object_set: vec![roost_vim_wire::types::ObjectSpec {
                obj: collector.clone(),
                ..Default::default()
            }],
            report_missing_objects_in_results: None,
        },
    )
    .await;
    let first = watch.look(None).await.unwrap().unwrap();
    watch.version = Some(first.version);
    story.worker("worker-1").await;
    let set =
        watch.look(watch.version.as_deref()).await.unwrap().expect("the new events are announced");
    let change = set.filter_set[0].object_set[0].change_set.last().unwrap();
    assert_eq!(
        (change.name.as_str(), change.val.as_ref().unwrap().items().len()),
        ("latestPage", 3)
    );
    let page = story.property(&collector, "latestPage").await.unwrap();
    let page: Vec<i32> = page.data_items::<Event>().map(|event| event.key).collect();
    assert!(page.len() == 3 && page.is_sorted_by(|a, b| a > b), "newest first: {page:?}");
    story.client.call(RewindCollector { this: collector.clone() }).await.unwrap();
    let mut forward = Vec::new();
    loop {
        let call = ReadNextEvents { this: collector.clone(), max_count: 2 };
        let events = story.client.call(call).await.unwrap();
        if events.is_empty() {
            break;
        }
        forward.extend(events.into_iter().map(|event| event.key));
    }
    story.client.call(ResetCollector { this: collector.clone() }).await.unwrap();
    let call = ReadPreviousEvents { this: collector.clone(), max_count: 1000 };
    let mut backward: Vec<i32> =
        story.client.call(call).await.unwrap().iter().map(|event| event.key).collect();
    backward.reverse();
    assert!(forward.len() > 4);
    assert_eq!(forward, backward);
    story.client.call(DestroyCollector { this: collector.clone() }).await.unwrap();
    let mut open = Vec::new();
    let failed = loop {
        let call = CreateCollectorForEvents { this: this.clone(), filter: filter.clone() };
        match story.client.call(call).await {
            Ok(collector) => open.push(collector),
            Err(fault) => break fault,
        }
    };
    assert_eq!((open.len(), failed.class.as_str()), (32, "InvalidState"));
    let other = story.lab.login().await;
    other.call(CreateCollectorForEvents { this, filter }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn coming_and_going_is_told() {
    let story = Story::start(instant()).await;
    let other = story.lab.login().await;
    other.call(Logout { this: session_manager(&other) }).await.unwrap();
    let classes = story.event_classes();
    assert_eq!(
        classes,
        ["UserLoginSessionEvent", "UserLoginSessionEvent", "UserLogoutSessionEvent"]
    );
    let events = story.lab.vcenter.events();
    assert_eq!(events[2].text("sessionId"), Some(other.session.key.as_str()));
}
