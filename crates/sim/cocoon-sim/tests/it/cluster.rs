//! A node as a whole cluster meets it: its certificate is signed by the cluster, its pods are made by a Deployment and bound by the scheduler, and
//! its figures are read by the metrics server.

use std::time::Duration;

use roost_oracle::ClusterOptions;
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, PATIENCE, scratch, until};

const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations:
        vm.cocoonstack.io/name: vk-$(POD_NAMESPACE)-$(POD_NAME)
        cocoonset.cocoonstack.io/managed: "true"
        cocoonset.cocoonstack.io/mode: run
        cocoonset.cocoonstack.io/image: img
        cocoonset.cocoonstack.io/snapshot-policy: never
    spec:
      nodeSelector: {type: virtual-kubelet}
      tolerations: [{key: virtual-kubelet.io/provider, operator: Exists}]
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers: [{name: agent, image: placeholder, resources: {requests: {cpu: 10m, memory: 512Mi}}}]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_signs_the_certificate_schedules_pods_and_reads_their_figures() {
    let options =
        ClusterOptions { controller_manager: true, scheduler: true, ..ClusterOptions::default() };
    let folder = scratch("cluster-node");
    let file = |name: &str| folder.join(name).display().to_string();
    let (certificate, key) = (file("tls/kubelet.crt"), file("tls/kubelet.key"));
    let variables = [("VK_TLS_CSR", "true"), ("VK_TLS_CERT", &*certificate), ("VK_TLS_KEY", &*key)];
    let lab = Lab::start_on_cocoon(options, folder.clone(), &variables).await;
    let Some(mut lab) = lab else { return };
    signing(&lab).await;
    deployment(&lab).await;
    let measured = tokio::task::spawn_blocking(move || {
        let started = lab.cluster.start_metrics_server();
        (lab, started)
    });
    let (lab, started) = measured.await.unwrap();
    if started.is_some() {
        top(&lab).await;
    }
    assert_eq!(lab.run(&["delete", "deployment", "web"], "").await.code, 0);
    until("VMs go with their Deployment", || lab.vm_names().is_empty()).await;
}

/// Nobody but the cluster has signed for this node: the API server would not speak to it before.
async fn signing(lab: &Lab) {
    let authority = std::fs::read(lab.cluster.certificates().join("ca.crt")).unwrap();
    let http = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .tls_certs_only([reqwest::Certificate::from_pem(&authority).unwrap()])
        .build()
        .unwrap();
    let healthz = format!("https://127.0.0.1:{}/healthz", lab.port);
    assert!(http.get(&healthz).send().await.is_err(), "its own certificate is nobody's");
    let deadline = Instant::now() + PATIENCE;
    let name = loop {
        let path = "jsonpath={.items[*].metadata.name}";
        let names = lab.kubectl().stdout(&["get", "csr", "-o", path]);
        if !names.is_empty() {
            break names;
        }
        assert!(Instant::now() < deadline, "there is no signing request");
        sleep(Duration::from_millis(200)).await;
    };
    assert!(name.starts_with("kubelet-serving-vnode-"), "{name}");
    lab.kubectl().stdout(&["certificate", "approve", &name]);
    loop {
        // Whoever is not known is told so, on a connection that is believed.
        match http.get(&healthz).send().await {
            Ok(answer) => {
                assert_eq!(answer.status().as_u16(), 401);
                break;
            }
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
        sleep(Duration::from_millis(500)).await;
    }
}

async fn deployment(lab: &Lab) {
    let file = lab.kubectl().file("deployment.yaml", DEPLOYMENT);
    lab.kubectl().stdout(&["apply", "-f", &file]);
    rolled_out(lab).await;
    let first = pods(lab);
    assert_eq!((first.len(), &first), (2, &lab.vm_names()), "a VM for each pod");
    let said = lab.run(&["logs", "deployment/web"], "").await;
    assert!(said.code == 0 && said.stdout.ends_with(" booted\n"), "{said:?}");
    let said = lab.run(&["exec", "deployment/web", "--", "echo", "here"], "").await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "here\n"), "{said:?}");
    lab.kubectl().stdout(&["rollout", "restart", "deployment/web"]);
    rolled_out(lab).await;
    until("old VMs go", || {
        let names = lab.vm_names();
        names.len() == 2 && names.iter().all(|name| !first.contains(name))
    })
    .await;
    lab.kubectl().stdout(&["scale", "deployment/web", "--replicas=1"]);
    until("one VM goes", || lab.vm_names().len() == 1).await;
}

async fn rolled_out(lab: &Lab) {
    let said = lab.run(&["rollout", "status", "deployment/web", "--timeout=110s"], "").await;
    let pods = || lab.kubectl().stdout(&["get", "pods", "-o", "yaml"]);
    assert_eq!(said.code, 0, "{said:?}\n{}", pods());
}

/// The names that VMs of these pods have.
fn pods(lab: &Lab) -> Vec<String> {
    let names = ["get", "pods", "-o", "jsonpath={.items[*].metadata.name}"];
    let names = lab.kubectl().stdout(&names);
    let mut names: Vec<String> =
        names.split_whitespace().map(|name| format!("vk-default-{name}")).collect();
    names.sort();
    names
}

/// The metrics server has to see a pod twice before it tells of it.
async fn top(lab: &Lab) {
    let deadline = Instant::now() + PATIENCE * 2;
    let shown = loop {
        let said = lab.run(&["top", "pod", "--no-headers"], "").await;
        if said.code == 0 && said.stdout.starts_with("web-") {
            break said.stdout;
        }
        assert!(Instant::now() < deadline, "{said:?}");
        sleep(Duration::from_secs(2)).await;
    };
    let columns: Vec<&str> = shown.split_whitespace().collect();
    assert!(columns[1].ends_with('m') && columns[2].ends_with("Mi"), "{shown}");
    assert_ne!(columns[2], "0Mi", "{shown}");
    let shown = lab.kubectl().stdout(&["top", "node", "--no-headers"]);
    let columns: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(columns[0], "vnode", "{shown}");
    assert!(columns[1].ends_with('m') && columns[3].ends_with("Mi"), "{shown}");
}
