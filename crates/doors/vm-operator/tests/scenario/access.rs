//! The role that is shipped, found out by running the door under it through everything that it does.

use std::sync::Arc;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use roost_clock::{Clock as _, SimClock, SystemClock};
use roost_controller::LeaseSettings;
use roost_controller::rbac::Audit;
use roost_controller::serve::{Access, metrics_router};
use roost_controller::webhook::SelfMade;
use roost_kube_sim::{Action, Rule, When};
use roost_oracle::{Cluster, ClusterOptions};
use roost_testbed::Site;
use roost_vcenter_sim::{Options, TemplateOptions, Timings, Vcenter};
use roost_vm_operator::access::{LEASE, NAME, NAMESPACE as HOME, WEBHOOK, needs};
use roost_vm_operator::api::VirtualMachineGroup;
use roost_vm_operator::api::vm::PowerState;
use roost_vm_operator::webhook::configurations;
use roost_vm_operator::{FastDeployMode, PROVIDER_CONFIG_MAP};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::ServiceExt as _;

use crate::lab::{Lab, minutes, secs, vm};

fn api_of(client: &Client, manifest: &Value) -> (Api<DynamicObject>, DynamicObject) {
    let object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
    let types = object.types.clone().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    (api, object)
}

async fn apply(client: &Client, manifests: &[Value]) {
    for manifest in manifests {
        let (api, object) = api_of(client, manifest);
        let params = PatchParams::apply("lab").force();
        let name = object.metadata.name.clone().unwrap();
        api.patch(&name, &params, &Patch::Apply(&object)).await.unwrap();
    }
}

/// One object of each kind that is watched, which nobody has to do anything about.
fn spares() -> Vec<Value> {
    let own = |kind: &str, spec: Value| {
        json!({"apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": kind,
            "metadata": {"name": "spare", "namespace": "team-a"}, "spec": spec})
    };
    let mut vm = own("VirtualMachine", json!({"className": "none", "imageName": "none"}));
    vm["metadata"]["annotations"] = json!({"vmoperator.vmware.com/paused": ""});
    let mut cluster_image = own("ClusterVirtualMachineImage", json!({}));
    cluster_image["metadata"] = json!({"name": "spare"});
    let claim =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let spare = json!({"name": "spare", "namespace": "team-a"});
    vec![
        vm,
        cluster_image,
        own("VirtualMachineClass", json!({"hardware": {"cpus": 1, "memory": "1Gi"}})),
        own("VirtualMachineImage", json!({})),
        own("VirtualMachineImageCache", json!({"providerID": "x"})),
        own("VirtualMachineSnapshot", json!({"vmName": "none"})),
        own("VirtualMachineGroup", json!({})),
        own("VirtualMachineSetResourcePolicy", json!({})),
        own("VirtualMachineService", json!({"type": "ExternalName", "externalName": "x.test"})),
        own("VirtualMachineReplicaSet", crate::around::set(0)),
        own("VirtualMachineWebConsoleRequest", json!({"name": "none", "publicKey": "x"})),
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": spare}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": spare}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": spare, "spec": claim}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "spare"}, "provisioner": "x"}),
    ]
}

/// The door under its role, with its lease.
async fn employ(lab: &mut Lab) -> Audit {
    lab.settings.provider.images.inventory = true;
    lab.settings.provider.features.fast_deploy = Some(FastDeployMode::Linked);
    lab.settings.provider.image_cache_ttl = Some(secs(2));
    lab.settings.provider.image_cache_grace = secs(2);
    lab.settings.flow.pod_namespace = HOME.into();
    let mut home = Namespace::default();
    home.metadata.name = Some(HOME.into());
    let namespaces: Api<Namespace> = Api::all(lab.client.clone());
    namespaces.create(&PostParams::default(), &home).await.unwrap();
    let mut provider = ConfigMap::default();
    provider.metadata.name = Some(PROVIDER_CONFIG_MAP.into());
    let maps: Api<ConfigMap> = Api::namespaced(lab.client.clone(), HOME);
    maps.create(&PostParams::default(), &provider).await.unwrap();
    let audit = Audit::grant(&lab.client, needs(), NAME, HOME).await.unwrap();
    lab.door = audit.client();
    lab.settings.lease = Some(LeaseSettings::new(HOME, LEASE, "one"));
    lab.start();
    audit
}

/// What `roost vm-operator` does beside its controllers.
async fn serve(lab: &Lab, token: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(lab.door.clone(), HOME);
    maps.get(PROVIDER_CONFIG_MAP).await.unwrap();
    apply(&lab.client, &configurations(NAME, HOME, WEBHOOK)).await;
    let certificate =
        SelfMade::new(lab.door.clone(), HOME, WEBHOOK, WEBHOOK, Arc::new(SystemClock))
            .for_configuration(NAME);
    certificate.refresh().await.unwrap();
    // It is old, and replaced.
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(lab.client.clone(), HOME);
    let old = json!({"metadata": {"annotations": {"roost/replace-at": "2000-01-01T00:00:00Z"}}});
    secrets.patch(WEBHOOK, &PatchParams::default(), &Patch::Merge(old)).await.unwrap();
    certificate.refresh().await.unwrap();
    let metrics = metrics_router(Arc::new(Registry::default()), Access::reviewed(lab.door.clone()));
    let asked = http::Request::get("/metrics").header("Authorization", format!("Bearer {token}"));
    metrics.oneshot(asked.body(String::new()).unwrap()).await.unwrap();
}

/// Everything that the controllers do.
async fn work(lab: &Lab) {
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    crate::console::ask(lab, "console").await;
    lab.snapshot("one", "web-0").await;
    lab.until_snapshot("one").await;
    let group = json!({ "apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachineGroup",
        "metadata": { "name": "shop", "namespace": "team-a" },
        "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard", "bootOrder": [
            { "members": [{ "kind": "VirtualMachine", "name": "web-0" }] },
        ] } });
    let group: VirtualMachineGroup = serde_json::from_value(group).unwrap();
    lab.api().create(&PostParams::default(), &group).await.unwrap();
    lab.patch("web-0", json!({ "spec": { "groupName": "shop" } })).await;
    for state in [PowerState::PoweredOff, PowerState::PoweredOn, PowerState::PoweredOff] {
        lab.patch("web-0", json!({ "spec": { "powerState": state, "powerOffMode": "Hard" } }))
            .await;
        lab.until(state.as_str(), "web-0", |vm| vm.current_power_state() == Some(state)).await;
    }
    lab.patch("web-0", json!({ "spec": { "className": "large" } })).await;
    crate::around::all(lab).await;
    crate::fast_deploy::from_first_vm_to_empty_cache(lab).await;
    lab.until("resized", "web-0", |vm| {
        vm.status.as_ref().and_then(|of| of.class.as_ref()).is_some_and(|of| of.name == "large")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_role_that_is_shipped_is_enough_and_used() {
    let mut lab = Lab::idle().await;
    let audit = employ(&mut lab).await;
    work(&lab).await;
    Box::pin(crate::volumes::attach_and_detach(&lab, "disk-0")).await;
    // Images for a namespace instead of the cluster, and back.
    for namespaces in [vec!["team-a".to_owned()], Vec::new()] {
        lab.stop().await;
        lab.settings.provider.images.namespaces = namespaces;
        lab.start();
        sleep(minutes(2)).await;
    }
    apply(&lab.client, &spares()).await;
    sleep(secs(30)).await;
    // What goes while the watches are cut, and their history with it, is asked for by name.
    lab.sim().add_rule(Rule {
        verb: "watch".to_owned(),
        when: When { times: Some(100), ..When::default() },
        action: Action::WatchGone { after: 0 },
        ..Rule::default()
    });
    lab.sim().cut_watches();
    for spare in spares() {
        let (api, _) = api_of(&lab.client, &spare);
        let free = json!({"metadata": {"finalizers": null}});
        api.patch("spare", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
        api.delete("spare", &DeleteParams::default()).await.unwrap();
    }
    sleep(minutes(10)).await;
    lab.sim().add_token("x", roost_kube_sim::User::named("scraper"));
    serve(&lab, "x").await;
    lab.stop().await;
    audit.verdict().assert_exact();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_real_api_server_the_role_that_is_shipped_is_enough() {
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(cluster) = started.unwrap() else { return };
    let client = cluster.client().await;
    // How old an object is follows from the time of the server.
    let clock = Arc::new(SimClock::starting_at(SystemClock.now()));
    let options = Options {
        clusters: 1,
        templates: vec![TemplateOptions::new(Site::TEMPLATE)],
        timings: Timings::quick(),
        ..Options::default()
    };
    let site = Site { vcenter: Vcenter::start(options, clock.clone()), clock };
    let mut lab = Lab::on(client, site).await;
    let audit = employ(&mut lab).await;
    work(&lab).await;
    lab.api::<roost_vm_operator::api::VirtualMachineSnapshot>()
        .delete("one", &DeleteParams::default())
        .await
        .unwrap();
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    // Last: nobody reaches the webhooks here, so objects could not be written any more.
    let accounts: Api<ServiceAccount> = Api::namespaced(lab.client.clone(), HOME);
    let (params, wanted) = (PostParams::default(), TokenRequest::default());
    let token = accounts.create_token_request(NAME, &params, &wanted).await;
    serve(&lab, &token.unwrap().status.unwrap().token.unwrap()).await;
    lab.stop().await;
    // Objects are asked for by name only after a gap, which this server does not make; the embedded one does, and images change their
    // scope there.
    let verdict = audit.verdict();
    assert_eq!(verdict.refused, Vec::<String>::new());
    // There the tickets of consoles expire, too, and there is a CSI driver.
    let is_elsewhere = |need: &&String| {
        let elsewhere = ["machineimages", "cnsnodevmattachments"];
        need.starts_with("get ")
            || elsewhere.iter().any(|kind| need.contains(kind))
            || need.starts_with("delete ") && need.contains("webconsolerequests")
    };
    let unused: Vec<_> = verdict.unused.iter().filter(|need| !is_elsewhere(need)).collect();
    assert_eq!(unused, Vec::<&String>::new());
    drop(cluster);
}
