//! Filters and waiting for updates.

mod lab;

use std::time::Duration;

use lab::{Client, Lab, folder, of_object};
use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{
    CancelWaitForUpdates, CheckForUpdates, CreateFilter, CreateListView, CreatePropertyCollector,
    DestroyPropertyCollector, DestroyPropertyFilter, ModifyListView, ReconfigVmTask, WaitForUpdates, WaitForUpdatesEx,
};
use roost_vim_wire::types::{
    ObjectSpec, ObjectUpdate, ObjectUpdateKind, OptionValue, PropertyChangeOp, PropertyFilterSpec, PropertySpec,
    SelectionSpec, UpdateSet, VirtualMachineConfigSpec, WaitOptions,
};
use roost_vim_wire::{Fault, MoRef, Value};
use tokio::time::{Instant, sleep};

/// A collector of its own and the version that it has seen.
struct Watch {
    client: Client,
    collector: MoRef,
    version: Option<String>,
}

impl Watch {
    async fn new(client: &Client) -> Self {
        let collector = client.call(CreatePropertyCollector { this: client.collector() }).await.unwrap();
        Self { client: client.clone(), collector, version: None }
    }

    async fn on(client: &Client, spec: PropertyFilterSpec) -> Self {
        let watch = Self::new(client).await;
        watch.add(spec).await.unwrap();
        watch
    }

    async fn add(&self, spec: PropertyFilterSpec) -> Result<MoRef, Fault> {
        self.add_with(spec, false).await
    }

    async fn add_with(&self, spec: PropertyFilterSpec, partial_updates: bool) -> Result<MoRef, Fault> {
        self.client.call(CreateFilter { this: self.collector.clone(), spec, partial_updates }).await
    }

    fn wait_call(&self, version: Option<&str>, seconds: Option<i32>, max: Option<i32>) -> WaitForUpdatesEx {
        WaitForUpdatesEx {
            this: self.collector.clone(),
            version: version.map(ToOwned::to_owned),
            options: Some(WaitOptions { max_wait_seconds: seconds, max_object_updates: max }),
        }
    }

    /// The answer at this version, without waiting, and without moving on to its version.
    async fn look(&self, version: Option<&str>) -> Result<Option<UpdateSet>, Fault> {
        self.client.call(self.wait_call(version, Some(0), None)).await
    }

    /// The next answer without waiting; moves on to its version.
    async fn next(&mut self) -> Option<UpdateSet> {
        let set = self.look(self.version.as_deref()).await.unwrap()?;
        self.version = Some(set.version.clone());
        Some(set)
    }

    /// All updates that are there, through all pages.
    async fn updates(&mut self) -> Vec<ObjectUpdate> {
        let mut all = Vec::new();
        while let Some(set) = self.next().await {
            all.extend(set.filter_set.into_iter().flat_map(|filter| filter.object_set));
            if set.truncated != Some(true) {
                break;
            }
        }
        all
    }

    async fn wait(&self, seconds: Option<i32>) -> Result<Option<UpdateSet>, Fault> {
        self.client.call(self.wait_call(self.version.as_deref(), seconds, None)).await
    }
}

async fn vms(client: &Client, paths: &[&str]) -> PropertyFilterSpec {
    let view = client.view("VirtualMachine").await;
    PropertyFilterSpec::of_view(&view, vec![PropertySpec::new("VirtualMachine", paths)])
}

fn kinds(updates: &[ObjectUpdate]) -> Vec<&str> {
    updates.iter().map(|update| update.kind.as_str()).collect()
}

fn change<'a>(update: &'a ObjectUpdate, path: &str) -> Option<&'a Value> {
    update.change_set.iter().find(|change| change.name == path)?.val.as_ref()
}

async fn annotate(client: &Client, vm: &MoRef, text: &str) {
    let spec = VirtualMachineConfigSpec { annotation: Some(text.into()), ..VirtualMachineConfigSpec::default() };
    let task = client.call(ReconfigVmTask { this: vm.clone(), spec }).await.unwrap();
    client.finish(&task).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_object_enters_once_and_then_only_changes_come() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, vms(&client, &["name", "config.annotation"]).await).await;
    let entered = watch.updates().await;
    assert_eq!(kinds(&entered), ["enter"; 4]);
    assert!(entered.iter().all(|update| change(update, "name").is_some()));
    let unset = entered[0].change_set.iter().find(|change| change.name == "config.annotation").unwrap();
    assert_eq!((&unset.op, &unset.val), (&PropertyChangeOp::Assign, &None));
    assert_eq!(watch.look(watch.version.as_deref()).await.unwrap(), None, "nothing changed");

    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    annotate(&client, &vm, "mine").await;
    let changed = watch.updates().await;
    assert_eq!(kinds(&changed), ["modify"]);
    assert_eq!(changed[0].obj, vm);
    assert_eq!(changed[0].change_set.len(), 1, "only what was asked and has changed: {changed:?}");
    assert_eq!(change(&changed[0], "config.annotation"), Some(&Value::string("mine")));
    annotate(&client, &vm, "").await;
    let changed = watch.updates().await;
    assert_eq!(change(&changed[0], "config.annotation"), None, "assigned without a value: now unset");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_to_who_asked_for_it_its_parent_or_its_child() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let paths = ["config.annotation", "config", "name", "summary.config.annotation", "runtime.powerState"];
    let mut watch = Watch::on(&client, of_object(&vm, &paths)).await;
    watch.updates().await;
    annotate(&client, &vm, "x").await;
    let updates = watch.updates().await;
    let mut told: Vec<_> = updates[0].change_set.iter().map(|change| change.name.as_str()).collect();
    told.sort_unstable();
    assert_eq!(told, ["config", "config.annotation", "summary.config.annotation"]);
    assert_eq!(change(&updates[0], "config").unwrap().get("annotation"), Some(Value::string("x")));
}

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
        assert_eq!(watch.look(Some(unknown)).await.unwrap_err().class, "InvalidCollectorVersion", "{unknown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_comes_again_with_what_happened_since() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let (one, two) = (client.find("/DC0/vm/DC0_H0_VM0").await, client.find("/DC0/vm/DC0_H0_VM1").await);
    let mut watch = Watch::on(&client, vms(&client, &["config.annotation"]).await).await;
    watch.updates().await;
    let known = watch.version.clone().unwrap();

    annotate(&client, &one, "a").await;
    let lost = watch.look(Some(&known)).await.unwrap().unwrap();
    annotate(&client, &two, "b").await;
    let again = watch.look(Some(&known)).await.unwrap().unwrap();
    let objects: Vec<_> = again.filter_set[0].object_set.iter().map(|update| update.obj.clone()).collect();
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
    assert_eq!(watch.look(Some(&first.version)).await.unwrap_err().class, "InvalidCollectorVersion");
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
    let truncated: Vec<_> = [watch.next().await.unwrap().truncated, watch.next().await.unwrap().truncated].into();
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
async fn a_wait_ends_when_its_time_is_over_or_something_happens() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let mut watch = Watch::on(&client, of_object(&vm, &["name"])).await;
    watch.updates().await;
    let start = Instant::now();
    assert_eq!(watch.wait(Some(60)).await.unwrap(), None);
    assert_eq!(start.elapsed(), Duration::from_secs(60));

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
async fn a_cancelled_wait_fails_and_its_version_stays_good() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, of_object(&client.content.root_folder, &["name"])).await;
    watch.updates().await;
    let waiting = tokio::spawn({
        let (client, call) = (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
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
        let (client, call) = (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
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
        let (client, call) = (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
        async move { client.call(call).await }
    });
    sleep(Duration::from_secs(1)).await;
    let added = watch.add(vms(&client, &["name"]).await).await.unwrap();
    let set = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(set.filter_set.len(), 1);
    assert_eq!((&set.filter_set[0].filter, set.filter_set[0].object_set.len()), (&added, 4));
}

#[tokio::test(start_paused = true)]
async fn each_filter_has_its_own_part_of_an_answer_and_can_end_alone() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let mut watch = Watch::new(&client).await;
    let one = watch.add(of_object(&vm, &["name"])).await.unwrap();
    let two = watch.add(of_object(&vm, &["name", "parent"])).await.unwrap();
    let set = watch.next().await.unwrap();
    let filters: Vec<_> = set.filter_set.iter().map(|part| part.filter.clone()).collect();
    assert_eq!(filters, [one.clone(), two.clone()]);
    assert_eq!(lab.vcenter.counters().open_filters, 2);
    client.call(DestroyPropertyFilter { this: one.clone() }).await.unwrap();
    client.rename(&vm, "renamed").await;
    let set = watch.next().await.unwrap();
    assert_eq!(set.filter_set.iter().map(|part| part.filter.clone()).collect::<Vec<_>>(), [two]);
    let again = client.call(DestroyPropertyFilter { this: one }).await.unwrap_err();
    assert_eq!(again.class, "ManagedObjectNotFound");
    client.call(DestroyPropertyCollector { this: watch.collector.clone() }).await.unwrap();
    let counters = lab.vcenter.counters();
    assert_eq!((counters.open_filters, counters.open_collectors), (0, 0));
    assert_eq!(watch.wait(Some(0)).await.unwrap_err().class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_destroyed_cancels_its_wait() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, of_object(&client.content.root_folder, &["name"])).await;
    watch.updates().await;
    let waiting = tokio::spawn({
        let (client, call) = (client.clone(), watch.wait_call(watch.version.as_deref(), None, None));
        async move { client.call(call).await }
    });
    sleep(Duration::from_secs(1)).await;
    client.call(DestroyPropertyCollector { this: watch.collector.clone() }).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap_err().class, "RequestCanceled");
    let default = DestroyPropertyCollector { this: client.collector() };
    assert_eq!(client.call(default).await.unwrap_err().class, "NotSupported");
}

#[tokio::test(start_paused = true)]
async fn sessions_do_not_see_each_others_filters_on_the_default_collector() {
    let lab = Lab::default().await;
    let (one, two) = (lab.login().await, lab.login().await);
    let spec = of_object(&one.content.root_folder, &["name"]);
    one.call(CreateFilter { this: one.collector(), spec, partial_updates: false }).await.unwrap();
    let wait = |client: &Client| WaitForUpdatesEx {
        this: client.collector(),
        version: None,
        options: Some(WaitOptions { max_wait_seconds: Some(0), max_object_updates: None }),
    };
    assert_eq!(one.call(wait(&one)).await.unwrap().unwrap().filter_set.len(), 1);
    assert_eq!(two.call(wait(&two)).await.unwrap(), None);
    assert_eq!(one.property(&one.collector(), "filter").await.unwrap().refs().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_selects_nothing_still_gives_a_version_to_go_on_from() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let view_manager = client.content.view_manager.clone().unwrap();
    let view = client.call(CreateListView { this: view_manager, obj: vec![] }).await.unwrap();
    let spec = PropertyFilterSpec::of_view(&view, vec![PropertySpec::new("VirtualMachine", &["name"])]);
    let mut watch = Watch::on(&client, spec).await;
    let set = watch.next().await.unwrap();
    assert!(set.filter_set.is_empty());
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let add = ModifyListView { this: view, add: vec![vm.clone()], remove: vec![] };
    assert_eq!(client.call(add).await.unwrap(), []);
    assert_eq!(watch.updates().await[0].obj, vm);
}

#[tokio::test(start_paused = true)]
async fn a_bad_filter_is_refused_and_leaves_nothing_behind() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let watch = Watch::new(&client).await;
    let fault = watch.add(vms(&client, &["name", "nonsense"]).await).await.unwrap_err();
    assert_eq!((fault.class.as_str(), fault.text("name")), ("InvalidProperty", Some("nonsense")));
    let fault = watch.add(of_object(&folder("group-v999"), &["name"])).await.unwrap_err();
    assert_eq!(fault.class, "ManagedObjectNotFound");
    let start = ObjectSpec {
        obj: client.content.root_folder.clone(),
        skip: Some(true),
        select_set: vec![SelectionSpec::traverse("Folder", "nonsense")],
    };
    let bad_step = PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("Folder", &["name"])],
        object_set: vec![start],
        ..PropertyFilterSpec::default()
    };
    assert_eq!(watch.add(bad_step).await.unwrap_err().class, "InvalidProperty");
    assert_eq!(lab.vcenter.counters().open_filters, 0);
}

#[tokio::test(start_paused = true)]
async fn a_missing_start_is_reported_in_the_answer_if_asked_for() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let gone = folder("group-v999");
    let mut spec = of_object(&gone, &["name"]);
    spec.report_missing_objects_in_results = Some(true);
    let mut watch = Watch::on(&client, spec).await;
    let set = watch.next().await.unwrap();
    let missing = &set.filter_set[0].missing_set[0];
    assert_eq!((&missing.obj, missing.fault.fault.class.as_str()), (&gone, "ManagedObjectNotFound"));
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_comes_and_goes_between_two_looks_is_never_told() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let view = client.view("Folder").await;
    let spec = PropertyFilterSpec::of_view(&view, vec![PropertySpec::new("Folder", &["name"])]);
    let mut watch = Watch::on(&client, spec).await;
    watch.updates().await;
    let parent = client.find("/DC0/vm").await;
    let brief = client.create_folder(&parent, "brief").await;
    client.destroy(&brief).await;
    let kept = client.create_folder(&parent, "kept").await;
    let updates = watch.updates().await;
    assert_eq!(kinds(&updates), ["enter"]);
    assert_eq!(updates[0].obj, kept);
    client.destroy(&kept).await;
    let updates = watch.updates().await;
    assert_eq!((kinds(&updates), updates[0].change_set.len()), (vec!["leave"], 0));
}

#[tokio::test(start_paused = true)]
async fn partial_updates_name_the_member_that_changed() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let (mut whole, mut partial) = (Watch::new(&client).await, Watch::new(&client).await);
    whole.add_with(of_object(&vm, &["config.extraConfig"]), false).await.unwrap();
    partial.add_with(of_object(&vm, &["config.extraConfig"]), true).await.unwrap();
    whole.updates().await;
    partial.updates().await;
    let set = |value: &str| VirtualMachineConfigSpec {
        extra_config: vec![OptionValue::text("guestinfo.x", value)],
        ..VirtualMachineConfigSpec::default()
    };
    for (value, op) in [("1", PropertyChangeOp::Add), ("2", PropertyChangeOp::Assign), ("", PropertyChangeOp::Remove)] {
        let task = client.call(ReconfigVmTask { this: vm.clone(), spec: set(value) }).await.unwrap();
        client.finish(&task).await.unwrap();
        let updates = whole.updates().await;
        let names: Vec<_> = updates[0].change_set.iter().map(|change| (change.name.as_str(), &change.op)).collect();
        assert_eq!(names, [("config.extraConfig", &PropertyChangeOp::Assign)]);
        let updates = partial.updates().await;
        let change = &updates[0].change_set[0];
        assert_eq!((change.name.as_str(), &change.op), (r#"config.extraConfig["guestinfo.x"]"#, &op));
        assert_eq!(change.val.is_some(), op != PropertyChangeOp::Remove);
    }
}

#[tokio::test(start_paused = true)]
async fn a_traversal_follows_what_it_walks_along() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut down = SelectionSpec::traverse("Folder", "childEntity");
    down.name = Some("down".into());
    down.select_set = vec![SelectionSpec::named("down")];
    let root = client.find("/DC0/vm").await;
    let start = ObjectSpec { obj: root.clone(), skip: Some(true), select_set: vec![down] };
    let spec = PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("ManagedEntity", &["name"])],
        object_set: vec![start],
        ..PropertyFilterSpec::default()
    };
    let mut watch = Watch::on(&client, spec).await;
    assert_eq!(watch.updates().await.len(), 4);
    let outer = client.create_folder(&root, "outer").await;
    let inner = client.create_folder(&outer, "inner").await;
    let entered = watch.updates().await;
    assert_eq!(entered.iter().map(|update| update.obj.clone()).collect::<Vec<_>>(), [outer.clone(), inner.clone()]);
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let into = |list: &MoRef, to: &MoRef| roost_vim_wire::methods::MoveIntoFolderTask {
        this: to.clone(),
        list: vec![list.clone()],
    };
    let task = client.call(into(&vm, &inner)).await.unwrap();
    client.finish(&task).await.unwrap();
    let moved = watch.updates().await;
    assert!(moved.iter().all(|update| update.kind == ObjectUpdateKind::Modify && update.obj == vm), "{moved:?}");
    client.rename(&vm, "inside").await;
    assert_eq!(watch.updates().await.len(), 1, "it is still followed where it is now");
}
