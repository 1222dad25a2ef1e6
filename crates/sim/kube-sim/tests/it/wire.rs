//! The door on the wire, with the kubeconfig that it writes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use roost_clock::SystemClock;
use roost_kube_sim::{KubeSim, Options, Server, User};
use serde_json::json;

use crate::world::refusal;

async fn client(kubeconfig: &str) -> kube::Client {
    let config = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_works_over_https() {
    let sim = KubeSim::start(Options { open: false, ..Options::default() }, Arc::new(SystemClock));
    sim.add_token("secret-token", User::admin());
    let server = Server::bind(sim.clone(), "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let kubeconfig = server.kubeconfig();
    tokio::spawn(server.run_until(std::future::pending::<()>()));
    let api: Api<ConfigMap> = Api::default_namespaced(client(&kubeconfig).await);
    let object = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let stranger = client(&kubeconfig.replace("secret-token", "wrong")).await;
    let refused =
        refusal(Api::<ConfigMap>::default_namespaced(stranger).list(&ListParams::default()).await);
    assert_eq!(refused.code, 401);
}
