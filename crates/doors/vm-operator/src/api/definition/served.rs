//! The definitions on API servers: the embedded one and a real one take them, and refuse what they should.

use std::sync::Arc;

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use roost_clock::SimClock;
use roost_controller::crd::install_crds;
use roost_kube_sim::{KubeSim, Options};
use roost_oracle::{Cluster, ClusterOptions};
use serde_json::{Value, json};

use crate::api::{VirtualMachine, VirtualMachineSnapshot, definitions};

const OLDER: &str = "/apis/vmoperator.vmware.com/v1alpha5/namespaces/default/virtualmachines/web-0";

fn vms(client: &Client) -> Api<VirtualMachine> {
    Api::namespaced(client.clone(), "default")
}

fn vm(name: &str, spec: &Value) -> VirtualMachine {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

async fn refused(client: &Client, name: &str, spec: Value, message: &str) {
    let outcome = vms(client).create(&PostParams::default(), &vm(name, &spec)).await;
    let error = outcome.map(|vm| vm.spec).unwrap_err().to_string();
    assert!(error.contains(message), "{name}: {error}");
}

async fn merge(client: &Client, name: &str, patch: Value) -> Result<VirtualMachine, kube::Error> {
    vms(client).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// What both servers must do. Returns an object in the older version.
async fn the_definitions_hold(client: Client) -> Value {
    install_crds(&client, &definitions().unwrap(), "roost").await.unwrap();

    // Defaults, and fields that the types do not know.
    let spec = json!({
        "className": "small",
        "imageName": "ubuntu",
        "storageClass": "gold",
        "powerState": "PoweredOn",
        "network": {"interfaces": [{"name": "eth0", "network": {"name": "VM Network"}, "ipamModes": ["IPv4"]}]},
        "hardware": {"scsiControllers": [{"busNumber": 0}]},
        "advanced": {"bootDiskCapacity": 1_073_741_824},
        "bootstrap": {"cloudInit": {"cloudConfig": {
            "runcmd": ["a", ["b", "c"]],
            "write_files": [{"path": "/x", "content": {"name": "s", "key": "k"}}],
        }}},
    });
    let made = vms(&client).create(&PostParams::default(), &vm("web-0", &spec)).await.unwrap();
    let made = serde_json::to_value(&made.spec).unwrap();
    assert_eq!(made["powerOffMode"], "TrySoft");
    assert_eq!(made["promoteDisksMode"], "Online");
    assert_eq!(made["hardware"]["scsiControllers"][0]["type"], "ParaVirtual");
    assert_eq!(made["network"]["interfaces"][0]["ipamModes"], json!(["IPv4"]));
    let file = &made["bootstrap"]["cloudInit"]["cloudConfig"]["write_files"][0];
    assert_eq!(
        (file["permissions"].as_str(), &file["content"]["key"]),
        (Some("0644"), &json!("k"))
    );
    assert_eq!(made["bootstrap"]["cloudInit"]["cloudConfig"]["runcmd"][1], json!(["b", "c"]));

    // Rules.
    refused(&client, "a", json!({"hardware": {"ideControllers": [{"busNumber": 2}]}}), "busNumber")
        .await;
    let both = json!({"bootstrap": {"linuxPrep": {}, "sysprep": {"rawSysprep": {"name": "s", "key": "k"}}}});
    refused(&client, "b", both, "linuxPrep and sysprep exclude each other").await;
    refused(&client, "c", json!({"readinessProbe": {}}), "one of tcpSocket").await;
    refused(&client, "d", json!({"bootOptions": {"bootRetryDelay": "5s"}}), "needs bootRetry")
        .await;
    let raw = json!({"bootstrap": {"sysprep": {}}});
    refused(&client, "e", raw, "one of sysprep and rawSysprep is needed").await;
    for (patch, message) in [
        (json!({"spec": {"storageClass": "silver"}}), "storageClass stays as it is"),
        (json!({"spec": {"storageClass": null}}), "storageClass stays as it is"),
        (json!({"spec": {"powerState": null}}), "powerState cannot be taken back"),
    ] {
        let error = merge(&client, "web-0", patch).await.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let uuid = "2d5b3d0e-5a6b-4c0e-9f0e-0a1b2c3d4e5f";
    merge(&client, "web-0", json!({"spec": {"biosUUID": uuid}})).await.unwrap();
    merge(&client, "web-0", json!({"spec": {"biosUUID": null}})).await.unwrap_err();

    // A snapshot stays what it was asked for.
    let snapshots: Api<VirtualMachineSnapshot> = Api::namespaced(client.clone(), "default");
    let snapshot = json!({"metadata": {"name": "s"}, "spec": {"vmName": "web-0", "quiesce": {"timeout": "5m"}}});
    let snapshot: VirtualMachineSnapshot = serde_json::from_value(snapshot).unwrap();
    snapshots.create(&PostParams::default(), &snapshot).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"memory": true}}));
    snapshots.patch("s", &PatchParams::default(), &patch).await.unwrap_err();
    let patch = Patch::Merge(json!({"spec": {"description": "later"}}));
    snapshots.patch("s", &PatchParams::default(), &patch).await.unwrap();

    // The older version shows what it knows.
    let request = http::Request::get(OLDER);
    let older: Value = client.request(request.body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(older["apiVersion"], "vmoperator.vmware.com/v1alpha5");
    assert_eq!(older["spec"]["storageClass"], "gold");
    older
}

#[tokio::test]
async fn the_embedded_api_server_takes_them() {
    let sim = KubeSim::start(Options::default(), Arc::new(SimClock::new()));
    the_definitions_hold(sim.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_api_server_takes_them() {
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(cluster) = started.unwrap() else { return };
    let client = cluster.client().await;
    let older = the_definitions_hold(client.clone()).await;
    // The embedded server shows fields of the newer version, too.
    let ipam = |vm: &Value| vm["spec"]["network"]["interfaces"][0].get("ipamModes").cloned();
    assert_eq!(ipam(&older), None);

    // Whoever writes through the older version takes away what it does not show.
    let newer =
        || async { serde_json::to_value(vms(&client).get("web-0").await.unwrap()).unwrap() };
    assert_eq!(ipam(&newer().await), Some(json!(["IPv4"])));
    let patch = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    let request =
        http::Request::patch(OLDER).header("content-type", "application/merge-patch+json");
    let _: Value = client.request(request.body(patch.into_bytes()).unwrap()).await.unwrap();
    assert_eq!(ipam(&newer().await), None);
}
