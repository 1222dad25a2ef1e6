//! A kubelet under a real API server, used by a real `kubectl`.

use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::{Clock as _, Random, SystemClock};
use roost_kubelet::{Kubelet, KubeletParts, NoPinger, Settings, key, serving_tls};
use roost_microvm::{CocoonCli, CocoonSettings, Registry, Runtime};
use roost_oracle::{Cluster, ClusterOptions, Kubectl};
use roost_tls::ClientCa;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A machine under load takes its time; nobody waits this long for what works.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A folder of one test.
pub(crate) fn scratch(what: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("roost-{what}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) struct Lab {
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    pub(crate) cluster: Cluster,
    running: JoinHandle<()>,
}

impl Lab {
    /// With the simulated `cocoon`.
    pub(crate) async fn start(options: ClusterOptions) -> Option<Self> {
        Self::start_on_cocoon(options, scratch("node"), &[]).await
    }

    pub(crate) async fn start_on_cocoon(
        options: ClusterOptions,
        folder: PathBuf,
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        let cocoon = CocoonSettings {
            binary: PathBuf::from(env!("CARGO_BIN_EXE_cocoon-sim")),
            wrapper: vec!["env".to_owned(), format!("COCOON_SIM_DIR={}", folder.display())],
            run_dir: folder.join("run"),
            root_dir: folder.clone(),
        };
        Self::start_with(options, folder, Arc::new(CocoonCli::new(cocoon)), None, variables).await
    }

    pub(crate) async fn start_with(
        options: ClusterOptions,
        folder: PathBuf,
        runtime: Arc<dyn Runtime>,
        registry: Option<Registry>,
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let started = tokio::task::spawn_blocking(move || Cluster::start(&options));
        let cluster = started.await.unwrap()?;
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let leases = folder.join("leases.json").display().to_string();
        let variable = |name: &str| match name {
            "VK_NODE_NAME" => Some("vnode".to_owned()),
            "VK_NODE_IP" => Some("127.0.0.1".to_owned()),
            "VK_KUBELET_PORT" => Some(port.to_string()),
            "COCOON_ROOT_DIR" => Some("/".to_owned()),
            "VK_LEASES_PATH" => Some(leases.clone()),
            _ => {
                let given = variables.iter().find(|(key, _)| *key == name);
                let file = |name: &str| cluster.certificates().join(name).display().to_string();
                given.map(|(_, value)| (*value).to_owned()).or_else(|| match name {
                    "VK_TLS_CERT" => Some(file("kubelet.crt")),
                    "VK_TLS_KEY" => Some(file("kubelet.key")),
                    _ => None,
                })
            }
        };
        let mut metrics = MetricRegistry::with_prefix("vk_cocoon");
        let settings = Settings::read(&variable).unwrap();
        let client_ca = ClientCa::File(cluster.certificates().join("ca.crt"));
        let tls = serving_tls(&settings, Some(client_ca), SystemClock.now()).unwrap();
        let parts = KubeletParts {
            settings,
            client: cluster.client().await,
            runtime,
            registry,
            pinger: Arc::new(NoPinger),
            pings_are_faked: true,
            clock: Arc::new(SystemClock),
            random: Random::from_seed(1),
        };
        let kubelet = Kubelet::start(parts, &mut metrics).await.unwrap();
        let api = kubelet.api(Arc::new(metrics));
        let serving =
            api.serve(TcpListener::from_std(listener).unwrap(), tls, std::future::pending());
        let running = tokio::spawn(async move {
            tokio::join!(kubelet.run(std::future::pending()), serving);
        });
        Some(Self { folder, port, cluster, running })
    }

    pub(crate) fn kubectl(&self) -> &Kubectl {
        self.cluster.kubectl()
    }

    /// A pod with the annotations that the operator of cocoon would set.
    pub(crate) async fn run_pod(&self, name: &str) {
        let container = json!({"name": "agent", "image": "pause", "stdin": true});
        self.run_pod_of("img", name, container).await;
    }

    pub(crate) async fn run_pod_of(&self, image: &str, name: &str, container: serde_json::Value) {
        self.run_pod_as("linux", image, name, container).await;
    }

    pub(crate) async fn run_pod_as(
        &self,
        os: &str,
        image: &str,
        name: &str,
        container: serde_json::Value,
    ) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {
                key::VM_NAME: format!("vk-default-{name}"), key::MANAGED: "true", key::MODE: "run",
                key::IMAGE: image, key::SNAPSHOT_POLICY: "never", key::OS: os,
            }},
            "spec": {
                "nodeName": "vnode",
                "automountServiceAccountToken": false,
                "tolerations": [{"operator": "Exists"}],
                "containers": [container],
            },
        }))
        .unwrap();
        let pods: Api<Pod> = Api::default_namespaced(self.cluster.client().await);
        // The service account of the namespace comes a moment after the namespace.
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while let Err(error) = pods.create(&PostParams::default(), &pod).await {
            assert!(tokio::time::Instant::now() < deadline, "{error}");
            sleep(Duration::from_millis(200)).await;
        }
        let wait = ["wait", "--for=condition=Ready", &format!("pod/{name}"), "--timeout=100s"];
        assert_eq!(self.run(&wait, "").await.code, 0, "{name} is not ready");
    }

    /// The service account of the namespace comes a moment after the namespace, and pods need it.
    pub(crate) async fn account_is_there(&self) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.run(&["get", "serviceaccount", "default"], "").await.code != 0 {
            assert!(tokio::time::Instant::now() < deadline, "there is no service account");
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Runs `kubectl` to its end, with something to read.
    pub(crate) async fn run(&self, arguments: &[&str], stdin: &str) -> Said {
        self.run_with(&[], arguments, stdin).await
    }

    pub(crate) async fn run_with(
        &self,
        env: &[(&str, &str)],
        arguments: &[&str],
        stdin: &str,
    ) -> Said {
        let mut child = self.spawn_with(env, arguments);
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).await.unwrap();
        let ended = timeout(PATIENCE, child.wait_with_output()).await;
        let ended = ended.unwrap_or_else(|_| panic!("kubectl {arguments:?} does not end")).unwrap();
        Said {
            code: ended.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&ended.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
        }
    }

    pub(crate) fn spawn_with(&self, env: &[(&str, &str)], arguments: &[&str]) -> Child {
        let mut command = Command::from(self.kubectl().command(arguments));
        command.envs(env.iter().copied()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The VMs of the simulated host, by name.
    pub(crate) fn vm_names(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("host.json")).unwrap_or_default();
        let host: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let vms = host["vms"].as_object().into_iter().flatten();
        let mut names: Vec<String> =
            vms.filter_map(|(_, vm)| Some(vm["config"]["name"].as_str()?.to_owned())).collect();
        names.sort();
        names
    }

    pub(crate) fn vm_folder_of(&self, name: &str) -> PathBuf {
        let text = std::fs::read_to_string(self.folder.join("host.json")).unwrap();
        let host: serde_json::Value = serde_json::from_str(&text).unwrap();
        let vms = host["vms"].as_object().unwrap();
        let (id, _) = vms.iter().find(|(_, vm)| vm["config"]["name"] == name).unwrap();
        self.folder.join("run/cloudhypervisor").join(id)
    }

    pub(crate) fn vm_folder(&self) -> PathBuf {
        let below = self.folder.join("run/cloudhypervisor");
        std::fs::read_dir(below).unwrap().next().unwrap().unwrap().path()
    }

    /// Whether a process of this simulated host has this word among its arguments.
    pub(crate) fn is_running(&self, word: &str) -> bool {
        let host = self.folder.to_string_lossy().into_owned();
        let is_ours = |process: &std::path::Path| {
            let read = |name: &str| std::fs::read(process.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&read("environ")).contains(&host)
                && read("cmdline").split(|byte| *byte == 0).any(|part| part == word.as_bytes())
        };
        std::fs::read_dir("/proc").unwrap().flatten().any(|process| is_ours(&process.path()))
    }
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.running.abort();
        let text = std::fs::read_to_string(self.folder.join("host.json")).unwrap_or_default();
        let host: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        for vm in host["vms"].as_object().into_iter().flatten().map(|(_, vm)| vm) {
            if vm["pid"].as_u64().is_some_and(|pid| pid > 1) {
                let pid = vm["pid"].to_string();
                let _ = std::process::Command::new("kill").args(["-9", &pid]).status();
            }
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) async fn until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_true() {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(100)).await;
    }
}
