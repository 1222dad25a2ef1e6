use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::SystemClock;
use roost_cocoon_sim::SimRuntime;
use roost_kube_sim::{KubeSim, Options, Server};
use tokio::time::sleep;

use crate::bound::instant_timings;
use crate::parts::{kubelet, pod, scratch};

/// The argument that makes this program the kubelet, before a kubeconfig and a number of pods.
pub(crate) const KUBELET: &str = "--be-the-kubelet";

/// What a kubelet process holds in memory once that many pods are ready. The simulated host is in it.
pub(crate) fn resident_mb(pods: usize) -> f64 {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
        let api: Api<Pod> = Api::namespaced(sim.client(), "default");
        for number in 0..pods {
            let pod = pod(&format!("pod-{number}"));
            api.create(&PostParams::default(), &pod).await.expect("a pod");
        }
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = Server::bind(sim, address).await.expect("a port");
        let folder = scratch("memory");
        let path = folder.join("kubeconfig");
        std::fs::write(&path, server.kubeconfig()).expect("a kubeconfig");
        tokio::spawn(server.run_until(std::future::pending::<()>()));
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args([KUBELET, &path.display().to_string(), &pods.to_string()]);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("a thread").expect("a kubelet");
        let _ = std::fs::remove_dir_all(folder);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.trim().parse().unwrap_or_else(|_| {
            panic!("the kubelet said {said} {}", String::from_utf8_lossy(&output.stderr))
        })
    })
}

/// Until all pods are ready and some time has passed; then it says how much memory it needs, in megabytes.
pub(crate) fn be_the_kubelet(kubeconfig: &str, pods: &str) {
    let pods: usize = pods.parse().expect("a number");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options).await.expect("a config");
        let client = Client::try_from(config).expect("a client");
        let host = SimRuntime::new(Arc::new(SystemClock), instant_timings());
        let folder = scratch("memory-kubelet");
        let mut metrics = MetricRegistry::default();
        let parts = kubelet(client.clone(), Arc::new(host), &folder, 10250, &mut metrics);
        let (node, _) = parts.await;
        tokio::spawn(node.run(std::future::pending()));
        let api: Api<Pod> = Api::namespaced(client, "default");
        // Few at a time, or this would be a figure of the question.
        while ready(&api, pods).await < pods {
            sleep(Duration::from_millis(200)).await;
        }
        sleep(Duration::from_secs(12)).await;
        let _ = std::fs::remove_dir_all(folder);
        let text = std::fs::read_to_string("/proc/self/status").expect("a status");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        println!("{:.1}", kib * 1024.0 / 1e6);
    });
}

async fn ready(api: &Api<Pod>, pods: usize) -> usize {
    let mut count = 0;
    let mut page = ListParams::default().limit(20);
    loop {
        let found = api.list(&page).await.expect("pods");
        count += found.items.iter().filter(|pod| is_ready(pod)).count();
        match found.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return count.min(pods),
        }
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
