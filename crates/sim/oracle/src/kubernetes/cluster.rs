//! A real control plane on loopback, all state in a folder of its own.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::daemon::Daemon;
use super::kubectl::Kubectl;
use super::{certificates, etcd, kube_apiserver, kube_controller_manager, kube_scheduler};
use crate::go::Binary;
use crate::scratch::Scratch;

/// A busy machine needs ten seconds; nobody should wait longer than this to learn that something is broken.
const START_TRIES: u32 = 600;
const TRY_EVERY: Duration = Duration::from_millis(200);

/// How the API server finds the metrics server, and what that may do.
const METRICS_SERVER: &str = include_str!("metrics-server.yaml");

/// What runs beside etcd and the API server.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    /// Garbage collection, namespaces, service accounts, deployments, the lifecycle of nodes.
    pub controller_manager: bool,
    pub scheduler: bool,
    /// Further flags of the API server.
    pub flags: Vec<String>,
}

/// A control plane. It ends with this value, and also when the test process dies.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: those who talk to the API server before it, etcd last.
    others: Vec<Daemon>,
    api_server: Option<Daemon>,
    _etcd: Daemon,
    binary: Binary,
    arguments: Vec<String>,
    port: u16,
    kubectl: Kubectl,
    folder: Scratch,
}

impl Cluster {
    /// `None` after a line that says so when the programs cannot be had. Panics when they do not start.
    ///
    /// Blocks: call it through `spawn_blocking` in async tests.
    pub fn start(options: &ClusterOptions) -> Option<Self> {
        let (etcd, binary) = (etcd()?, kube_apiserver()?);
        let kubectl = super::kubectl()?;
        let controller_manager =
            if options.controller_manager { Some(kube_controller_manager()?) } else { None };
        let scheduler = if options.scheduler { Some(kube_scheduler()?) } else { None };
        let folder = Scratch::new("cluster");
        let at = folder.path().to_owned();
        certificates::write(&at).unwrap_or_else(|error| panic!("making certificates: {error}"));
        let (store, peers, port) = (free_port(), free_port(), free_port());
        let mut etcd = Daemon::start("etcd", &etcd, &etcd_arguments(&at, store, peers), &at);
        wait_for("etcd", &mut etcd, || TcpStream::connect(("127.0.0.1", store)).is_ok());
        let arguments = api_server_arguments(&at, store, port, options);
        for who in ["admin", "controller-manager", "scheduler", "node", "metrics-server"] {
            let text = kubeconfig(&at, who, port);
            let path = at.join(format!("{who}.kubeconfig"));
            fs::write(&path, text)
                .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        }
        let kubectl = Kubectl::with(kubectl, &at.join("admin.kubeconfig"));
        let mut cluster = Self {
            others: Vec::new(),
            api_server: None,
            _etcd: etcd,
            binary,
            arguments,
            port,
            kubectl,
            folder,
        };
        cluster.start_api_server();
        if let Some(binary) = controller_manager {
            cluster.start_other(
                "kube-controller-manager",
                &binary,
                controller_manager_arguments(&at),
            );
        }
        if let Some(binary) = scheduler {
            cluster.start_other("kube-scheduler", &binary, scheduler_arguments(&at));
        }
        Some(cluster)
    }

    /// The administrator's.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("admin.kubeconfig")
    }

    /// Of `admin`, `controller-manager`, `scheduler` or `node` (`system:node:vnode`).
    pub fn kubeconfig_of(&self, who: &str) -> PathBuf {
        self.folder.path().join(format!("{who}.kubeconfig"))
    }

    /// Where certificates and keys are: `ca`, `node`, `kubelet`, each with `.crt` and `.key`.
    pub fn certificates(&self) -> &Path {
        self.folder.path()
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The administrator's command line.
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// A client of the administrator.
    pub async fn client(&self) -> kube::Client {
        let read = kube::config::Kubeconfig::read_from(self.kubeconfig());
        let read = read.unwrap_or_else(|error| panic!("reading the kubeconfig: {error}"));
        let config =
            kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
                .await;
        let config = config.unwrap_or_else(|error| panic!("using the kubeconfig: {error}"));
        kube::Client::try_from(config).unwrap_or_else(|error| panic!("making a client: {error}"))
    }

    /// Ends the API server and leaves etcd with what it stored.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts it again, on the same port, and waits until it is ready.
    pub fn start_api_server(&mut self) {
        let mut daemon =
            Daemon::start("kube-apiserver", &self.binary, &self.arguments, self.folder.path());
        let kubectl = &self.kubectl;
        wait_for("kube-apiserver", &mut daemon, || {
            kubectl.run(&["get", "--raw", "/readyz"]).is_success()
        });
        self.api_server = Some(daemon);
    }

    /// All watches and connections break.
    pub fn restart_api_server(&mut self) {
        self.stop_api_server();
        self.start_api_server();
    }

    /// Starts the metrics server beside it, with the rights that its own manifests give it, and has the API server pass requests for figures on.
    /// `None` after a line that says so when it cannot be had.
    pub fn start_metrics_server(&mut self) -> Option<()> {
        let binary = super::metrics_server()?;
        let (port, arguments) = metrics_server_arguments(self.folder.path());
        let objects = METRICS_SERVER.replace("PORT", &port.to_string());
        let objects = self.kubectl.file("metrics-server.yaml", &objects);
        self.kubectl.stdout(&["apply", "-f", &objects]);
        self.start_other("metrics-server", &binary, (port, arguments));
        Some(())
    }

    fn start_other(&mut self, name: &str, binary: &Binary, (port, arguments): (u16, Vec<String>)) {
        let mut daemon = Daemon::start(name, binary, &arguments, self.folder.path());
        wait_for(name, &mut daemon, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        self.others.push(daemon);
    }
}

fn wait_for(name: &str, daemon: &mut Daemon, is_ready: impl Fn() -> bool) {
    for _ in 0..START_TRIES {
        assert!(daemon.is_running(), "{name} ended at its start: {}", daemon.last_words());
        if is_ready() {
            return;
        }
        thread::sleep(TRY_EVERY);
    }
    panic!("{name} is not ready: {}", daemon.last_words());
}

/// Free a moment ago; nobody else is likely to take it before the program does.
fn free_port() -> u16 {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.unwrap_or_else(|error| panic!("finding a free port: {error}")).port()
}

fn etcd_arguments(folder: &Path, client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Nothing in it outlives the test.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn api_server_arguments(
    folder: &Path,
    store: u16,
    port: u16,
    options: &ClusterOptions,
) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{store}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--kubelet-certificate-authority={}", file("ca.crt")),
        format!("--kubelet-client-certificate={}", file("kubelet-client.crt")),
        format!("--kubelet-client-key={}", file("kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP,Hostname".to_owned(),
        // For aggregated servers such as the metrics server.
        format!("--requestheader-client-ca-file={}", file("ca.crt")),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        format!("--proxy-client-cert-file={}", file("front-proxy-client.crt")),
        format!("--proxy-client-key-file={}", file("front-proxy-client.key")),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        // A loopback address is no valid endpoint.
        "--endpoint-reconciler-type=none".to_owned(),
        "--profiling=false".to_owned(),
    ];
    if !options.controller_manager {
        // Nobody makes the service accounts that it would ask for.
        arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    arguments.extend(options.flags.iter().cloned());
    arguments
}

fn controller_manager_arguments(folder: &Path) -> (u16, Vec<String>) {
    let file = |name: &str| folder.join(name).display().to_string();
    let (port, config) = (free_port(), file("controller-manager.kubeconfig"));
    let arguments = vec![
        format!("--kubeconfig={config}"),
        format!("--authentication-kubeconfig={config}"),
        format!("--authorization-kubeconfig={config}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", file("controller-manager-certificates")),
        format!("--service-account-private-key-file={}", file("accounts.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--cluster-signing-cert-file={}", file("ca.crt")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        // A node that is silent is noticed soon.
        "--node-monitor-period=1s".to_owned(),
        "--node-monitor-grace-period=10s".to_owned(),
    ];
    (port, arguments)
}

fn scheduler_arguments(folder: &Path) -> (u16, Vec<String>) {
    let file = |name: &str| folder.join(name).display().to_string();
    let (port, config) = (free_port(), file("scheduler.kubeconfig"));
    let arguments = vec![
        format!("--kubeconfig={config}"),
        format!("--authentication-kubeconfig={config}"),
        format!("--authorization-kubeconfig={config}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", file("scheduler-certificates")),
        "--leader-elect=false".to_owned(),
    ];
    (port, arguments)
}

fn metrics_server_arguments(folder: &Path) -> (u16, Vec<String>) {
    let file = |name: &str| folder.join(name).display().to_string();
    let (port, config) = (free_port(), file("metrics-server.kubeconfig"));
    let arguments = vec![
        format!("--kubeconfig={config}"),
        format!("--authentication-kubeconfig={config}"),
        format!("--authorization-kubeconfig={config}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", file("metrics-server-certificates")),
        format!("--kubelet-certificate-authority={}", file("ca.crt")),
        "--kubelet-use-node-status-port".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        // As often as it can, for nobody likes to wait.
        "--metric-resolution=10s".to_owned(),
        "--kubelet-request-timeout=8s".to_owned(),
    ];
    (port, arguments)
}

fn kubeconfig(folder: &Path, who: &str, port: u16) -> String {
    let file = |name: String| folder.join(name).display().to_string();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster:\n    server: https://127.0.0.1:{port}\n    certificate-authority: {}\nusers:\n- name: u\n  user:\n    client-certificate: {}\n    client-key: {}\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n",
        file("ca.crt".to_owned()),
        file(format!("{who}.crt")),
        file(format!("{who}.key")),
    )
}
