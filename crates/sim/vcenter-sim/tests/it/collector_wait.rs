//! Waiting for updates.

use std::time::Duration;

use crate::lab::watch::{Watch, annotate, change, vms};
use crate::lab::{Lab, of_object};
use roost_vim_wire::Value;
use roost_vim_wire::methods::{CancelWaitForUpdates, DestroyPropertyCollector};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_its_time_is_over_or_something_happens() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let mut watch = Watch::on(&client, of_object(&vm, &["name"])).await;
    watch.updates().await;
    let start = Instant::now();
    assert_eq!(watch.wait(Some(60)).await.unwrap(), None);
    assert_eq!(start.elapsed(), Duration::from_mins(1));

    let waiting = tokio::spawn({
        let call = watch.wait_call(watch.version.as_deref(), None, None);
        let client = client.clone();
        async move { client.call(call).await }
    });
    // An update that this filter does not look at is no reason to answer.
    annotate(&client, &vm, "x").await;
    sleep(Duration::from_mins(5)).await;
    assert!(!waiting.is_finished());
    client.rename(&vm, "renamed").await;
    let set = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(change(&set.filter_set[0].object_set[0], "name"), Some(&Value::string("renamed")));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_fails_and_its_version_stays_good() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, of_object(&client.content.root_folder, &["name"])).await;
    watch.updates().await;
    let waiting = tokio::spawn({
        let (client, call) =
            (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
        async move { client.call(call).await }
    });
    sleep(Duration::from_secs(1)).await;
    client.call(CancelWaitForUpdates { this: watch.collector.clone() }).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap_err().class, "RequestCanceled");
    assert_eq!(watch.next().await, None);
    client.call(CancelWaitForUpdates { this: watch.collector.clone() }).await.unwrap();
    assert_eq!(watch.next().await, None, "a cancel without a wait is not kept for the next one");
}

#[tokio::test(start_paused = true)]
async fn a_second_wait_takes_the_place_of_the_first() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let mut watch = Watch::on(&client, of_object(&vm, &["name"])).await;
    watch.updates().await;
    let wait = || {
        let (client, call) =
            (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
        tokio::spawn(async move { client.call(call).await })
    };
    let first = wait();
    sleep(Duration::from_secs(1)).await;
    let second = wait();
    assert_eq!(first.await.unwrap().unwrap_err().class, "RequestCanceled");
    client.rename(&vm, "renamed").await;
    assert!(second.await.unwrap().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_is_added_during_a_wait_is_told_by_that_wait() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, of_object(&client.content.root_folder, &["name"])).await;
    watch.updates().await;
    let waiting = tokio::spawn({
        let (client, call) =
            (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
        async move { client.call(call).await }
    });
    sleep(Duration::from_secs(1)).await;
    let added = watch.add(vms(&client, &["name"]).await).await.unwrap();
    let set = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(set.filter_set.len(), 1);
    assert_eq!((&set.filter_set[0].filter, set.filter_set[0].object_set.len()), (&added, 4));
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_destroyed_cancels_its_wait() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, of_object(&client.content.root_folder, &["name"])).await;
    watch.updates().await;
    let waiting = tokio::spawn({
        let (client, call) =
            (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
        async move { client.call(call).await }
    });
    sleep(Duration::from_secs(1)).await;
    client.call(DestroyPropertyCollector { this: watch.collector.clone() }).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap_err().class, "RequestCanceled");
    let default = DestroyPropertyCollector { this: client.collector() };
    assert_eq!(client.call(default).await.unwrap_err().class, "NotSupported");
}
