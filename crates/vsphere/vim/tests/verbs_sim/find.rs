use roost_vcenter_sim::Options;
use roost_vim::{FindError, Kind};

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn objects_are_found_by_name_path_pattern_and_reference() {
    let lab = Lab::with(Options { pools: 1, pods: 1, ..Options::default() }).await;
    for (kind, wanted, path) in [
        (Kind::VirtualMachine, "DC0_H0_VM0", "/DC0/vm/DC0_H0_VM0"),
        (Kind::VirtualMachine, "/DC0/vm/DC0_H0_VM1", "/DC0/vm/DC0_H0_VM1"),
        (Kind::VirtualMachine, "*H0_VM[0]", "/DC0/vm/DC0_H0_VM0"),
        (Kind::VmFolder, "", "/DC0/vm"),
        (Kind::ResourcePool, "DC0_C0_RP1", "/DC0/host/DC0_C0/Resources/DC0_C0_RP1"),
        (Kind::ResourcePool, "DC0_H0", "/DC0/host/DC0_H0/Resources"),
        (Kind::Network, "VM Network", "/DC0/network/VM Network"),
        (Kind::Network, "DC0_DVPG0", "/DC0/network/DC0_DVPG0"),
        (Kind::Datastore, "", "/DC0/datastore/LocalDS_0"),
        (Kind::DatastoreCluster, "", "/DC0/datastore/DC0_POD0"),
        (Kind::Host, "DC0_C0_H2", "/DC0/host/DC0_C0/DC0_C0_H2"),
        (Kind::ComputeResource, "DC0_C?", "/DC0/host/DC0_C0"),
    ] {
        let found = lab
            .finder
            .find(kind, wanted)
            .await
            .unwrap_or_else(|error| panic!("{kind} {wanted:?}: {error}"));
        assert_eq!(found.path, path, "{kind} {wanted:?}");
        assert_eq!(
            lab.finder.find(kind, &found.moref.to_string()).await.unwrap(),
            found,
            "by reference"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_or_not_meant_for_it_is_told_with_what_is() {
    let lab = Lab::start().await;
    let told = |error: FindError| error.to_string();
    let absent = told(lab.finder.template("debain12").await.unwrap_err());
    assert_eq!(absent, r#"no template "debain12" in datacenter /DC0; there is /DC0/vm/debian12"#);
    let unusable = told(lab.finder.template("DC0_H0_VM0").await.unwrap_err());
    assert!(unusable.contains("not a template"), "{unusable}");
    let uplink = told(lab.finder.network("DVS0-DVUplinks-*").await.unwrap_err());
    assert!(uplink.contains("uplink"), "{uplink}");
    let ambiguous = told(lab.finder.resource_pool("").await.unwrap_err());
    assert!(
        ambiguous.ends_with("there are /DC0/host/DC0_C0/Resources, /DC0/host/DC0_H0/Resources"),
        "{ambiguous}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_that_two_folders_have_is_ambiguous_and_a_path_decides() {
    let lab = Lab::start().await;
    let root = lab.finder.vm_folder("").await.unwrap().moref;
    let template = lab.template().await;
    for folder in ["team-a", "team-b"] {
        let folder = lab.client.ensure_folder(&root, folder).await.unwrap();
        let request = roost_vim::CloneVm { folder, ..lab.clone_request("worker").await };
        lab.client.clone_vm(&template, &request).await.unwrap();
    }
    let ambiguous = lab.finder.vm("worker").await.unwrap_err().to_string();
    assert!(
        ambiguous.ends_with("there are /DC0/vm/team-a/worker, /DC0/vm/team-b/worker"),
        "{ambiguous}"
    );
    assert_eq!(lab.finder.vm("team-b/worker").await.unwrap().path, "/DC0/vm/team-b/worker");
}

#[tokio::test(start_paused = true)]
async fn a_vm_among_thousands_costs_a_handful_of_calls() {
    let lab = Lab::with(Options { vms: 3000, ..Options::default() }).await;
    lab.vcenter.reset_counters();
    lab.finder.template("debian12").await.unwrap();
    lab.finder.vm("/DC0/vm/DC0_H0_VM2999").await.unwrap();
    let calls: u64 = lab.vcenter.counters().calls.values().sum();
    assert!(calls <= 6, "{:?}", lab.vcenter.counters().calls);
    let absent = lab.finder.vm("DC0_H0_VN77").await.unwrap_err().to_string();
    assert!(absent.contains("nearest are /DC0/vm/DC0_H0_VM77"), "{absent}");
    assert!(absent.ends_with(" and 5996 more"), "{absent}");
}

#[tokio::test(start_paused = true)]
async fn datacenters_are_told_apart_and_absolute_paths_lead_into_any() {
    let lab_options = Options { datacenters: 2, folders: 1, ..Options::default() };
    let lab = Lab::with(Options { datacenters: 1, ..Options::default() }).await;
    assert_eq!(lab.finder.datacenter().path, "/DC0");
    drop(lab);
    let two = roost_vcenter_sim::Vcenter::start(
        lab_options,
        std::sync::Arc::new(roost_clock::SimClock::new()),
    );
    let client = crate::lab::connect(&two).await;
    let ambiguous = client.finder("").await.unwrap_err().to_string();
    assert!(ambiguous.contains("more than one datacenter"), "{ambiguous}");
    let finder = client.finder("DC0").await.unwrap();
    let elsewhere = client.finder("DC1").await.unwrap();
    let path = format!("{}/datastore/...", elsewhere.datacenter().path);
    let datastore = finder.datastore(&path).await.unwrap();
    assert!(datastore.path.starts_with(&elsewhere.datacenter().path), "{datastore:?}");
}
