//! From the answer that a pod is bound to the call that makes its VM, behind the one that ensures its image. The embedded API server runs in the same process, so its own part counts too.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::SystemClock;
use roost_cocoon_sim::{SimRuntime, Timings};
use roost_kube_sim::{KubeSim, Options};
use roost_kubelet::key;
use tokio::time::{Instant, sleep};

use crate::parts::{kubelet, pod, scratch};

const PODS: usize = 256;

pub(crate) fn instant_timings() -> Timings {
    let none = Duration::ZERO;
    Timings { quick: none, pull: none, run: none, clone: none, save: none, remove: none }
}

/// What one VM costs in calls: of a pod that is run, and of one that is cloned from what is here.
pub(crate) fn calls() -> [(&'static str, usize); 2] {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
        let host = SimRuntime::new(Arc::new(SystemClock), instant_timings());
        let folder = scratch("calls");
        let mut metrics = MetricRegistry::default();
        let parts = kubelet(sim.client(), Arc::new(host.clone()), &folder, 10250, &mut metrics);
        let (node, _) = parts.await;
        let running = tokio::spawn(node.run(std::future::pending()));
        let api: Api<Pod> = Api::namespaced(sim.client(), "default");
        let ready = async |pod: Pod| {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let before = host.journal().len();
            api.create(&PostParams::default(), &pod).await.expect("a pod");
            while !api.get(&name).await.is_ok_and(|pod| crate::memory::is_ready(&pod)) {
                sleep(Duration::from_millis(50)).await;
            }
            let looks = ["vm list", "vm status", "snapshot list"];
            let is_ours = |call: &&String| !looks.iter().any(|look| call.starts_with(look));
            // Without a registry, a snapshot of this host may be what a VM left that sleeps.
            let is_ours = |call: &&String| is_ours(call) && !call.ends_with("-hibernate-import");
            host.journal()[before..].iter().filter(is_ours).count()
        };
        let run = ready(pod("run")).await;
        let now = jiff::Timestamp::UNIX_EPOCH;
        let saved = host.with_host(|host| host.save_snapshot("base", "vk-default-run", now));
        saved.expect("a snapshot");
        let mut clone = pod("clone");
        let annotations = clone.metadata.annotations.get_or_insert_default();
        annotations.insert(key::MODE.to_owned(), "clone".to_owned());
        annotations.insert(key::IMAGE.to_owned(), "base".to_owned());
        let cloned = ready(clone).await;
        running.abort();
        let _ = std::fs::remove_dir_all(folder);
        [("run", run), ("clone", cloned)]
    })
}

/// Middle and 99th percentile in milliseconds, of the best round: others share this machine.
pub(crate) fn best_of(rounds: usize) -> (f64, f64) {
    let rounds = (0..rounds).map(|_| round());
    rounds.min_by(|one, other| one.1.total_cmp(&other.1)).expect("a round")
}

fn round() -> (f64, f64) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
        let host = SimRuntime::new(Arc::new(SystemClock), instant_timings());
        let folder = scratch("bound");
        let mut metrics = MetricRegistry::default();
        let parts = kubelet(sim.client(), Arc::new(host.clone()), &folder, 10250, &mut metrics);
        let (node, _) = parts.await;
        let running = tokio::spawn(node.run(std::future::pending()));
        let api: Api<Pod> = Api::namespaced(sim.client(), "default");
        let mut took = Vec::new();
        for number in 0..PODS {
            let name = format!("pod-{number}");
            let call = format!("vm run vk-default-{name}");
            api.create(&PostParams::default(), &pod(&name)).await.expect("a pod");
            let began = Instant::now();
            while !host.journal().contains(&call) {
                sleep(Duration::from_micros(500)).await;
            }
            took.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        running.abort();
        let _ = std::fs::remove_dir_all(folder);
        took.sort_by(f64::total_cmp);
        (took[PODS / 2], took[PODS * 99 / 100])
    })
}
