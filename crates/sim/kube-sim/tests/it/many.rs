//! Ten thousand objects.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use roost_clock::SystemClock;
use roost_kube_sim::{KubeSim, Options};
use serde_json::json;

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
