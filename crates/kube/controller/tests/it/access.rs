//! The roles that are made from needs: enough for the door, and no more than it uses.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use roost_controller::rbac::{Asked, Need, Needs, Verb};
use roost_controller::{ControllerSettings, LeaseSettings};
use roost_kube_sim::User;

use crate::lab::{Lab, secs};
use crate::toy::{Toy, toy};

/// A client of the door's service account that notes what is asked for.
fn door(lab: &Lab, asked: &Arc<Mutex<BTreeSet<Asked>>>) -> Client {
    let inner = lab.sim.client_as(User::service_account("default", "toys"));
    let asked = Arc::clone(asked);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let path = request.uri().path_and_query().map_or("", |path| path.as_str());
        asked.lock().unwrap().extend(Asked::of(request.method().as_str(), path));
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    Client::new(service, "default")
}

async fn grant(lab: &Lab, needs: &Needs) {
    for manifest in needs.manifests("toys", "default") {
        let object: DynamicObject = serde_json::from_value(manifest).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) =
            types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(lab.client.clone(), namespace, &resource),
            None => Api::all_with(lab.client.clone(), &resource),
        };
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}

async fn run(needs: &Needs) -> (Option<i64>, BTreeSet<Asked>) {
    let lab = Lab::new().await;
    grant(&lab, needs).await;
    let asked = Arc::default();
    let lease = LeaseSettings::new("default", "toys", "one");
    let replica = lab.replica_with(door(&lab, &asked), ControllerSettings::default(), Some(lease));
    lab.create(&toy("a", 3)).await;
    tokio::time::sleep(secs(20)).await;
    replica.stop().await;
    let size = lab.get("a").await.status.map(|status| status.size);
    let asked = asked.lock().unwrap().clone();
    (size, asked)
}

fn watched() -> [Need; 2] {
    let watch = [Verb::List, Verb::Watch];
    [Need::on::<Toy>(&[watch[0], watch[1], Verb::Patch]), Need::on::<Secret>(&watch)]
}

#[tokio::test(start_paused = true)]
async fn the_role_made_from_needs_is_enough_and_used() {
    let needs = Needs::new(watched())
        .and(Needs::new([Need::on_status::<Toy>(&[Verb::Patch])]))
        .with_runtime("toys");
    let (size, asked) = run(&needs).await;
    assert_eq!(size, Some(3));
    // The toy door publishes no events; everything else was asked for.
    let unused = needs.unused(&asked);
    assert_eq!(unused, ["create events.events.k8s.io", "patch events.events.k8s.io"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_need_the_work_is_not_done() {
    let (size, _) = run(&Needs::new(watched()).with_runtime("toys")).await;
    assert_eq!(size, None, "the status may not be written");
}
