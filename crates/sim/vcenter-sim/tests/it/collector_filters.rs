//! What filters tell.

use crate::lab::watch::{Watch, annotate, change, kinds, vms};
use crate::lab::{Client, Lab, folder, of_object};
use roost_vim_wire::methods::{
    CreateFilter, CreateSnapshotTask, DestroyPropertyCollector, DestroyPropertyFilter,
    ReconfigVmTask, RemoveAllSnapshotsTask, WaitForUpdatesEx,
};
use roost_vim_wire::types::{
    ObjectSpec, ObjectUpdateKind, OptionValue, PropertyChangeOp, PropertyFilterSpec, PropertySpec,
    SelectionSpec, VirtualMachineConfigSpec, WaitOptions,
};
use roost_vim_wire::{MoRef, Value};

#[tokio::test(start_paused = true)]
async fn every_object_enters_once_and_then_only_changes_come() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut watch = Watch::on(&client, vms(&client, &["name", "config.annotation"]).await).await;
    let entered = watch.updates().await;
    assert_eq!(kinds(&entered), ["enter"; 4]);
    assert!(entered.iter().all(|update| change(update, "name").is_some()));
    let unset =
        entered[0].change_set.iter().find(|change| change.name == "config.annotation").unwrap();
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
    assert_eq!(
        change(&changed[0], "config.annotation"),
        None,
        "assigned without a value: now unset"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_to_who_asked_for_it_its_parent_or_its_child() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let paths =
        ["config.annotation", "config", "name", "summary.config.annotation", "runtime.powerState"];
    let mut watch = Watch::on(&client, of_object(&vm, &paths)).await;
    watch.updates().await;
    annotate(&client, &vm, "x").await;
    let updates = watch.updates().await;
    let mut told: Vec<_> =
        updates[0].change_set.iter().map(|change| change.name.as_str()).collect();
    told.sort_unstable();
    assert_eq!(told, ["config", "config.annotation", "summary.config.annotation"]);
    assert_eq!(change(&updates[0], "config").unwrap().get("annotation"), Some(Value::string("x")));
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
    assert_eq!(
        (&missing.obj, missing.fault.fault.class.as_str()),
        (&gone, "ManagedObjectNotFound")
    );
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
    for (value, op) in [
        ("1", PropertyChangeOp::Add),
        ("2", PropertyChangeOp::Assign),
        ("", PropertyChangeOp::Remove),
    ] {
        let task =
            client.call(ReconfigVmTask { this: vm.clone(), spec: set(value) }).await.unwrap();
        client.finish(&task).await.unwrap();
        let updates = whole.updates().await;
        let names: Vec<_> =
            updates[0].change_set.iter().map(|change| (change.name.as_str(), &change.op)).collect();
        assert_eq!(names, [("config.extraConfig", &PropertyChangeOp::Assign)]);
        let updates = partial.updates().await;
        let change = &updates[0].change_set[0];
        assert_eq!(
            (change.name.as_str(), &change.op),
            (r#"config.extraConfig["guestinfo.x"]"#, &op)
        );
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
    assert_eq!(
        entered.iter().map(|update| update.obj.clone()).collect::<Vec<_>>(),
        [outer.clone(), inner.clone()]
    );
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let into = |list: &MoRef, to: &MoRef| roost_vim_wire::methods::MoveIntoFolderTask {
        this: to.clone(),
        list: vec![list.clone()],
    };
    let task = client.call(into(&vm, &inner)).await.unwrap();
    client.finish(&task).await.unwrap();
    let moved = watch.updates().await;
    assert!(
        moved.iter().all(|update| update.kind == ObjectUpdateKind::Modify && update.obj == vm),
        "{moved:?}"
    );
    client.rename(&vm, "inside").await;
    assert_eq!(watch.updates().await.len(), 1, "it is still followed where it is now");
}

#[tokio::test(start_paused = true)]
async fn a_part_of_what_is_no_more_is_removed_indirectly() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let snapshot =
        CreateSnapshotTask { this: vm.clone(), name: "s".into(), ..CreateSnapshotTask::default() };
    let task = client.call(snapshot).await.unwrap();
    client.finish(&task).await.unwrap();
    let mut watch =
        Watch::on(&client, of_object(&vm, &["snapshot", "snapshot.currentSnapshot"])).await;
    watch.updates().await;
    let remove = RemoveAllSnapshotsTask { this: vm.clone(), consolidate: None };
    let task = client.call(remove).await.unwrap();
    client.finish(&task).await.unwrap();
    let updates = watch.updates().await;
    let ops: Vec<_> = updates[0]
        .change_set
        .iter()
        .map(|change| (change.name.as_str(), change.op.as_str()))
        .collect();
    assert_eq!(ops, [("snapshot", "assign"), ("snapshot.currentSnapshot", "indirectRemove")]);
    assert!(updates[0].change_set.iter().all(|change| change.val.is_none()));
}
