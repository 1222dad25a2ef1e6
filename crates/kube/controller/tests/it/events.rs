use k8s_openapi::api::events::v1::Event;
use kube::Api;
use prometheus_client::registry::Registry;
use roost_controller::{Events, Manager};
use tokio::time::sleep;

use crate::lab::{Lab, secs};
use crate::toy::{Toy, toy};

struct Desk {
    lab: Lab,
    events: Events,
    toy: Toy,
}

impl Desk {
    async fn new() -> Self {
        let lab = Lab::new().await;
        let toy = lab.create(&toy("a", 1)).await;
        let manager = Manager::new(lab.client.clone(), "toys", &mut Registry::default());
        let events = manager.events();
        tokio::spawn(manager.run(std::future::pending()));
        Self { lab, events, toy }
    }

    async fn listed(&self) -> Vec<(String, i32)> {
        let api: Api<Event> = Api::namespaced(self.lab.client.clone(), "default");
        let list = api.list(&kube::api::ListParams::default()).await.unwrap();
        let shown = |event: Event| {
            let count = event.series.map_or(1, |series| series.count);
            (event.note.unwrap_or_default(), count)
        };
        list.items.into_iter().map(shown).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_event_again_counts_instead_of_being_another() {
    let desk = Desk::new().await;
    desk.events.normal(&desk.toy, "Created", "machine made");
    sleep(secs(1)).await;
    assert_eq!(desk.listed().await, [("machine made".to_owned(), 1)]);
    let revision = desk.lab.sim.revision();
    for _ in 0..100 {
        desk.events.normal(&desk.toy, "Created", "machine made");
        sleep(secs(1)).await;
    }
    sleep(secs(40)).await;
    assert_eq!(desk.listed().await, [("machine made".to_owned(), 101)]);
    assert!(desk.lab.sim.revision() <= revision + 5, "a count is written now and then");
}

/// As the longest back-off does.
#[tokio::test(start_paused = true)]
async fn a_condition_that_stays_for_hours_is_one_event_with_a_count() {
    let desk = Desk::new().await;
    for _ in 0..12 {
        desk.events.warning(&desk.toy, "Failed", "the datastore is full");
        sleep(secs(16 * 60)).await;
    }
    assert_eq!(desk.listed().await, [("the datastore is full".to_owned(), 12)]);
    sleep(secs(30 * 60)).await;
    desk.events.warning(&desk.toy, "Failed", "the datastore is full");
    sleep(secs(60)).await;
    let again = [12, 1].map(|count| ("the datastore is full".to_owned(), count));
    assert_eq!(desk.listed().await, again, "after a while it is news again");
}

#[tokio::test(start_paused = true)]
async fn an_object_has_a_budget_of_events() {
    let desk = Desk::new().await;
    for number in 0..100 {
        desk.events.warning(&desk.toy, "Failed", &format!("failure {number}"));
    }
    sleep(secs(1)).await;
    assert_eq!(desk.listed().await.len(), 25);
    sleep(secs(301)).await;
    desk.events.warning(&desk.toy, "Failed", "one more");
    desk.events.warning(&desk.toy, "Failed", "one too many");
    sleep(secs(1)).await;
    assert_eq!(desk.listed().await.len(), 26);
}
