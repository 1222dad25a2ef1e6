//! Views, and filters that look at them.

use crate::lab::{Client, Lab, folder, session_manager};
use roost_vim_wire::methods::{
    CreateFilter, CreateListView, CreatePropertyCollector, DestroyView, Logout, ModifyListView,
    MoveIntoFolderTask, ResetListView, WaitForUpdatesEx,
};
use roost_vim_wire::types::{PropertyFilterSpec, PropertySpec, UpdateSet, WaitOptions};
use roost_vim_wire::{MoRef, MoType};

async fn members(client: &Client, view: &MoRef) -> Vec<MoRef> {
    client.property(view, "view").await.unwrap().refs().cloned().collect()
}

async fn list_view(client: &Client, objects: &[&MoRef]) -> MoRef {
    let this = client.content.view_manager.clone().unwrap();
    let obj = objects.iter().map(|obj| (*obj).clone()).collect();
    client.call(CreateListView { this, obj }).await.unwrap()
}

/// A filter on the names of a view's members; each call gives what is new.
struct Names {
    client: Client,
    collector: MoRef,
    version: Option<String>,
}

impl Names {
    async fn of(client: &Client, view: &MoRef) -> Self {
        let collector =
            client.call(CreatePropertyCollector { this: client.collector() }).await.unwrap();
        let spec =
            PropertyFilterSpec::of_view(view, vec![PropertySpec::new("ManagedEntity", &["name"])]);
        client
            .call(CreateFilter { this: collector.clone(), spec, partial_updates: false })
            .await
            .unwrap();
        let mut names = Self { client: client.clone(), collector, version: None };
        names.news().await;
        names
    }

    async fn news(&mut self) -> Vec<(String, MoRef)> {
        let call = WaitForUpdatesEx {
            this: self.collector.clone(),
            version: self.version.clone(),
            options: Some(WaitOptions { max_wait_seconds: Some(0), max_object_updates: None }),
        };
        let Some(UpdateSet { version, filter_set, truncated }) =
            self.client.call(call).await.unwrap()
        else {
            return Vec::new();
        };
        assert_eq!(truncated, None);
        self.version = Some(version);
        let updates = filter_set.into_iter().flat_map(|part| part.object_set);
        updates.map(|update| (update.kind.to_string(), update.obj)).collect()
    }
}

fn news(all: &[(&str, &MoRef)]) -> Vec<(String, MoRef)> {
    all.iter().map(|(kind, obj)| ((*kind).to_owned(), (*obj).clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_container_view_shows_what_is_below_its_container() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let below = |path: &'static str, kind: &'static str, recursive: bool| {
        let client = client.clone();
        async move {
            let container = client.find(path).await;
            let view = client.view_below(&container, &[kind], recursive).await.unwrap();
            let mut names = client.names(&view, "ManagedEntity").await;
            names.sort();
            names
        }
    };
    let all = ["DC0_C0_RP0_VM0", "DC0_C0_RP0_VM1", "DC0_H0_VM0", "DC0_H0_VM1"];
    assert_eq!(below("/", "VirtualMachine", true).await, all);
    assert_eq!(below("/DC0", "VirtualMachine", true).await, all);
    assert_eq!(below("/DC0/vm", "VirtualMachine", false).await, all);
    assert_eq!(below("/DC0", "VirtualMachine", false).await, [""; 0]);
    assert_eq!(below("/DC0", "Folder", false).await, ["datastore", "host", "network", "vm"]);
    assert_eq!(below("/DC0/host/DC0_C0", "VirtualMachine", true).await, &all[..2]);
    assert_eq!(below("/DC0/host/DC0_C0/Resources", "VirtualMachine", false).await, &all[..2]);
    assert_eq!(below("/DC0/host/DC0_H0/DC0_H0", "VirtualMachine", true).await, &all[2..]);
    assert_eq!(below("/DC0/host", "ComputeResource", true).await, ["DC0_C0", "DC0_H0"]);
    assert_eq!(
        below("/DC0/host", "HostSystem", true).await,
        ["DC0_C0_H0", "DC0_C0_H1", "DC0_C0_H2", "DC0_H0"]
    );
}

#[tokio::test(start_paused = true)]
async fn only_containers_can_be_viewed() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    for path in ["/DC0/vm/DC0_H0_VM0", "/DC0/datastore/LocalDS_0"] {
        let container = client.find(path).await;
        let fault = client.view_below(&container, &["VirtualMachine"], true).await.unwrap_err();
        assert_eq!(
            (fault.class.as_str(), fault.text("invalidProperty")),
            ("InvalidArgument", Some("container"))
        );
    }
    let fault = client.view_below(&folder("group-v999"), &[], true).await.unwrap_err();
    assert_eq!(fault.class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_container_view_follows_the_inventory_without_re_entering_anything() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let root = client.find("/DC0/vm").await;
    let (all, flat) = (
        client.view_below(&root, &["Folder", "VirtualMachine"], true).await.unwrap(),
        client.view_below(&root, &["Folder", "VirtualMachine"], false).await.unwrap(),
    );
    let (mut all, mut flat) = (Names::of(&client, &all).await, Names::of(&client, &flat).await);
    let outer = client.create_folder(&root, "outer").await;
    let inner = client.create_folder(&outer, "inner").await;
    assert_eq!(all.news().await, news(&[("enter", &outer), ("enter", &inner)]));
    assert_eq!(flat.news().await, news(&[("enter", &outer)]));

    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let task = client
        .call(MoveIntoFolderTask { this: inner.clone(), list: vec![vm.clone()] })
        .await
        .unwrap();
    client.finish(&task).await.unwrap();
    assert_eq!(all.news().await, [], "it is below as before");
    assert_eq!(flat.news().await, news(&[("leave", &vm)]));

    let task = client
        .call(MoveIntoFolderTask { this: root.clone(), list: vec![inner.clone()] })
        .await
        .unwrap();
    client.finish(&task).await.unwrap();
    assert_eq!(all.news().await, []);
    assert_eq!(flat.news().await, news(&[("enter", &inner)]));
    client.destroy(&outer).await;
    assert_eq!(all.news().await, news(&[("leave", &outer)]));
    assert_eq!(flat.news().await, news(&[("leave", &outer)]));
}

#[tokio::test(start_paused = true)]
async fn a_list_view_holds_what_it_is_told_to() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let (one, two) =
        (client.find("/DC0/vm/DC0_H0_VM0").await, client.find("/DC0/vm/DC0_H0_VM1").await);
    let view = list_view(&client, &[&one]).await;
    let mut names = Names::of(&client, &view).await;
    let gone = MoRef::vm("vm-999");
    let modify = |add: &[&MoRef], remove: &[&MoRef]| ModifyListView {
        this: view.clone(),
        add: add.iter().map(|obj| (*obj).clone()).collect(),
        remove: remove.iter().map(|obj| (*obj).clone()).collect(),
    };
    assert_eq!(
        client.call(modify(&[&two, &gone], &[])).await.unwrap(),
        std::slice::from_ref(&gone)
    );
    assert_eq!(names.news().await, news(&[("enter", &two)]));
    client.call(modify(&[&one, &two], &[])).await.unwrap();
    assert_eq!(names.news().await, [], "they are in it already");
    client.call(modify(&[], &[&one])).await.unwrap();
    assert_eq!(names.news().await, news(&[("leave", &one)]));
    let reset =
        ResetListView { this: view.clone(), obj: vec![one.clone(), two.clone(), gone.clone()] };
    assert_eq!(client.call(reset).await.unwrap(), std::slice::from_ref(&gone));
    assert_eq!(names.news().await, news(&[("enter", &one)]), "who stays does not enter again");
    assert_eq!(members(&client, &view).await, [one, two]);
    let this = client.content.view_manager.clone().unwrap();
    let fault = client.call(CreateListView { this, obj: vec![gone] }).await.unwrap_err();
    assert_eq!(fault.class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_and_returns_between_two_looks_is_modified() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let view = list_view(&client, &[&vm]).await;
    let mut names = Names::of(&client, &view).await;
    for (add, remove) in [(vec![], vec![vm.clone()]), (vec![vm.clone()], vec![])] {
        client.call(ModifyListView { this: view.clone(), add, remove }).await.unwrap();
    }
    assert_eq!(names.news().await, news(&[("modify", &vm)]));
}

#[tokio::test(start_paused = true)]
async fn what_is_destroyed_leaves_list_views_too() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let root = client.find("/DC0/vm").await;
    let brief = client.create_folder(&root, "brief").await;
    let view = list_view(&client, &[&brief]).await;
    let mut names = Names::of(&client, &view).await;
    client.destroy(&brief).await;
    assert_eq!(names.news().await, news(&[("leave", &brief)]));
    assert_eq!(client.property(&view, "view").await.map_or(0, |members| members.refs().count()), 0);
}

#[tokio::test(start_paused = true)]
async fn views_can_be_destroyed_and_die_with_their_session() {
    let lab = Lab::default().await;
    let (client, other) = (lab.login().await, lab.login().await);
    let view = client.view("VirtualMachine").await;
    client.view("HostSystem").await;
    assert_eq!(view.kind, MoType::ContainerView);
    assert_eq!(lab.vcenter.counters().open_views, 2);
    let fault = other.call(DestroyView { this: view.clone() }).await.unwrap_err();
    assert_eq!(fault.class, "ManagedObjectNotFound", "a view is known in its session only");
    let mut names = Names::of(&client, &view).await;
    client.call(DestroyView { this: view.clone() }).await.unwrap();
    assert!(names.news().await.iter().all(|(kind, _)| kind == "leave"));
    assert_eq!(
        client.call(DestroyView { this: view }).await.unwrap_err().class,
        "ManagedObjectNotFound"
    );
    client.call(Logout { this: session_manager(&client) }).await.unwrap();
    let counters = lab.vcenter.counters();
    assert_eq!((counters.open_views, counters.open_collectors, counters.open_filters), (0, 0, 0));
}
