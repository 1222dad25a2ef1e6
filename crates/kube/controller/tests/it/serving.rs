//! Probes, metrics and webhooks on the wire, on real time.

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
use roost_controller::Manager;
use roost_controller::serve::{Access, Tls, metrics_router, probe_router, serve};
use roost_controller::webhook::{Denial, Review, SelfMade, Webhooks};
use roost_kube_sim::{Grant, KubeSim, Options, User};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

fn cluster() -> KubeSim {
    KubeSim::start(Options::default(), Arc::new(SystemClock))
}

async fn listen(tls: Tls, router: axum::Router) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(listener, tls, router, std::future::pending()));
    port
}

async fn get(port: u16, path: &str, token: Option<&str>) -> (StatusCode, String) {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::get(path).header(header::HOST, "localhost");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let answer =
        sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
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

#[tokio::test]
async fn metrics_are_for_those_whom_the_api_server_allows_it() {
    let sim = cluster();
    sim.add_token("good", User::named("prometheus"));
    sim.add_token("weak", User::named("somebody"));
    let all = |what: &str| Grant {
        who: "prometheus".to_owned(),
        verb: "get".to_owned(),
        group: String::new(),
        what: what.to_owned(),
    };
    sim.add_grant(all("/metrics"));
    let mut registry = Registry::default();
    registry.register("toys", "Toys that were made", Counter::<u64>::default());
    let router = metrics_router(Arc::new(registry), Access::reviewed(sim.client()));
    let port = listen(Tls::Off, router).await;
    assert_eq!(get(port, "/metrics", None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(get(port, "/metrics", Some("wrong")).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(get(port, "/metrics", Some("weak")).await.0, StatusCode::FORBIDDEN);
    let (status, text) = get(port, "/metrics", Some("good")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("toys_total 0"), "{text}");
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
