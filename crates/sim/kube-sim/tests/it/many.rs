//! Ten thousand objects.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use roost_clock::SystemClock;
use roost_kube_sim::{KubeSim, Options};
use serde_json::json;
use tokio::time::Instant;

const OBJECTS: usize = 10_000;

#[tokio::test]
async fn a_change_among_ten_thousand_objects_is_one_event_and_pages_are_of_one_moment() {
    let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
    let clock = tokio::time::Instant::now();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    for index in 0..OBJECTS {
        let object = json!({"metadata": {"name": format!("c{index:05}")}, "data": {"k": "v"}});
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let made = clock.elapsed();

    let clock = tokio::time::Instant::now();
    let all = api.list(&ListParams::default()).await.unwrap();
    let listed = clock.elapsed();
    assert_eq!(all.items.len(), OBJECTS);
    let from = all.metadata.resource_version.unwrap();

    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(Box::pin(api.watch(&WatchParams::default(), &from).await.unwrap()));
    }
    let clock = tokio::time::Instant::now();
    for round in 0..100 {
        let name = format!("c{:05}", round * 97);
        let patch = json!({"data": {"k": round.to_string()}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        for stream in &mut streams {
            match pin!(stream).next().await.unwrap().unwrap() {
                WatchEvent::Modified(object) => {
                    assert_eq!(object.metadata.name.as_ref(), Some(&name));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let watched = clock.elapsed();
    println!(
        "{OBJECTS} objects: created in {made:?}, listed in {listed:?}; 100 changes seen by 10 watches in {watched:?}"
    );

    let mut params = ListParams::default().limit(500);
    let mut names = Vec::new();
    loop {
        let page = api.list(&params).await.unwrap();
        names.extend(page.items.into_iter().filter_map(|object| object.metadata.name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = ListParams::default().limit(500).continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names.len(), OBJECTS);
    assert!(names.is_sorted());
}

/// The least that one of these took; what disturbs a round only ever makes it slower.
async fn best_of(rounds: usize, mut work: impl AsyncFnMut(usize)) -> Duration {
    let mut best = Duration::MAX;
    for round in 0..rounds {
        let clock = Instant::now();
        work(round).await;
        best = best.min(clock.elapsed());
    }
    best
}

struct Costs {
    /// One change, until a watch has shown it.
    change: Duration,
    /// A list of which nothing is known yet, and one after ten changes. As text: a client's reading is not the server's.
    first_list: Duration,
    next_list: Duration,
}

async fn costs(objects: usize) -> Costs {
    let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let data: BTreeMap<_, _> =
        (0..30).map(|key| (format!("k{key}"), "value ".repeat(20))).collect();
    for index in 0..objects {
        let object = json!({"metadata": {"name": format!("c{index:05}")}, "data": data});
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let change = async |index: usize, value: usize| {
        let patch = json!({"data": {"k": value.to_string()}});
        let name = format!("c{:05}", index % objects);
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    };
    let list = async || {
        let request = http::Request::get("/api/v1/namespaces/default/configmaps");
        let text = sim.client().request_text(request.body(Vec::new()).unwrap()).await.unwrap();
        assert!(text.len() > objects * 1000);
    };
    let first_list = best_of(1, async |_| list().await).await;
    let mut next_list = Duration::MAX;
    for round in 0..5 {
        for index in 0..10 {
            change(index, round).await;
        }
        next_list = next_list.min(best_of(1, async |_| list().await).await);
    }
    let from = sim.revision().to_string();
    let mut watch = Box::pin(api.watch(&WatchParams::default(), &from).await.unwrap());
    let change = best_of(200, async |round| {
        change(round, 1000 + round).await;
        watch.next().await.unwrap().unwrap();
    })
    .await;
    Costs { change, first_list, next_list }
}

#[tokio::test]
async fn a_change_and_a_list_cost_what_changed_and_not_how_much_there_is() {
    let (few, many) = (costs(OBJECTS / 20).await, costs(OBJECTS).await);
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    let change = ratio(many.change, few.change);
    assert!(change < 4.0, "with twenty times the objects a change takes {change:.1} times as long");
    let list = ratio(many.first_list, many.next_list);
    assert!(
        list > 2.0,
        "after ten changes a list is only {list:.1} times as fast as the first one"
    );
}
