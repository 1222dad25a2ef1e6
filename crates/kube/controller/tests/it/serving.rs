//! Probes, metrics and webhooks on the wire, on real time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use roost_clock::{Clock, SimClock, SystemClock};
use roost_controller::serve::{Access, Tls, metrics_router, probe_router, serve};
use roost_controller::webhook::{Denial, Review, SelfMade, Webhooks};
use roost_controller::{LeaseSettings, Manager, Status};
use roost_kube_sim::{Action, Grant, KubeSim, Options, Rule, User};
use roost_tls::{ServerFiles, ServerTls, TlsIdentity, TlsTrust};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

fn cluster() -> KubeSim {
    KubeSim::start(Options::default(), Arc::new(SystemClock))
}

async fn listen(tls: Tls, router: axum::Router) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(listener, tls, router, std::future::pending()));
    port
}

/// Over plain HTTP, or over HTTPS with the server's certificate believed only if this trust says so.
async fn ask(
    port: u16,
    path: &str,
    token: Option<&str>,
    trust: Option<&TlsTrust>,
) -> Result<(StatusCode, String), String> {
    let stream =
        TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
    let Some(trust) = trust else { return exchange(stream, path, token).await };
    let connector = TlsConnector::from(Arc::new(trust.client_config().unwrap()));
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    exchange(stream, path, token).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
    token: Option<&str>,
) -> Result<(StatusCode, String), String> {
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    let mut request = Request::get(path).header(header::HOST, "localhost");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let answer = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let status = answer.status();
    let body = answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn get(port: u16, path: &str, token: Option<&str>) -> (StatusCode, String) {
    ask(port, path, token, None).await.unwrap()
}

#[tokio::test]
async fn a_replica_is_ready_once_its_first_lists_are_complete() {
    let sim = cluster();
    let mut manager = Manager::new(sim.client(), "toys", &mut Registry::default());
    manager.watch(Api::<ConfigMap>::all(sim.client()));
    let status = manager.status();
    let port = listen(Tls::Off, probe_router(status)).await;
    assert_eq!(get(port, "/healthz", None).await.0, StatusCode::OK);
    assert_eq!(get(port, "/readyz", None).await.0, StatusCode::SERVICE_UNAVAILABLE);
    tokio::spawn(manager.run(std::future::pending()));
    while get(port, "/readyz", None).await.0 != StatusCode::OK {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Metrics for whom the reviews of this cluster allow it.
fn reviewed_metrics(sim: &KubeSim) -> axum::Router {
    sim.add_token("good", User::named("prometheus"));
    sim.add_token("weak", User::named("somebody"));
    sim.add_grant(Grant {
        who: "prometheus".to_owned(),
        verb: "get".to_owned(),
        group: String::new(),
        what: "/metrics".to_owned(),
    });
    let mut registry = Registry::default();
    registry.register("toys", "Toys that were made", Counter::<u64>::default());
    metrics_router(Arc::new(registry), Access::reviewed(sim.client()))
}

/// A certificate in files, as cert-manager mounts them.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Puts a new certificate there and says how it is recognised.
    fn renew(&self) -> TlsTrust {
        let made = TlsIdentity::self_signed("toys", &["localhost"]).unwrap();
        for (name, text) in [("tls.key", made.key_pem()), ("tls.crt", made.certificate_pem())] {
            fs::write(self.0.join("new"), text).unwrap();
            fs::rename(self.0.join("new"), self.0.join(name)).unwrap();
        }
        TlsTrust::Thumbprint(made.thumbprint())
    }

    fn tls(&self) -> Tls {
        let (certificate, key) = (self.0.join("tls.crt"), self.0.join("tls.key"));
        let files = ServerFiles { certificate, key, client_ca: None };
        ServerTls::from_files(files).unwrap().into()
    }
}

#[tokio::test]
async fn metrics_are_for_those_whom_the_api_server_allows_it() {
    let sim = cluster();
    let port = listen(Tls::Off, reviewed_metrics(&sim)).await;
    assert_eq!(get(port, "/metrics", None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(get(port, "/metrics", Some("wrong")).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(get(port, "/metrics", Some("weak")).await.0, StatusCode::FORBIDDEN);
    let (status, text) = get(port, "/metrics", Some("good")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("toys_total 0"), "{text}");
}

#[tokio::test]
async fn metrics_over_https_use_the_certificate_in_files_and_its_successor() {
    let sim = cluster();
    let files = Files::new("metrics-files");
    let first = files.renew();
    let port = listen(files.tls(), reviewed_metrics(&sim)).await;
    let good = async |trust: &TlsTrust| ask(port, "/metrics", Some("good"), Some(trust)).await;
    assert_eq!(good(&first).await.unwrap().0, StatusCode::OK);
    let weak = ask(port, "/metrics", Some("weak"), Some(&first)).await.unwrap();
    assert_eq!(weak.0, StatusCode::FORBIDDEN);
    assert!(ask(port, "/metrics", Some("good"), None).await.is_err(), "plain HTTP is not served");

    let second = files.renew();
    while good(&second).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(good(&first).await.is_err(), "the old certificate is shown no more");
}

/// Without the API server nobody can be told apart, so nobody is let in.
#[tokio::test]
async fn metrics_are_for_nobody_while_reviews_fail() {
    let sim = cluster();
    let port = listen(Tls::Off, reviewed_metrics(&sim)).await;
    let mut rule = Rule { verb: "create".to_owned(), ..Rule::default() };
    rule.action = Action::Status { code: 500 };
    let rule = sim.add_rule(rule);
    let status = get(port, "/metrics", Some("good")).await.0;
    assert!(status.is_server_error(), "{status}");
    sim.remove_rule(rule);
    assert_eq!(
        get(port, "/metrics", Some("good")).await.0,
        StatusCode::OK,
        "it was not remembered"
    );
}

fn hooks() -> Webhooks {
    Webhooks::default().validate("/validate", async |review: Review<ConfigMap>| {
        let has_data = review.object.is_some_and(|object| object.data.is_some());
        let reason = (!has_data).then(|| "data: is required".to_owned());
        Denial::unless_empty(reason.into_iter().collect())
    })
}

fn configuration(port: u16) -> ValidatingWebhookConfiguration {
    serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "toys"},
        "webhooks": [{
            "name": "toys.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/validate")},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"], "scope": "*"}],
        }],
    }))
    .unwrap()
}

fn config_map(name: &str, data: &Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
}

#[tokio::test]
async fn the_api_server_asks_a_webhook_whose_certificate_makes_itself() {
    let sim = cluster();
    let certificate =
        SelfMade::new(sim.client(), "default", "toys", "toys-webhook", Arc::new(SystemClock))
            .for_configuration("toys");
    let port = listen(certificate.tls(), hooks().router()).await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(sim.client());
    configurations.create(&PostParams::default(), &configuration(port)).await.unwrap();
    certificate.refresh().await.unwrap();
    let bundle = configurations.get("toys").await.unwrap().webhooks.unwrap()[0]
        .client_config
        .ca_bundle
        .clone();
    assert!(String::from_utf8_lossy(&bundle.unwrap().0).starts_with("-----BEGIN CERTIFICATE-----"));

    let maps: Api<ConfigMap> = Api::namespaced(sim.client(), "default");
    maps.create(&PostParams::default(), &config_map("good", &json!({"a": "b"}))).await.unwrap();
    let refused =
        maps.create(&PostParams::default(), &config_map("bad", &Value::Null)).await.unwrap_err();
    assert!(refused.to_string().contains("data: is required"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_shared_renewed_and_believed_throughout() {
    let clock = Arc::new(SimClock::new());
    let sim = KubeSim::start(Options::default(), clock.clone());
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(sim.client());
    configurations.create(&PostParams::default(), &configuration(1)).await.unwrap();
    let replica = || {
        let clock: Arc<dyn Clock> = clock.clone();
        SelfMade::new(sim.client(), "default", "toys", "toys-webhook", clock)
            .for_configuration("toys")
    };
    let secrets: Api<Secret> = Api::namespaced(sim.client(), "default");
    let shown = async || {
        let data = secrets.get("toys-webhook").await.unwrap().data.unwrap();
        let text = |name: &str| String::from_utf8(data[name].0.clone()).unwrap();
        (text("tls.crt"), text("ca.crt"))
    };
    let (one, two) = (replica(), replica());
    one.refresh().await.unwrap();
    let (certificate, authority) = shown().await;
    two.refresh().await.unwrap();
    assert_eq!(shown().await.0, certificate, "replicas share it");
    let revision = sim.revision();
    one.refresh().await.unwrap();
    assert_eq!(sim.revision(), revision, "nothing to do, nothing written");

    tokio::time::sleep(Duration::from_hours(61 * 24)).await;
    two.refresh().await.unwrap();
    let (renewed, bundle) = shown().await;
    assert_ne!(renewed, certificate);
    assert!(bundle.contains(authority.trim()), "the old authority is believed meanwhile");
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
    let configured = configurations.get("toys").await.unwrap().webhooks.unwrap();
    let configured = configured[0].client_config.ca_bundle.clone().unwrap();
    assert_eq!(String::from_utf8(configured.0).unwrap(), bundle);

    tokio::time::sleep(Duration::from_hours(61 * 24)).await;
    one.refresh().await.unwrap();
    assert_eq!(shown().await.1.matches("BEGIN CERTIFICATE").count(), 2, "it does not grow");
}

/// A process that wants the lease, with its metrics.
fn candidate(sim: &KubeSim, name: &str) -> (Status, Registry) {
    let mut registry = Registry::default();
    let mut manager = Manager::new(sim.client(), "toys", &mut registry)
        .with_lease(LeaseSettings::new("default", "toys", name));
    manager.watch(Api::<ConfigMap>::all(sim.client()));
    let status = manager.status();
    tokio::spawn(manager.run(std::future::pending()));
    (status, registry)
}

/// The service of the webhooks points at all replicas, and so does Prometheus.
#[tokio::test]
async fn a_replica_that_stands_by_serves_probes_metrics_and_webhooks() {
    let sim = cluster();
    let (leader, _) = candidate(&sim, "one");
    leader.leads().await;
    let (standby, registry) = candidate(&sim, "two");
    let probes = listen(Tls::Off, probe_router(standby.clone())).await;
    while get(probes, "/readyz", None).await.0 != StatusCode::OK {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let metrics = listen(Tls::Off, metrics_router(Arc::new(registry), Access::Open)).await;
    let certificate =
        SelfMade::new(sim.client(), "default", "toys", "toys-webhook", Arc::new(SystemClock))
            .for_configuration("toys");
    let webhooks = listen(certificate.tls(), hooks().router()).await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(sim.client());
    configurations.create(&PostParams::default(), &configuration(webhooks)).await.unwrap();
    certificate.refresh().await.unwrap();

    let maps: Api<ConfigMap> = Api::namespaced(sim.client(), "default");
    let refused =
        maps.create(&PostParams::default(), &config_map("bad", &Value::Null)).await.unwrap_err();
    assert!(refused.to_string().contains("data: is required"), "{refused}");
    assert_eq!(get(probes, "/healthz", None).await.0, StatusCode::OK);
    let (status, text) = get(metrics, "/metrics", None).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("leader_election_master_status{name=\"toys\"} 0"), "{text}");
    assert!(leader.is_leader() && !standby.is_leader(), "it stood by all the time");
}
