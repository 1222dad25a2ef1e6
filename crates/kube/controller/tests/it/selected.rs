//! A watch with a selector: objects that leave the selection and come back, lists that are short, and answers that never come.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::watcher;
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use roost_controller::{Cause, Manager, Store};
use roost_kube_sim::{Action, Rule, RuleId, When};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, secs};

/// Watches the maps that bear `chosen=yes`.
struct Desk {
    lab: Lab,
    maps: Api<ConfigMap>,
    store: Store<ConfigMap>,
    told: Arc<Mutex<Vec<(String, Cause)>>>,
    /// So many lists are served empty.
    short_lists: Arc<AtomicU32>,
}

impl Desk {
    async fn new() -> Self {
        let lab = Lab::new().await;
        let short_lists = Arc::new(AtomicU32::new(0));
        let client = forgetful(&lab, &short_lists);
        let mut manager = Manager::new(client.clone(), "maps", &mut Registry::default());
        let chosen = watcher::Config::default().labels("chosen=yes").fields("metadata.name!=never");
        let watch = manager.watch_with(Api::<ConfigMap>::all(client), (), chosen);
        let (store, told) = (watch.store(), Arc::<Mutex<Vec<_>>>::default());
        let heard = Arc::clone(&told);
        watch.listen(move |change| {
            let name = change.object.metadata.name.clone().unwrap();
            heard.lock().unwrap().push((name, change.cause));
        });
        tokio::spawn(manager.observe(std::future::pending()));
        let maps = Api::namespaced(lab.client.clone(), "default");
        let desk = Self { lab, maps, store, told, short_lists };
        for name in ["a", "b", "c"] {
            desk.create(name).await;
        }
        sleep(secs(2)).await;
        assert_eq!(desk.names(), ["a", "b", "c"]);
        desk.told.lock().unwrap().clear();
        desk
    }

    async fn create(&self, name: &str) {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let mut map = ConfigMap { metadata, ..ConfigMap::default() };
        map.metadata.labels = Some(BTreeMap::from([("chosen".to_owned(), "yes".to_owned())]));
        self.maps.create(&PostParams::default(), &map).await.unwrap();
    }

    async fn choose(&self, name: &str, chosen: Option<&str>) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"chosen": chosen}}}));
        self.maps.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        self.maps.delete(name, &DeleteParams::default()).await.unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.store.by_name().keys().map(|key| key.name().to_owned()).collect()
    }

    fn told(&self) -> Vec<(String, Cause)> {
        let mut told = std::mem::take(&mut *self.told.lock().unwrap());
        told.sort_by(|one, other| one.0.cmp(&other.0));
        told
    }

    /// The watch ends and must list anew.
    fn make_a_gap(&self) {
        self.lab.sim.add_rule(Rule {
            verb: "watch".to_owned(),
            resource: "configmaps".to_owned(),
            when: When { times: Some(1), ..When::default() },
            action: Action::WatchGone { after: 0 },
            ..Rule::default()
        });
        self.lab.sim.cut_watches();
    }

    /// Lists do not come back: those that are asked for one object, too.
    fn hang_lists(&self, skip: u64) -> RuleId {
        self.lab.sim.add_rule(Rule {
            verb: "list".to_owned(),
            resource: "configmaps".to_owned(),
            when: When { skip, ..When::default() },
            action: Action::Hang,
            ..Rule::default()
        })
    }
}

/// Lists of more than one object come back empty while there are some left to serve so.
fn forgetful(lab: &Lab, short_lists: &Arc<AtomicU32>) -> Client {
    let (inner, sim, left) = (lab.sim.client(), lab.sim.clone(), Arc::clone(short_lists));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, query) = (inner.clone(), request.uri().query().unwrap_or_default().to_owned());
        let is_list = !query.contains("watch=") && !query.contains("metadata.name%3D");
        let version = sim.revision().to_string();
        let take_one = |left: u32| left.checked_sub(1);
        let is_short =
            is_list && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok();
        async move {
            if !is_short {
                return inner.send(request).await;
            }
            let empty = json!({
                "apiVersion": "v1", "kind": "ConfigMapList",
                "metadata": {"resourceVersion": version}, "items": [],
            });
            Ok(http::Response::new(Body::from(empty.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

fn one(name: &str, cause: Cause) -> (String, Cause) {
    (name.to_owned(), cause)
}

#[tokio::test(start_paused = true)]
async fn an_object_that_loses_its_label_and_gets_it_back_is_seen_again() {
    let desk = Desk::new().await;
    for _ in 0..3 {
        desk.choose("a", None).await;
        sleep(secs(1)).await;
        assert_eq!(desk.names(), ["b", "c"]);
        desk.choose("a", Some("yes")).await;
        sleep(secs(1)).await;
        assert_eq!(desk.names(), ["a", "b", "c"]);
        assert_eq!(desk.told(), [one("a", Cause::Deleted), one("a", Cause::Created)]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_leaves_the_selection_in_a_gap_is_told_and_seen_when_it_is_back() {
    let desk = Desk::new().await;
    desk.make_a_gap();
    desk.choose("a", None).await;
    desk.delete("b").await;
    sleep(secs(30)).await;
    assert_eq!(desk.names(), ["c"]);
    assert_eq!(desk.told(), [one("a", Cause::Deleted), one("b", Cause::Deleted)]);
    desk.choose("a", Some("yes")).await;
    sleep(secs(1)).await;
    assert_eq!(desk.names(), ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_of_a_selection_deletes_nothing() {
    let desk = Desk::new().await;
    desk.short_lists.store(1, Ordering::Relaxed);
    desk.make_a_gap();
    desk.delete("b").await;
    sleep(secs(30)).await;
    assert_eq!(desk.short_lists.load(Ordering::Relaxed), 0, "a short list was served");
    assert_eq!(desk.names(), ["a", "c"]);
    assert_eq!(desk.told(), [one("b", Cause::Deleted)], "and nothing else");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_never_answered_keeps_nobody_from_the_events() {
    let desk = Desk::new().await;
    // The list after the gap is answered, the questions that follow are not.
    let hangs = desk.hang_lists(1);
    desk.make_a_gap();
    desk.delete("b").await;
    sleep(secs(12)).await;
    desk.create("d").await;
    sleep(secs(12)).await;
    assert_eq!(desk.names(), ["a", "b", "c", "d"], "of b nothing is known, d came by the watch");
    desk.lab.sim.remove_rule(hangs);
    // Events all the time do not put the question off.
    for number in 0..30 {
        sleep(secs(1)).await;
        let patch = Patch::Merge(json!({"data": {"number": number.to_string()}}));
        desk.maps.patch("d", &PatchParams::default(), &patch).await.unwrap();
    }
    assert_eq!(desk.names(), ["a", "c", "d"]);
}
