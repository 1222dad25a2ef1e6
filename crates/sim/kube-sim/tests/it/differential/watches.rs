//! The events that a script caused, as different watchers see them.

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kube::Client;
use kube::api::WatchEvent;
use serde_json::{Value, json};

use super::plain::plain;

/// What watchers ask for beside the version that they begin at.
const WATCHERS: [&str; 4] = [
    "",
    // Objects come into the selection and leave it.
    "&labelSelector=app%3Dx",
    "&labelSelector=half%3Dlow",
    "&fieldSelector=metadata.name%3Dp2",
];

/// The state first and then a mark.
const FROM_STATE: &str =
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// The differences between two servers, each with the version at which the script began.
pub(super) async fn compare(
    (real, from_real): (&Client, &str),
    (ours, from_ours): (&Client, &str),
    path: &str,
) -> Vec<String> {
    let since = |watcher: &str, from: &str| format!("resourceVersion={from}{watcher}");
    let mut pairs: Vec<_> = WATCHERS
        .iter()
        .map(|watcher| (since(watcher, from_real), since(watcher, from_ours)))
        .collect();
    pairs.push((FROM_STATE.to_owned(), FROM_STATE.to_owned()));
    let seen = join_all(pairs.iter().map(|(at_real, at_ours)| async move {
        (events(real, path, at_real).await, events(ours, path, at_ours).await)
    }));
    let texts = |events: &[Value]| {
        events.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n    ")
    };
    let seen = seen.await;
    // Else nothing is compared.
    assert!(!seen[0].0.is_empty(), "no events of {path}");
    pairs
        .iter()
        .zip(seen)
        .filter(|(_, (want, got))| want != got)
        .map(|((query, _), (want, got))| {
            format!(
                "events of {path}?{query}\n  real\n    {}\n  ours\n    {}",
                texts(&want),
                texts(&got)
            )
        })
        .collect()
}

/// Types and objects of what a watch tells within two seconds.
async fn events(client: &Client, path: &str, query: &str) -> Vec<Value> {
    let uri = format!("{path}?watch=true&timeoutSeconds=2&{query}");
    let request = http::Request::get(uri).body(Vec::new()).unwrap();
    let events = client.request_events::<Value>(request).await.unwrap();
    let events: Vec<Result<WatchEvent<Value>, kube::Error>> = events.collect().await;
    events
        .into_iter()
        .filter_map(|event| match event.unwrap() {
            WatchEvent::Added(object) => Some(json!(["ADDED", plain(object)])),
            WatchEvent::Modified(object) => Some(json!(["MODIFIED", plain(object)])),
            WatchEvent::Deleted(object) => Some(json!(["DELETED", plain(object)])),
            // Others come when a server likes.
            WatchEvent::Bookmark(bookmark) => {
                let marks = bookmark.metadata.annotations;
                marks.contains_key("k8s.io/initial-events-end").then(|| json!(["BOOKMARK", marks]))
            }
            WatchEvent::Error(status) => Some(json!(["ERROR", status.code])),
        })
        .collect()
}
