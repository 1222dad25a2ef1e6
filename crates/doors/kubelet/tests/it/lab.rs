use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Event, Node, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::{Random, SimClock};
use roost_cocoon_sim::{EpochRegistry, SimRuntime, Timings};
use roost_kube_sim::{KubeSim, Options};
use roost_kubelet::{
    Kubelet, KubeletCore, KubeletDoor, KubeletParts, NoPinger, Settings, StartError, key,
};
use roost_microvm::{Registry, RegistrySettings};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// An API server, a host, and kubelets that come and go.
pub(crate) struct Lab {
    pub(crate) sim: KubeSim,
    pub(crate) host: SimRuntime,
    clock: Arc<SimClock>,
    leases: Leases,
    registry: Option<Registry>,
}

pub(crate) struct Running {
    metrics: MetricRegistry,
    pub(crate) door: KubeletDoor,
    pub(crate) core: KubeletCore,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(SimClock::new());
        let sim = KubeSim::start(Options::default(), clock.clone());
        let host = SimRuntime::new(clock.clone(), Timings::default());
        Self { sim, host, clock, leases: leases(), registry: None }
    }

    /// On real time: the host takes none.
    pub(crate) fn quick() -> Self {
        let none = Duration::ZERO;
        let timings =
            Timings { quick: none, pull: none, run: none, clone: none, save: none, remove: none };
        let lab = Self::new();
        let host = SimRuntime::new(lab.clock.clone(), timings);
        Self { host, ..lab }
    }

    /// With a registry over HTTP, so on real time: the host takes none.
    pub(crate) async fn with_registry(stand_in: &EpochRegistry) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = stand_in.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let tls = roost_tls::TlsTrust::default().client_config().unwrap();
        let http =
            reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap();
        let registry = Registry::new(RegistrySettings { url, token: None, http });
        Self { registry: Some(registry), ..Self::quick() }
    }

    /// With a registry in process, on simulated time.
    pub(crate) fn with_epoch(stand_in: &EpochRegistry) -> Self {
        static HTTP: std::sync::LazyLock<reqwest::Client> = std::sync::LazyLock::new(|| {
            let tls = roost_tls::TlsTrust::default().client_config().unwrap();
            reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap()
        });
        let url = "http://epoch.test".to_owned();
        let settings = RegistrySettings { url, token: None, http: HTTP.clone() };
        let registry = Registry::through(settings, Arc::new(stand_in.clone()));
        Self { registry: Some(registry), ..Self::new() }
    }

    pub(crate) async fn start(&self) -> Result<Running, StartError> {
        self.start_with(&[]).await
    }

    pub(crate) async fn start_with(
        &self,
        variables: &[(&str, &str)],
    ) -> Result<Running, StartError> {
        let parts = self.parts(self.sim.client(), variables);
        let mut metrics = MetricRegistry::default();
        let kubelet = Kubelet::start(parts, &mut metrics).await?;
        Ok(Running::of(kubelet, metrics))
    }

    /// What a kubelet is made of that asks the API server by this client.
    pub(crate) fn parts(&self, client: Client, variables: &[(&str, &str)]) -> KubeletParts {
        let leases = self.leases.0.to_string_lossy().into_owned();
        let all =
            [("VK_NODE_NAME", "node-1"), ("COCOON_ROOT_DIR", "/"), ("VK_LEASES_PATH", &leases)];
        let get = |name: &str| {
            let mut pairs = variables.iter().chain(&all);
            pairs.find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        KubeletParts {
            settings: Settings::read(&get).unwrap(),
            client,
            runtime: Arc::new(self.host.clone()),
            registry: self.registry.clone(),
            pinger: Arc::new(NoPinger),
            pings_are_faked: true,
            clock: self.clock.clone(),
            random: Random::from_seed(1),
        }
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        roost_clock::Clock::now(self.clock.as_ref())
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.sim.client(), "default")
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.sim.client())
    }

    /// Binds a pod to the node.
    pub(crate) async fn apply(&self, name: &str, annotations: &[(&str, &str)]) -> Pod {
        let vm = format!("vk-default-{name}");
        let mut all = vec![
            (key::VM_NAME, vm.as_str()),
            (key::MANAGED, "true"),
            (key::SNAPSHOT_POLICY, "never"),
        ];
        all.extend(annotations);
        let annotations =
            all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let pod = Pod {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                node_name: Some("node-1".to_owned()),
                containers: vec![Container {
                    name: "agent".to_owned(),
                    image: Some("pause".to_owned()),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
            status: None,
        };
        self.pods().create(&PostParams::default(), &pod).await.unwrap()
    }

    pub(crate) async fn run_pod(&self, name: &str) -> Pod {
        self.apply(name, &[(key::MODE, "run"), (key::IMAGE, "img")]).await
    }

    pub(crate) async fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.pods().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn pod(&self, name: &str) -> Option<Pod> {
        self.pods().get_opt(name).await.unwrap()
    }

    /// Waits until what is asked for is true; fails after an hour of simulated time.
    pub(crate) async fn until(&self, what: &str, mut is_true: impl AsyncFnMut(&Self) -> bool) {
        let deadline = Instant::now() + secs(3600);
        while !is_true(self).await {
            let pods = self.pods().list(&ListParams::default()).await.unwrap();
            let seen: Vec<_> = pods
                .items
                .iter()
                .map(|pod| (pod.name_any(), pod.status.clone(), pod.annotations().clone()))
                .collect();
            assert!(Instant::now() < deadline, "{what}: {seen:#?}\n{:?}", self.host.journal());
            sleep(Duration::from_millis(250)).await;
        }
    }

    pub(crate) async fn ready(&self, name: &str) {
        self.until(&format!("{name} is ready"), async |lab: &Self| {
            lab.pod(name).await.is_some_and(|pod| is_ready(&pod))
        })
        .await;
    }

    /// What the operator is told of a pod.
    pub(crate) async fn state(&self, name: &str) -> String {
        let pod = self.pod(name).await;
        let state = pod.as_ref().and_then(|pod| pod.annotations().get(key::LIFECYCLE_STATE));
        state.cloned().unwrap_or_default()
    }

    pub(crate) async fn says(&self, name: &str, state: &str) {
        let what = format!("{name} says {state}");
        self.until(&what, async |lab: &Self| lab.state(name).await == state).await;
    }

    pub(crate) fn vm_names(&self) -> Vec<String> {
        self.host.with_host(|host| host.vms().map(|vm| vm.name().to_owned()).collect())
    }

    /// What events of a reason say.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.sim.client(), "default");
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let of = all.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        of.filter_map(|event| event.message).collect()
    }

    pub(crate) fn object(&self, plural: &str, name: &str) -> Option<Value> {
        self.sim.object("", plural, "default", name)
    }
}

/// The DHCP server of the host: it has an address for every card that the host will ever make.
fn leases() -> Leases {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir()
        .join(format!("roost-kubelet-leases-{}-{number}.json", std::process::id()));
    let row = |n: u32| {
        let (high, low) = (n / 256, n % 256);
        json!({
            "mac": format!("02:00:00:{high:02x}:{low:02x}:00"),
            "ip": format!("10.0.{high}.{low}"),
            "expiry": "2099-01-01T00:00:00Z",
        })
    };
    std::fs::write(&path, json!((1..600).map(row).collect::<Vec<_>>()).to_string()).unwrap();
    Leases(path)
}

struct Leases(PathBuf);

impl Drop for Leases {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Running {
    pub(crate) fn of(kubelet: Kubelet, metrics: MetricRegistry) -> Self {
        let (door, core) = (kubelet.door(), kubelet.core());
        let (shutdown, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(kubelet.run(async {
            let _ = ended.await;
        }));
        Self { metrics, door, core, shutdown: Some(shutdown), task }
    }

    /// The value of a sample as `vk_cocoon_*` shows it, such as `vm_table_size` or `pod_lifecycle_total{op="create",result="ok"}`.
    pub(crate) fn metric(&self, sample: &str) -> Option<u64> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.metrics).unwrap();
        let line =
            text.lines().find_map(|line| line.strip_prefix("vk_cocoon_")?.strip_prefix(sample));
        line?.trim().parse().ok()
    }

    /// How often an operation had a result.
    pub(crate) fn count(&self, op: &str, result: &str) -> u64 {
        let sample = format!("pod_lifecycle_total{{op=\"{op}\",result=\"{result}\"}}");
        self.metric(&sample).unwrap_or_default()
    }

    /// Dies where it is: nothing is drained.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    pub(crate) async fn stop(mut self) {
        drop(self.shutdown.take());
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions =
        pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
