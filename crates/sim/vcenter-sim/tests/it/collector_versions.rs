//! Versions and pages of updates.

use crate::lab::watch::{Watch, annotate, vms};
use crate::lab::{Lab, of_object};
use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{CheckForUpdates, CreateListView, ModifyListView, WaitForUpdates};
use roost_vim_wire::types::{PropertyFilterSpec, PropertySpec};

#[tokio::test(start_paused = true)]
async fn versions_grow_and_unknown_ones_are_refused() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, of_object(&client.content.root_folder, &["name"])).await;
    let mut last = 0;
    for _ in 0..3 {
        watch.version = None;
        watch.next().await.unwrap();
        let version: u64 = watch.version.as_ref().unwrap().parse().unwrap();
        assert!(version > last, "also when the client starts over");
        last = version;
    }
    for unknown in ["0", "999", "P", "-"] {
        assert_eq!(
            watch.look(Some(unknown)).await.unwrap_err().class,
            "InvalidCollectorVersion",
            "{unknown}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_comes_again_with_what_happened_since() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let (one, two) =
        (client.find("/DC0/vm/DC0_H0_VM0").await, client.find("/DC0/vm/DC0_H0_VM1").await);
    let mut watch = Watch::on(&client, vms(&client, &["config.annotation"]).await).await;
    watch.updates().await;
    let known = watch.version.clone().unwrap();

    annotate(&client, &one, "a").await;
    let lost = watch.look(Some(&known)).await.unwrap().unwrap();
    annotate(&client, &two, "b").await;
    let again = watch.look(Some(&known)).await.unwrap().unwrap();
    let objects: Vec<_> =
        again.filter_set[0].object_set.iter().map(|update| update.obj.clone()).collect();
    assert_eq!(objects, [one, two]);
    assert_ne!(again.version, lost.version);
    assert_eq!(watch.look(Some(&lost.version)).await.unwrap_err().class, "InvalidCollectorVersion");
    assert_eq!(watch.look(Some(&again.version)).await.unwrap(), None, "acknowledged");
    // Acknowledged, and so the one before it is over.
    assert_eq!(watch.look(Some(&known)).await.unwrap_err().class, "InvalidCollectorVersion");
}

#[tokio::test(start_paused = true)]
async fn a_truncated_version_can_be_used_once() {
    let lab = Lab::start(Options { vms: 250, standalone_hosts: 0, ..Options::default() }).await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, vms(&client, &["name"]).await).await;
    let first = watch.next().await.unwrap();
    assert_eq!((first.truncated, first.filter_set[0].object_set.len()), (Some(true), 100));
    let second = watch.look(Some(&first.version)).await.unwrap().unwrap();
    assert_eq!(second.filter_set[0].object_set.len(), 100);
    assert_eq!(
        watch.look(Some(&first.version)).await.unwrap_err().class,
        "InvalidCollectorVersion"
    );
    let third = watch.look(Some(&second.version)).await.unwrap().unwrap();
    assert_eq!((third.truncated, third.filter_set[0].object_set.len()), (None, 50));
    watch.version = None;
    assert_eq!(watch.updates().await.len(), 250, "starting over is always possible");
}

#[tokio::test(start_paused = true)]
async fn an_exact_multiple_of_a_page_has_no_empty_last_page() {
    let lab = Lab::start(Options { vms: 200, standalone_hosts: 0, ..Options::default() }).await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, vms(&client, &["name"]).await).await;
    let truncated: Vec<_> =
        [watch.next().await.unwrap().truncated, watch.next().await.unwrap().truncated].into();
    assert_eq!(truncated, [Some(true), None]);
}

#[tokio::test(start_paused = true)]
async fn the_client_may_ask_for_smaller_pages_only() {
    let lab = Lab::start(Options { vms: 250, standalone_hosts: 0, ..Options::default() }).await;
    let client = lab.login().await;
    let watch = Watch::on(&client, vms(&client, &["name"]).await).await;
    for (asked, got) in [(Some(3), 3), (Some(150), 100), (None, 100)] {
        let set = client.call(watch.wait_call(None, Some(0), asked)).await.unwrap().unwrap();
        assert_eq!(set.filter_set[0].object_set.len(), got);
    }
    for (seconds, max) in [(Some(0), Some(0)), (Some(0), Some(-1)), (Some(-1), None)] {
        let fault = client.call(watch.wait_call(None, seconds, max)).await.unwrap_err();
        assert_eq!(fault.class, "InvalidArgument", "{seconds:?} {max:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_older_methods_answer_without_pages() {
    let lab = Lab::start(Options { vms: 250, standalone_hosts: 0, ..Options::default() }).await;
    let client = lab.login().await;
    let watch = Watch::on(&client, vms(&client, &["name"]).await).await;
    let this = watch.collector.clone();
    let check = CheckForUpdates { this: this.clone(), version: None };
    let set = client.call(check).await.unwrap().unwrap();
    assert_eq!(set.filter_set[0].object_set.len(), 250);
    let check = CheckForUpdates { this: this.clone(), version: Some(set.version) };
    assert_eq!(client.call(check).await.unwrap(), None);
    let all = client.call(WaitForUpdates { this, version: None }).await.unwrap();
    assert_eq!(all.filter_set[0].object_set.len(), 250);
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_selects_nothing_still_gives_a_version_to_go_on_from() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let view_manager = client.content.view_manager.clone().unwrap();
    let view = client.call(CreateListView { this: view_manager, obj: vec![] }).await.unwrap();
    let spec =
        PropertyFilterSpec::of_view(&view, vec![PropertySpec::new("VirtualMachine", &["name"])]);
    let mut watch = Watch::on(&client, spec).await;
    let set = watch.next().await.unwrap();
    assert!(set.filter_set.is_empty());
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let add = ModifyListView { this: view, add: vec![vm.clone()], remove: vec![] };
    assert_eq!(client.call(add).await.unwrap(), []);
    assert_eq!(watch.updates().await[0].obj, vm);
}
