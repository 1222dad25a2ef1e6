//! The role that is shipped, found out by running a node under it through everything that it does.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use prometheus_client::registry::Registry as MetricRegistry;
use roost_controller::rbac::Audit;
use roost_kube_sim::{Action, Rule, User, When};
use roost_kubelet::access::{NAME, NAMESPACE, needs};
use roost_kubelet::{Kubelet, KubeletApi, key};
use roost_tls::{ServerTls, TlsIdentity, TlsTrust};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::lab::{Lab, Running, secs};

fn once(verb: &str, resource: &str, action: Action) -> Rule {
    let when = When { times: Some(1), ..When::default() };
    let (verb, resource) = (verb.to_owned(), resource.to_owned());
    Rule { verb, resource, when, action, ..Rule::default() }
}

/// Starts a node whose certificate the cluster is to sign.
async fn start(lab: &Lab, audit: &Audit, folder: &str) -> (Running, KubeletApi) {
    let file = |name: &str| format!("{folder}/{name}");
    let (certificate, key) = (file("c.pem"), file("k.pem"));
    let variables = [("VK_TLS_CSR", "true"), ("VK_TLS_CERT", &certificate), ("VK_TLS_KEY", &key)];
    let parts = lab.parts(audit.client(), &variables);
    let mut metrics = MetricRegistry::default();
    let kubelet = Kubelet::start(parts, &mut metrics).await.unwrap();
    let api = kubelet.api(Arc::new(MetricRegistry::default()));
    (Running::of(kubelet, metrics), api)
}

/// Somebody with a token asks for the pods. On real time from here on.
async fn ask(api: KubeletApi, token: &str) {
    tokio::time::resume();
    let made = TlsIdentity::self_signed("node-1", &["127.0.0.1"]).unwrap();
    let (chain, key) = (made.certificate_pem(), made.key_pem());
    let tls = ServerTls::from_pem(chain.as_bytes(), key.as_bytes(), None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/pods", listener.local_addr().unwrap());
    tokio::spawn(api.serve(listener, tls, std::future::pending()));
    let tls = TlsTrust::Insecure.client_config().unwrap();
    let http = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls);
    let asked = http.build().unwrap().get(url).bearer_auth(token).send().await.unwrap();
    assert_eq!(asked.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn the_role_that_is_shipped_is_enough_and_used() {
    let lab = Lab::new();
    let admin = lab.sim.client();
    let mut home = Namespace::default();
    home.metadata.name = Some(NAMESPACE.into());
    Api::<Namespace>::all(admin.clone()).create(&PostParams::default(), &home).await.unwrap();
    let audit = Audit::grant(&admin, needs(), NAME, NAMESPACE).await.unwrap();
    let folder = std::env::temp_dir().join(format!("roost-kubelet-access-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.to_string_lossy().into_owned();

    let (node, _) = start(&lab, &audit, &folder).await;
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.run_pod("b").await;
    lab.ready("b").await;
    // A pod that cannot be, told again when it is looked at again.
    lab.apply("c", &[(key::VM_NAME, "")]).await;
    for turn in 0..3 {
        sleep(secs(60)).await;
        lab.annotate("c", "turn", Some(&turn.to_string())).await;
    }
    sleep(secs(60)).await;
    // A node that is there is made ours again.
    node.stop().await;
    let (node, api) = start(&lab, &audit, &folder).await;
    lab.ready("a").await;
    // Somebody else writes a pod at the same time.
    lab.sim.add_rule(once("patch", "pods*", Action::Conflict));
    lab.host.crash("vk-default-a", true);
    sleep(secs(120)).await;
    lab.delete("a").await;
    lab.until("a is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    // One goes while the node does not see it.
    lab.sim.add_rule(once("watch", "pods", Action::WatchGone { after: 0 }));
    lab.sim.cut_watches();
    lab.pods().delete("b", &DeleteParams::default().grace_period(0)).await.unwrap();
    lab.until("the VM of b is gone", async |lab: &Lab| lab.vm_names().is_empty()).await;
    sleep(secs(120)).await;
    lab.sim.add_token("x", User::named("reader").in_group("system:masters"));
    ask(api, "x").await;
    node.stop().await;
    let _ = std::fs::remove_dir_all(folder);
    audit.verdict().assert_exact();
}
