//! The VM as it is asked for.

use serde_json::json;

use crate::lab::{Lab, mins};

/// All kinds of disk controllers that upstream's tool knows.
#[tokio::test(start_paused = true)]
async fn disks_hang_on_the_controller_that_the_pool_names() {
    for (name, class) in [
        ("nvme", "VirtualNVMEController"),
        ("sata", "VirtualAHCIController"),
        ("ide", "VirtualIDEController"),
        ("lsilogic-sas", "VirtualLsiLogicSASController"),
    ] {
        let lab = Lab::new().await;
        lab.apply_pool(json!({"spec": {"vsphere": {"scsiType": name}}})).await;
        let forge = lab.forge();
        lab.neighbours.scale(1);
        lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
        let vm = lab.vcenter.vm("blue-gp-0001").unwrap();
        let disk = vm.devices.iter().find(|device| device.is_disk()).unwrap();
        let controller = vm.devices.iter().find(|it| Some(it.key) == disk.controller_key).unwrap();
        assert_eq!(controller.class, class, "{name}");
        forge.stop().await;
    }
}

/// F6 and F7.
#[tokio::test(start_paused = true)]
async fn richer_hardware_and_a_storage_policy_are_asked_for() {
    let lab = Lab::new().await;
    let vsphere = json!({"storagePolicy": "VVol No Requirements Policy", "extraNetworks": [{"network": "VM Network", "adapterType": "e1000e"}]});
    let template = json!({"numCPUs": 4, "coresPerSocket": 2, "cpuHotAdd": true, "memoryHotAdd": true,
        "cpuReservationMHz": 500, "memoryReservationMiB": 1024, "hardwareVersion": 19, "secureBoot": true,
        "extraDisks": [{"sizeGiB": 30}, {"sizeGiB": 10, "eagerlyScrub": true}],
        "extraConfig": {"guestinfo.role": "worker"}});
    lab.apply_pool(json!({"spec": {"vsphere": vsphere, "template": template}})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    let vm = lab.vcenter.vm("blue-gp-0001").unwrap();
    let gib: Vec<i64> = vm
        .devices
        .iter()
        .filter(|device| device.is_disk())
        .filter_map(|disk| Some(disk.capacity_in_kb? >> 20))
        .collect();
    assert_eq!(gib, [20, 30, 10]);
    let cards: Vec<&str> =
        vm.devices.iter().filter(|it| it.is_nic()).map(|it| it.class.as_str()).collect();
    assert_eq!(cards, ["VirtualVmxnet3", "VirtualE1000e"]);
    assert!(vm.extra_config.iter().any(|pair| *pair == ("guestinfo.role".into(), "worker".into())));
    let hand = lab.hand().await;
    let moref = lab.vcenter.find("/DC0/vm/nodes/blue/blue-gp-0001").unwrap();
    let policies = hand.policies_of_vm(&moref).await.unwrap();
    let all = hand.storage_policies().await.unwrap();
    let named = all.iter().find(|policy| policy.name == "VVol No Requirements Policy").unwrap();
    assert_eq!(policies, std::slice::from_ref(&named.id));
    hand.shutdown().await;
    forge.stop().await;
}

/// F6: what cannot be is told before anything is made.
#[tokio::test(start_paused = true)]
async fn a_storage_policy_that_is_unknown_or_forbids_the_datastore_is_told() {
    for (policy, words) in [
        ("No Such Policy", "there is no storage policy"),
        ("vSAN Default Storage Policy", "does not allow"),
    ] {
        let lab = Lab::new().await;
        let vsphere =
            json!({"datastoreCluster": null, "datastore": "LocalDS_0", "storagePolicy": policy});
        lab.apply_pool(json!({"spec": {"vsphere": vsphere}})).await;
        let forge = lab.forge();
        lab.until("it is told", mins(2), async |lab| {
            let pool = lab.pool().await;
            let found = pool.status.conditions.iter().find(|it| it.type_ == "VsphereReady");
            found.is_some_and(|it| it.status == "False" && it.message.contains(words))
        })
        .await;
        forge.stop().await;
    }
}
