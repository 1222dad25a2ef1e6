//! One-shot property reads.

use crate::lab::{Client, Lab, folder, of_object, text};
use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{
    CancelRetrievePropertiesEx, ContinueRetrievePropertiesEx, CreatePropertyCollector, Fetch,
    RetrieveProperties, RetrievePropertiesEx,
};
use roost_vim_wire::types::{
    ObjectSpec, PropertyFilterSpec, PropertySpec, RetrieveOptions, RetrieveResult, SelectionSpec,
};
use roost_vim_wire::{Fault, MoRef, Value};

async fn first_page(
    client: &Client,
    spec: PropertyFilterSpec,
    max: Option<i32>,
) -> Result<RetrieveResult, Fault> {
    let call = RetrievePropertiesEx {
        this: client.collector(),
        spec_set: vec![spec],
        options: RetrieveOptions { max_objects: max },
    };
    client.call(call).await.map(Option::unwrap_or_default)
}

fn many() -> Options {
    Options { vms: 250, standalone_hosts: 0, ..Options::default() }
}

async fn all_vms(client: &Client) -> PropertyFilterSpec {
    let view = client.view("VirtualMachine").await;
    PropertyFilterSpec::of_view(
        &view,
        vec![PropertySpec::new("VirtualMachine", &["name", "runtime.powerState"])],
    )
}

#[tokio::test(start_paused = true)]
async fn pages_come_unasked_at_100_objects() {
    let lab = Lab::start(many()).await;
    let client = lab.login().await;
    let spec = all_vms(&client).await;
    let mut page = first_page(&client, spec.clone(), None).await.unwrap();
    let mut sizes = vec![page.objects.len()];
    while let Some(token) = page.token {
        let next = ContinueRetrievePropertiesEx { this: client.collector(), token };
        page = client.call(next).await.unwrap().unwrap();
        sizes.push(page.objects.len());
    }
    assert_eq!(sizes, [100, 100, 50]);
    let mut names: Vec<_> =
        client.read_all(spec).await.unwrap().iter().map(|object| text(object, "name")).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 250);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_ask_for_smaller_pages_but_not_for_larger_or_none() {
    let lab = Lab::start(many()).await;
    let client = lab.login().await;
    let spec = all_vms(&client).await;
    assert_eq!(first_page(&client, spec.clone(), Some(7)).await.unwrap().objects.len(), 7);
    assert_eq!(first_page(&client, spec.clone(), Some(200)).await.unwrap().objects.len(), 100);
    for bad in [0, -1] {
        assert_eq!(
            first_page(&client, spec.clone(), Some(bad)).await.unwrap_err().class,
            "InvalidArgument"
        );
    }
    let old = RetrieveProperties { this: client.collector(), spec_set: vec![spec] };
    assert_eq!(client.call(old).await.unwrap().len(), 250, "the old method has no pages");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_good_once_on_its_collector_in_its_session() {
    let lab = Lab::start(many()).await;
    let (client, other) = (lab.login().await, lab.login().await);
    let spec = all_vms(&client).await;
    let own = client.call(CreatePropertyCollector { this: client.collector() }).await.unwrap();
    let token = || async { first_page(&client, spec.clone(), None).await.unwrap().token.unwrap() };
    let go_on = |this: MoRef, token: String| ContinueRetrievePropertiesEx { this, token };
    let refused = |fault: Fault| assert_eq!(fault.class, "InvalidProperty");

    let used = token().await;
    client.call(go_on(client.collector(), used.clone())).await.unwrap();
    refused(client.call(go_on(client.collector(), used)).await.unwrap_err());
    refused(other.call(go_on(client.collector(), token().await)).await.unwrap_err());
    refused(client.call(go_on(own, token().await)).await.unwrap_err());
    let cancelled = token().await;
    let cancel = CancelRetrievePropertiesEx { this: client.collector(), token: cancelled.clone() };
    client.call(cancel).await.unwrap();
    refused(client.call(go_on(client.collector(), cancelled)).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_path_fails_the_whole_call() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    for path in ["nonsense", "runtime.nonsense", "name.x"] {
        let fault = client.read_all(of_object(&vm, &["name", path])).await.unwrap_err();
        assert_eq!((fault.class.as_str(), fault.text("name")), ("InvalidProperty", Some(path)));
    }
}

#[tokio::test(start_paused = true)]
async fn unset_properties_are_absent() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let objects = client.read_all(of_object(&vm, &["name", "config.annotation"])).await.unwrap();
    let paths: Vec<_> = objects[0].prop_set.iter().map(|property| property.name.as_str()).collect();
    assert_eq!(paths, ["name"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_gone_fails_the_call_unless_it_is_to_be_reported() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let gone = folder("group-v999");
    let mut spec = of_object(&gone, &["name"]);
    let fault = client.read_all(spec.clone()).await.unwrap_err();
    assert_eq!(
        (fault.class.as_str(), fault.object("obj")),
        ("ManagedObjectNotFound", Some(gone.clone()))
    );
    spec.report_missing_objects_in_results = Some(true);
    let objects = client.read_all(spec).await.unwrap();
    assert_eq!(objects[0].obj, gone);
    assert_eq!(objects[0].missing_set[0].fault.fault.class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_recursive_traversal_walks_up_to_the_root() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let mut up = SelectionSpec::traverse("ManagedEntity", "parent");
    up.name = Some("up".into());
    up.skip = Some(false);
    up.select_set = vec![SelectionSpec::named("up")];
    let start = ObjectSpec { obj: vm, skip: Some(false), select_set: vec![up] };
    let spec = PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("ManagedEntity", &["name", "parent"])],
        object_set: vec![start],
        ..PropertyFilterSpec::default()
    };
    let names: Vec<_> =
        client.read_all(spec).await.unwrap().iter().map(|object| text(object, "name")).collect();
    assert_eq!(names, ["DC0_H0_VM0", "vm", "DC0", "Datacenters"]);
}

#[tokio::test(start_paused = true)]
async fn a_recursive_traversal_walks_down_and_finds_each_object_once() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let named = |name: &str, kind: &str, path: &str, next: &[&str]| {
        let mut step = SelectionSpec::traverse(kind, path);
        step.name = Some(name.into());
        step.select_set = next.iter().map(|name| SelectionSpec::named(name)).collect();
        step
    };
    // VMs are reached through their folder, their pool and their host.
    let select_set = vec![
        named(
            "children",
            "Folder",
            "childEntity",
            &["children", "vms", "hosts", "pool", "of host"],
        ),
        named("vms", "Datacenter", "vmFolder", &["children"]),
        named("hosts", "Datacenter", "hostFolder", &["children"]),
        named("pool", "ComputeResource", "resourcePool", &["of pool"]),
        named("of pool", "ResourcePool", "vm", &[]),
        named("of host", "ComputeResource", "host", &["on host"]),
        named("on host", "HostSystem", "vm", &[]),
    ];
    let start =
        ObjectSpec { obj: client.content.root_folder.clone(), skip: Some(true), select_set };
    let spec = PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("VirtualMachine", &["name"])],
        object_set: vec![start],
        ..PropertyFilterSpec::default()
    };
    let mut names: Vec<_> =
        client.read_all(spec).await.unwrap().iter().map(|object| text(object, "name")).collect();
    names.sort();
    assert_eq!(names, ["DC0_C0_RP0_VM0", "DC0_C0_RP0_VM1", "DC0_H0_VM0", "DC0_H0_VM1"]);
}

#[tokio::test(start_paused = true)]
async fn types_match_their_subtypes_and_nothing_else() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let view = client.view("ManagedEntity").await;
    let count = |kind: &'static str| {
        let (client, view) = (client.clone(), view.clone());
        async move {
            let spec = PropertyFilterSpec::of_view(&view, vec![PropertySpec::new(kind, &[])]);
            client.read_all(spec).await.unwrap().len()
        }
    };
    assert_eq!(count("ClusterComputeResource").await, 1);
    assert_eq!(count("ComputeResource").await, 2);
    assert!(count("Network").await > count("DistributedVirtualPortgroup").await);
    assert!(count("ManagedEntity").await > 20);
    assert_eq!(count("Task").await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_empty_path_set_names_objects_only_and_all_reads_everything() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let objects = client.read_all(of_object(&vm, &[])).await.unwrap();
    assert_eq!((objects[0].obj.clone(), objects[0].prop_set.len()), (vm.clone(), 0));
    let mut spec = of_object(&vm, &[]);
    spec.prop_set[0].all = Some(true);
    let objects = client.read_all(spec).await.unwrap();
    let paths: Vec<_> = objects[0].prop_set.iter().map(|property| property.name.as_str()).collect();
    for path in ["name", "config", "runtime", "guest", "summary", "parent", "resourcePool"] {
        assert!(paths.contains(&path), "{path} in {paths:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn keyed_paths_reach_into_arrays() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let device = client.property(&vm, "config.hardware.device[4000]").await.unwrap();
    assert_eq!(device.get("key"), Some(Value::Int(4000)));
    assert_eq!(client.property(&vm, "config.hardware.device[4999]").await, None);
}

#[tokio::test(start_paused = true)]
async fn one_attribute_is_fetched_by_its_name() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let fetch = |prop: &str| Fetch { this: vm.clone(), prop: prop.into() };
    assert_eq!(client.call(fetch("name")).await.unwrap(), Some(Value::string("DC0_H0_VM0")));
    assert_eq!(client.call(fetch("nonsense")).await.unwrap_err().class, "InvalidProperty");
    let gone = Fetch { this: folder("group-v999"), prop: "name".into() };
    assert_eq!(client.call(gone).await.unwrap_err().class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_specification_without_objects_or_properties_is_refused() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let mut spec = of_object(&client.content.root_folder, &["name"]);
    spec.prop_set.clear();
    assert_eq!(client.read_all(spec).await.unwrap_err().class, "InvalidArgument");
    let mut spec = of_object(&client.content.root_folder, &["name"]);
    spec.object_set.clear();
    assert_eq!(client.read_all(spec).await.unwrap_err().class, "InvalidArgument");
}
