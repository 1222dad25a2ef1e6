//! Logs and exec through a real API server, with a script in place of `cocoon`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use prometheus_client::registry::Registry as MetricRegistry;
use roost_microvm::{CocoonCli, CocoonSettings};
use roost_oracle::{Cluster, ClusterOptions};
use roost_tls::{ClientCa, ServerFiles, ServerTls};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::parts::{kubelet, pod, scratch};

const TURNS: usize = 60;

const COCOON: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
record() { printf '{"id":"K7QJ2M4XW5T3ABCDEFGHIJKLMN","hypervisor":"cloud-hypervisor","state":"running","config":{"cpu":1,"memory":1073741824,"storage":0,"image":"img","image_type":"oci","name":"vk-default-a"},"pid":0,"network_configs":[{"tap":"tap0","mac":"02:00:00:00:01:00","network":{"ip":"127.0.0.1","gateway":"127.0.0.1","prefix":24}}],"storage_configs":[]}'; }
case "$1 $2" in
"vm list") if [ -e made ]; then echo "[$(record)]"; else echo "No VMs found."; fi ;;
"vm run") touch made; record ;;
"vm inspect") record ;;
"vm status") exec sleep 600 ;;
"vm exec" | "vm logs") echo hello ;;
esac
"#;

/// What, alone in milliseconds, through the API server in milliseconds. `None`: there is no API server to be had.
pub(crate) fn measure() -> Option<Vec<(&'static str, f64, f64)>> {
    let options = ClusterOptions { controller_manager: true, ..ClusterOptions::default() };
    let cluster = Cluster::start(&options)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let folder = scratch("first-byte");
        let script = folder.join("cocoon");
        std::fs::write(&script, COCOON).expect("a script");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        let node = start(&cluster, &script, &folder).await;
        let api: Api<Pod> = Api::namespaced(cluster.client().await, "default");
        while api.create(&PostParams::default(), &pod("a")).await.is_err() {
            sleep(Duration::from_millis(200)).await;
        }
        let wait = ["wait", "--for=condition=Ready", "pod/a", "--timeout=100s"];
        cluster.kubectl().stdout(&wait);
        let client = Caller::new(&cluster);
        let mut found = Vec::new();
        for (what, verb) in [("logs", "logs"), ("exec", "exec")] {
            let (mut own, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                own.push(alone(&script, verb).await);
                ours.push(if verb == "logs" { client.logs().await } else { client.exec().await });
            }
            found.push((what, middle(own), middle(ours)));
        }
        node.abort();
        let _ = std::fs::remove_dir_all(folder);
        Some(found)
    })
}

async fn start(cluster: &Cluster, script: &Path, folder: &Path) -> tokio::task::JoinHandle<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let cocoon = CocoonSettings {
        binary: script.to_owned(),
        wrapper: Vec::new(),
        run_dir: folder.join("run"),
        root_dir: folder.to_owned(),
    };
    let mut metrics = MetricRegistry::default();
    let runtime = Arc::new(CocoonCli::new(cocoon));
    let (kubelet, _) = kubelet(cluster.client().await, runtime, folder, port, &mut metrics).await;
    let file = |name: &str| cluster.certificates().join(name);
    let files = ServerFiles {
        certificate: file("kubelet.crt"),
        key: file("kubelet.key"),
        client_ca: Some(ClientCa::File(file("ca.crt"))),
    };
    let tls = ServerTls::from_files(files).expect("a certificate");
    let serving = kubelet.api(Arc::new(metrics)).serve(listener, tls, std::future::pending());
    tokio::spawn(async move {
        tokio::join!(kubelet.run(std::future::pending()), serving);
    })
}

async fn alone(script: &Path, verb: &str) -> f64 {
    let began = Instant::now();
    let mut command = tokio::process::Command::new(script);
    command.args(["vm", verb, "K7QJ2M4XW5T3ABCDEFGHIJKLMN", "--", "true"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a script");
    let mut byte = [0];
    child.stdout.take().expect("output").read_exact(&mut byte).await.expect("a byte");
    let took = began.elapsed();
    child.wait().await.expect("its end");
    took.as_secs_f64() * 1_000.0
}

/// Somebody with the administrator's certificate.
struct Caller {
    url: String,
    tls: Arc<rustls::ClientConfig>,
    http: reqwest::Client,
}

impl Caller {
    fn new(cluster: &Cluster) -> Self {
        let file = |name: &str| -> PathBuf { cluster.certificates().join(name) };
        let mut roots = rustls::RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(file("ca.crt")).expect("an authority");
        roots.add(authority).expect("an authority");
        let chain = vec![CertificateDer::from_pem_file(file("admin.crt")).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(file("admin.key")).expect("a key");
        let tls = rustls::ClientConfig::builder().with_root_certificates(roots);
        let tls = tls.with_client_auth_cert(chain, key).expect("a pair");
        let http = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls.clone());
        let http = http.build().expect("a client");
        let url = format!("{}/api/v1/namespaces/default/pods/a", cluster.url());
        Self { url, tls: Arc::new(tls), http }
    }

    async fn logs(&self) -> f64 {
        let began = Instant::now();
        let answer = self.http.get(format!("{}/log", self.url)).send().await.expect("an answer");
        let mut answer = answer.error_for_status().expect("logs");
        answer.chunk().await.expect("a piece").expect("a byte");
        let took = began.elapsed();
        while answer.chunk().await.expect("the rest").is_some() {}
        took.as_secs_f64() * 1_000.0
    }

    async fn exec(&self) -> f64 {
        let address = self.url.strip_prefix("https://").expect("a scheme");
        let address = address.split('/').next().expect("an address").to_owned();
        let began = Instant::now();
        let tcp = TcpStream::connect(&address).await.expect("a connection");
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let tls = tokio_rustls::TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp).await;
        let url = format!("{}/exec?command=true&stdout=true", self.url.replacen("https", "wss", 1));
        let mut request = url.into_client_request().expect("a request");
        let protocol = "v5.channel.k8s.io".parse().expect("a protocol");
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        let opened = tokio_tungstenite::client_async(request, tls.expect("TLS")).await;
        let (mut socket, _) = opened.expect("a stream");
        let mut took = None;
        while let Some(Ok(message)) = socket.next().await {
            let data = message.into_data();
            if data.first() == Some(&1) && data.len() > 1 && took.is_none() {
                took = Some(began.elapsed());
            }
        }
        took.expect("a byte").as_secs_f64() * 1_000.0
    }
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
