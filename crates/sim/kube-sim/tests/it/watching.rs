//! Watches: events, selectors, bookmarks, gaps.

use std::pin::pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use crate::world::sim;

fn config(name: &str, label: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": label}}})).unwrap()
}

async fn next(
    stream: &mut (impl Stream<Item = Result<WatchEvent<ConfigMap>, kube::Error>> + Unpin),
) -> String {
    let name = |object: ConfigMap| object.metadata.name.unwrap_or_default();
    match stream.try_next().await.unwrap() {
        None => "end".to_owned(),
        Some(WatchEvent::Added(object)) => format!("added {}", name(object)),
        Some(WatchEvent::Modified(object)) => format!("modified {}", name(object)),
        Some(WatchEvent::Deleted(object)) => format!("deleted {}", name(object)),
        Some(WatchEvent::Bookmark(mark)) => {
            let ends = mark.metadata.annotations.contains_key("k8s.io/initial-events-end");
            format!("bookmark{}", if ends { " end" } else { "" })
        }
        Some(WatchEvent::Error(status)) => format!("error {}", status.code),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_changes_from_where_it_starts() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let first = api.create(&PostParams::default(), &config("a", "x")).await.unwrap();
    api.create(&PostParams::default(), &config("b", "y")).await.unwrap();
    let from = first.metadata.resource_version.unwrap();
    let mut all = pin!(api.watch(&WatchParams::default(), &from).await.unwrap());
    let mut some = pin!(api.watch(&WatchParams::default().labels("app=x"), "0").await.unwrap());
    assert_eq!(next(&mut all).await, "added b");
    assert_eq!(next(&mut some).await, "added a");
    let label = |label: &str| Patch::Merge(json!({"metadata": {"labels": {"app": label}}}));
    api.patch("b", &PatchParams::default(), &label("x")).await.unwrap();
    api.patch("a", &PatchParams::default(), &label("z")).await.unwrap();
    api.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        [next(&mut all).await, next(&mut all).await, next(&mut all).await],
        ["modified b", "modified a", "deleted b"]
    );
    assert_eq!(
        [next(&mut some).await, next(&mut some).await, next(&mut some).await],
        ["added b", "deleted a", "deleted b"]
    );
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_by_the_minute_and_the_watch_ends_in_time() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let started = tokio::time::Instant::now();
    let mut stream = pin!(api.watch(&WatchParams::default().timeout(150), "1").await.unwrap());
    assert_eq!(
        [next(&mut stream).await, next(&mut stream).await, next(&mut stream).await],
        ["bookmark", "bookmark", "end"]
    );
    assert_eq!(started.elapsed(), Duration::from_secs(150));
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_bookmark() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    api.create(&PostParams::default(), &config("a", "x")).await.unwrap();
    let params = WatchParams { send_initial_events: true, ..WatchParams::default() };
    let mut stream = pin!(api.watch(&params, "").await.unwrap());
    assert_eq!([next(&mut stream).await, next(&mut stream).await], ["added a", "bookmark end"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_must_start_over() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let first = api.create(&PostParams::default(), &config("a", "x")).await.unwrap();
    api.create(&PostParams::default(), &config("b", "x")).await.unwrap();
    sim.compact();
    let from = first.metadata.resource_version.unwrap();
    let mut stream = pin!(api.watch(&WatchParams::default(), &from).await.unwrap());
    assert_eq!(next(&mut stream).await, "error 410");
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_ends_and_a_watcher_goes_on_without_loss() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let mut stream = pin!(api.watch(&WatchParams::default(), "0").await.unwrap());
    api.create(&PostParams::default(), &config("a", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await, "added a");
    assert_eq!(sim.cut_watches(), 1);
    assert_eq!(next(&mut stream).await, "end");
    assert!(stream.next().await.is_none());
}
