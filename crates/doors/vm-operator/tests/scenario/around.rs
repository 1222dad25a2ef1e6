//! The kinds around VMs: images that are found, resource policies, services, replica sets.

use k8s_openapi::api::core::v1::{Endpoints, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use roost_vm_operator::api::{
    ClusterVirtualMachineImage, VirtualMachine, VirtualMachineImageSpec, VirtualMachineReplicaSet,
    VirtualMachineService, VirtualMachineSetResourcePolicy,
};
use roost_vm_operator::images::image_name;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::lab::{Lab, minutes, secs, vm};

/// The spec of a set of so many small VMs.
pub(crate) fn set(replicas: i32) -> Value {
    let mut spec = serde_json::to_value(vm("x").spec).unwrap();
    spec["powerState"] = json!("PoweredOff");
    json!({"replicas": replicas, "selector": {"matchLabels": {"set": "pair"}},
        "template": {"metadata": {"labels": {"set": "pair"}}, "spec": spec}})
}

async fn create<K>(lab: &Lab, object: Value) -> K
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object).unwrap();
    lab.api::<K>().create(&PostParams::default(), &object).await.unwrap()
}

/// Waits for a state of any object, for at most half an hour.
async fn until<K>(api: &Api<K>, what: &str, name: &str, holds: impl Fn(Option<&K>) -> bool)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut last = None;
    for _ in 0..9_000 {
        last = api.get_opt(name).await.unwrap();
        if holds(last.as_ref()) {
            return;
        }
        sleep(secs(1) / 5).await;
    }
    panic!("{name} is not {what}: {last:#?}");
}

async fn members(lab: &Lab) -> Vec<VirtualMachine> {
    let of_set = ListParams::default().labels("set=pair");
    lab.api::<VirtualMachine>().list(&of_set).await.unwrap().items
}

async fn until_members(lab: &Lab, wanted: usize) -> Vec<VirtualMachine> {
    for _ in 0..9_000 {
        let members = members(lab).await;
        let is_made = |vm: &VirtualMachine| vm.is_created() && !vm.is_being_deleted();
        if members.len() == wanted && members.iter().all(is_made) {
            return members;
        }
        sleep(secs(1) / 5).await;
    }
    panic!("{:#?}", members(lab).await);
}

/// Each of them once, from its making to its end. `web-0` is there, and powered off.
pub(crate) async fn all(lab: &Lab) {
    images(lab).await;
    policy(lab).await;
    replica_set(lab).await;
    service(lab).await;
}

async fn images(lab: &Lab) {
    let api: Api<ClusterVirtualMachineImage> = Api::all(lab.client.clone());
    let shown = |name: &str| {
        let name = name.to_owned();
        move |image: &ClusterVirtualMachineImage| {
            image.status.as_ref().is_some_and(|of| of.name == name && of.is_ready())
        }
    };
    let mut name = String::new();
    for _ in 0..9_000 {
        let images = api.list(&ListParams::default()).await.unwrap().items;
        if let Some(found) = images.iter().find(|image| shown("debian12")(image)) {
            name = found.name_any();
            break;
        }
        sleep(secs(1) / 5).await;
    }
    let image = api.get(&name).await.unwrap();
    let status = image.status.unwrap();
    assert_eq!((status.type_.as_str(), status.disks.len()), ("VM", 1));
    assert_eq!(status.provider_item_id, lab.site.template().to_string());
    assert!(status.hardware_version.is_some() && !status.os_info.type_.is_empty());
}

async fn policy(lab: &Lab) {
    let policy: VirtualMachineSetResourcePolicy = create(
        lab,
        json!({"apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachineSetResourcePolicy",
            "metadata": {"name": "fence"}, "spec": {"folder": "inner", "resourcePool": {"name": "inner"}}}),
    )
    .await;
    let api = lab.api::<VirtualMachineSetResourcePolicy>();
    until(&api, "furnished", &policy.name_any(), |policy| {
        let status = policy.and_then(|policy| policy.status.as_ref());
        status.is_some_and(|status| status.resource_pools.len() == 1)
    })
    .await;
    assert!(lab.site.vcenter.find("/DC0/vm/team-a/inner").is_some());
    assert!(lab.site.vcenter.find("/DC0/host/DC0_C0/Resources/team-a/inner").is_some());
    api.delete("fence", &DeleteParams::default()).await.unwrap();
    until(&api, "gone", "fence", |policy| policy.is_none()).await;
}

async fn replica_set(lab: &Lab) {
    let object = json!({"apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachineReplicaSet",
        "metadata": {"name": "pair"}, "spec": set(2)});
    let _: VirtualMachineReplicaSet = create(lab, object).await;
    until_members(lab, 2).await;
    let api = lab.api::<VirtualMachineReplicaSet>();
    until(&api, "counted", "pair", |set| {
        set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.ready_replicas == 2)
    })
    .await;
    let fewer = json!({"spec": {"replicas": 1}});
    api.patch("pair", &PatchParams::default(), &Patch::Merge(fewer)).await.unwrap();
    until_members(lab, 1).await;
    api.delete("pair", &DeleteParams::default()).await.unwrap();
    until(&api, "gone", "pair", |set| set.is_none()).await;
    assert!(members(lab).await.is_empty(), "a set goes after its VMs");
}

async fn service(lab: &Lab) {
    let spec = json!({"type": "ClusterIP", "selector": {"app": "web"},
        "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}]});
    let object = json!({"apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachineService",
        "metadata": {"name": "web"}, "spec": spec});
    let _: VirtualMachineService = create(lab, object).await;
    let (services, endpoints) = (lab.api::<Service>(), lab.api::<Endpoints>());
    until(&services, "made", "web", |service| service.is_some()).await;
    lab.patch(
        "web-0",
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"powerState": "PoweredOn"}}),
    )
    .await;
    let on = lab.until_on("web-0").await;
    let ip = on.primary_ip().unwrap().to_owned();
    let leads_to = |endpoints: Option<&Endpoints>| -> Vec<String> {
        let subsets = endpoints.and_then(|of| of.subsets.clone()).unwrap_or_default();
        let addresses = subsets.into_iter().flat_map(|subset| subset.addresses.unwrap_or_default());
        addresses.map(|address| address.ip).collect()
    };
    until(&endpoints, "leading to web-0", "web", |of| leads_to(of) == [ip.clone()]).await;
    let own = lab.api::<VirtualMachineService>();
    let other = json!({"spec": {"ports": [{"name": "http", "protocol": "TCP", "port": 81, "targetPort": 8080}]}});
    own.patch("web", &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
    until(&services, "changed", "web", |service| {
        let ports = service.and_then(|service| service.spec.as_ref()?.ports.clone());
        ports.is_some_and(|ports| ports[0].port == 81)
    })
    .await;
    lab.patch("web-0", json!({"metadata": {"labels": {"app": null}}})).await;
    until(&endpoints, "leading nowhere", "web", |of| leads_to(of).is_empty()).await;
    own.delete("web", &DeleteParams::default()).await.unwrap();
    until(&services, "gone", "web", |service| service.is_none()).await;
    lab.patch("web-0", json!({"spec": {"powerState": "PoweredOff"}})).await;
}

#[tokio::test(start_paused = true)]
async fn policies_replica_sets_services_and_images_do_what_they_say() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.images.inventory = true;
    lab.start();
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    all(&lab).await;
    // At rest nobody writes.
    sleep(minutes(20)).await;
    let writes = lab.writes();
    sleep(minutes(60)).await;
    assert_eq!(lab.writes() - writes, 0);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_comes_later_makes_a_waiting_vm_and_one_that_is_gone_twice_goes() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.images.inventory = true;
    lab.start();
    let mut waiting = vm("web-0");
    waiting.spec.image = None;
    waiting.spec.image_name = "debian12".into();
    lab.apply(&waiting).await;
    let made = lab.until_on("web-0").await;
    let row = lab.fleet.mirror().vm(&lab.site.template()).unwrap();
    let name = image_name(row.instance_uuid.as_deref().unwrap());
    assert_eq!(made.spec.image.unwrap().name, name);
    let api: Api<ClusterVirtualMachineImage> = Api::all(lab.client.clone());
    // One that somebody else made stays, whatever it stands for.
    let foreign =
        ClusterVirtualMachineImage::new("vmi-foreign", VirtualMachineImageSpec::default());
    api.create(&PostParams::default(), &foreign).await.unwrap();
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    let template = lab.site.template();
    lab.fleet.client().destroy(&template.moref()).await.unwrap();
    until(&api, "gone", &name, |image| image.is_none()).await;
    sleep(minutes(5)).await;
    assert!(api.get_opt("vmi-foreign").await.unwrap().is_some());
}
