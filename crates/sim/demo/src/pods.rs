//! `roost demo kubelet`: pods become microVMs on an embedded host; one hibernates and wakes, one is deleted.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use prometheus_client::registry::Registry;
use roost_clock::{Clock, Random, SystemClock};
use roost_cocoon_sim::{SimRuntime, Timings};
use roost_door::FrontDoor;
use roost_kube_sim::{KubeSim, Options as KubeOptions};
use roost_kubelet::{Kubelet, KubeletParts, NoPinger, Settings, key};
use roost_views::RequestState;
use serde_json::json;

use super::args::Demo;
use super::door_tricks::DoorTricks;
use super::objects::{Narrator, play};
use super::report::Check;

const NODE: &str = "pool-1";
pub(super) const NAMES: [&str; 3] = ["web-0", "web-1", "job-0"];

/// The lease file of the host's DHCP server, in the temporary folder. Goes with the demo.
#[derive(Debug)]
pub(super) struct Leases(PathBuf);

impl Leases {
    pub(super) fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("roost-demo-leases-{}", std::process::id()));
        // One for every card that the host will make.
        let row = |n: u32| json!({"mac": format!("02:00:00:00:{n:02x}:00"), "ip": format!("10.88.0.{n}"), "expiry": "2099-01-01T00:00:00Z"});
        let rows: Vec<_> = (1..100).map(row).collect();
        std::fs::write(&path, json!(rows).to_string()).context("writing the lease file")?;
        Ok(Self(path))
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A kubelet on an embedded host.
pub(super) async fn start(
    client: kube::Client,
    host: &SimRuntime,
    leases: &Leases,
    clock: Arc<dyn Clock>,
    random: Random,
) -> anyhow::Result<Kubelet> {
    let leases = leases.0.to_string_lossy().into_owned();
    let get = |name: &str| match name {
        "VK_NODE_NAME" => Some(NODE.to_owned()),
        "VK_NODE_IP" => Some("127.0.0.1".to_owned()),
        "COCOON_ROOT_DIR" => Some("/".to_owned()),
        "VK_LEASES_PATH" => Some(leases.clone()),
        _ => None,
    };
    let settings = Settings::read(&get).map_err(|problems| {
        anyhow::anyhow!("{}", problems.first().map(ToString::to_string).unwrap_or_default())
    })?;
    let parts = KubeletParts {
        settings,
        client,
        runtime: Arc::new(host.clone()),
        registry: None,
        pinger: Arc::new(NoPinger),
        pings_are_faked: true,
        clock,
        random,
    };
    Ok(Kubelet::start(parts, &mut Registry::default()).await?)
}

pub(super) async fn run(args: &Demo) -> anyhow::Result<ExitCode> {
    let seed = args.seed.unwrap_or_default();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let kube = KubeSim::start(KubeOptions { seed, ..KubeOptions::default() }, Arc::clone(&clock));
    let (client, leases) = (kube.client(), Leases::new()?);
    let host = SimRuntime::new(Arc::clone(&clock), Timings::default());
    let kubelet = start(client.clone(), &host, &leases, clock, Random::from_seed(seed)).await?;
    let (door, core) = (Arc::new(kubelet.door()), Arc::new(kubelet.core()));
    let working = tokio::spawn(kubelet.run(std::future::pending()));
    let (seen, pods) = (Arc::clone(&door), Api::<Pod>::namespaced(client, "default"));
    let tricks = DoorTricks { kube, vcenter: None, host: Some(host.clone()) };
    let story = async move |narrator: &mut Narrator| tell(narrator, &*seen, &pods, &host).await;
    let code = play(args, door, Some(core), tricks, story).await;
    working.abort();
    code
}

/// Three pods are applied; one is deleted, one sleeps and wakes, and the microVM of another one is killed.
pub(super) async fn tell(
    narrator: &mut Narrator,
    door: &dyn FrontDoor,
    pods: &Api<Pod>,
    host: &SimRuntime,
) -> anyhow::Result<Vec<Check>> {
    let running = || {
        let all = door.requests();
        all.iter().filter(|request| request.state == RequestState::Working).count()
    };
    let vms = || names(host);
    narrator.says(&format!("kubectl apply: {}", NAMES.join(", ")));
    for name in NAMES {
        pods.create(&PostParams::default(), &manifest(name)?).await.context("applying")?;
    }
    narrator.until("the microVMs", || running() == NAMES.len()).await?;
    let made = vms().len();
    narrator.says(&format!("kubectl delete pod {}", NAMES[2]));
    pods.delete(NAMES[2], &DeleteParams::default()).await?;
    narrator.until("its microVM to go", || vms().len() == NAMES.len() - 1).await?;
    let gone = format!("vk-default-{}", NAMES[2]);
    let sleeper = format!("vk-default-{}", NAMES[1]);
    host.with_host(|host| host.remember(&sleeper, "count=7"))?;
    narrator.says(&format!("kubectl annotate pod {} {}=true", NAMES[1], key::HIBERNATE));
    hibernate(pods, NAMES[1], Some("true")).await?;
    narrator.until("its microVM to sleep", || !vms().contains(&sleeper)).await?;
    narrator.says(&format!("kubectl annotate pod {} {}-", NAMES[1], key::HIBERNATE));
    hibernate(pods, NAMES[1], None).await?;
    narrator.until("it to wake", || running() == NAMES.len() - 1).await?;
    let memory = host.with_host(|host| host.memory(&sleeper).map(str::to_owned));
    narrator.says("a microVM is killed on the host");
    host.crash(&format!("vk-default-{}", NAMES[0]), true);
    narrator.until("it to run again", || running() == NAMES.len() - 1).await?;
    Ok(vec![
        Check::new(format!("{made} pods became a microVM each"), made == NAMES.len()),
        Check::new("the microVM of the deleted pod is gone, and no other", !vms().contains(&gone)),
        Check::new("one slept and woke with its memory", memory.as_deref() == Some("count=7")),
        Check::new("the microVM that was killed runs again", vms().len() == NAMES.len() - 1),
    ])
}

async fn hibernate(pods: &Api<Pod>, name: &str, value: Option<&str>) -> anyhow::Result<()> {
    let patch = json!({"metadata": {"annotations": {key::HIBERNATE: value}}});
    let patched = pods.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map(drop).context("annotating")
}

pub(super) fn names(host: &SimRuntime) -> Vec<String> {
    host.with_host(|host| host.vms().map(|vm| vm.name().to_owned()).collect())
}

pub(super) fn manifest(name: &str) -> anyhow::Result<Pod> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": {
            key::VM_NAME: format!("vk-default-{name}"), key::MANAGED: "true", key::SNAPSHOT_POLICY: "never",
            key::MODE: "run", key::IMAGE: "ubuntu:24.04"
        }},
        "spec": {"nodeName": NODE, "containers": [{"name": "agent", "image": "pause"}]}
    }))?)
}
