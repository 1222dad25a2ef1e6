//! Over real sockets: the transport that ships against the wire door of the simulator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::lab::log::Log;
use crate::lab::{HATCHERY, MODEL, REGION, TOKEN, TOKEN_V2, chain, key, secs, settings};
use roost_cds::{
    Api, Call, CallError, Client, HttpSettings, HttpTransport, JobHint, JobId, JobStatus,
    QueueSettings, QueueWatch, Settings, V2Worker, WorkerConfig, v2,
};
use roost_cds_sim::{CdsApi, Fault, Options, Server, V1Demand, V2Demand, worker_main};
use roost_clock::{Clock, SystemClock};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time;

struct Wire {
    api: CdsApi,
    server: Server,
}

impl Wire {
    async fn start() -> Self {
        let options =
            Options::new(1).consumer(HATCHERY, TOKEN).hatchery(HATCHERY, TOKEN_V2, REGION);
        let api = CdsApi::start(options, Arc::new(SystemClock)).unwrap();
        let model = v2::Model {
            os_arch: "linux/amd64".into(),
            model_type: "vsphere".into(),
            spec: v2::ModelSpec(json!({"image": "debian12"})),
            ..v2::Model::default()
        };
        api.add_v2_model(&v2::AsCodePath::parse(MODEL).unwrap(), model);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::start(api.clone(), listener).unwrap();
        Self { api, server }
    }

    fn client(&self) -> Client {
        client(&self.server.url(), &HttpSettings::default())
    }
}

fn client(url: &str, http: &HttpSettings) -> Client {
    let settings = Settings { url: url.parse().unwrap(), ..settings(HATCHERY) };
    let transport = HttpTransport::new(http).unwrap();
    Client::new(settings, Arc::new(transport), Arc::new(SystemClock)).unwrap()
}

/// The next hint of this kind, or a failure that says what was waited for.
async fn wait_for<T>(
    hints: &mut mpsc::Receiver<JobHint>,
    what: &str,
    pick: impl Fn(JobHint) -> Option<T>,
) -> T {
    let waiting = async {
        loop {
            if let Some(found) = pick(hints.recv().await.expect("a watch runs")) {
                return found;
            }
        }
    };
    time::timeout(secs(30), waiting).await.unwrap_or_else(|_| panic!("no {what}"))
}

fn watch(
    client: &Client,
) -> (Vec<tokio::sync::watch::Receiver<roost_cds::QueueHealth>>, mpsc::Receiver<JobHint>) {
    let (sender, hints) = mpsc::channel(64);
    let quick =
        QueueSettings { first_pause: Duration::from_millis(20), ..QueueSettings::default() };
    let watches = client.queue_watches(quick).into_iter();
    let health = watches.map(|watch: QueueWatch| {
        let health = watch.health();
        tokio::spawn(watch.run(sender.clone()));
        health
    });
    (health.collect(), hints)
}

#[tokio::test]
async fn a_job_is_pushed_taken_and_executed_over_real_sockets() {
    let (log, _guard) = Log::capture();
    let wire = Wire::start().await;
    let client = wire.client();
    client.sign_in().await.unwrap();
    let (health, mut hints) = watch(&client);
    for mut health in health {
        let connected = health.wait_for(|health| health.connected.is_some());
        time::timeout(secs(30), connected).await.unwrap().unwrap();
    }
    // The filter is on its way; the poll of a new connection says that nothing is missed meanwhile.
    let v1 = wire.api.add_v1_job(V1Demand::new());
    let demand = V2Demand::new(MODEL).takes(Duration::from_millis(50));
    let v2 = wire.api.add_v2_job(demand).unwrap();
    for id in [JobId::V1(v1), JobId::V2(v2.clone())] {
        wait_for(&mut hints, "hint", |hint| match hint {
            JobHint::Pushed(pushed) => (pushed == id).then_some(()),
            JobHint::Polled { jobs, .. } => jobs.iter().any(|job| job.id == id).then_some(()),
        })
        .await;
    }
    client.v2().unwrap().take(&v2).await.unwrap();
    let worker = V2Worker {
        name: "keen-bohr".into(),
        model_name: MODEL.into(),
        run_job_id: v2.clone(),
        hatchery_name: HATCHERY.into(),
    };
    let config = WorkerConfig {
        name: "keen-bohr".into(),
        api_endpoint: wire.server.url(),
        api_token: worker.token("u-1".into(), SystemClock.now(), &key()).unwrap(),
        run_job_id: v2.clone(),
        region: REGION.into(),
        ..WorkerConfig::default()
    };
    let value = config.encode();
    let env = BTreeMap::from([("CDS_CONFIG".to_owned(), value.expose().to_owned())]);
    let code = tokio::task::spawn_blocking(move || worker_main(&env)).await.unwrap();
    assert_eq!(code, 0);
    let report = wire.api.job(&JobId::V2(v2)).unwrap();
    assert_eq!((report.status, report.executions()), (JobStatus::Success, vec!["keen-bohr"]));
    client.sign_out().await;
    let log = log.text();
    assert!(log.contains("CDS answered"));
    for secret in [TOKEN, TOKEN_V2, config.api_token.expose(), "Bearer ey"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn closing_codes_cross_the_wire_and_the_websocket_comes_back() {
    let wire = Wire::start().await;
    let client = wire.client();
    let (mut health, mut hints) = watch(&client);
    tokio::spawn(async move { while hints.recv().await.is_some() {} });
    for (round, code) in (2_u64..).zip([1000_u16, 1001, 1006, 1011, 4242]) {
        for health in &mut health {
            let open = health.wait_for(|health| health.connected.is_some());
            time::timeout(secs(30), open).await.unwrap().unwrap();
        }
        wire.api.close_websockets(code);
        for health in &mut health {
            let again = health.wait_for(|health| health.connections == round);
            let health = time::timeout(secs(60), again).await.unwrap().unwrap();
            let error = health.last_error.clone().unwrap();
            assert!(error.contains(&format!("code {code}")), "{error}");
        }
    }
}

#[tokio::test]
async fn large_answers_are_compressed_and_read() {
    let wire = Wire::start().await;
    for _ in 0..200 {
        wire.api.add_v1_job(V1Demand::new().model("shared.infra/debian12"));
    }
    let client = wire.client();
    assert_eq!(client.v1().unwrap().waiting_jobs().await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_broken_connection_is_tried_again_and_a_dead_server_is_named() {
    let wire = Wire::start().await;
    let client = wire.client();
    client.sign_in().await.unwrap();
    wire.api.inject(Fault::on("GET /worker").first(2).cut());
    client.v1().unwrap().workers().await.unwrap();
    let (mut health, _hints) = watch(&client);
    let open = health[0].wait_for(|health| health.connected.is_some());
    time::timeout(secs(30), open).await.unwrap().unwrap();
    drop(wire.server);
    let closed = health[0].wait_for(|health| health.connected.is_none());
    time::timeout(secs(30), closed).await.unwrap().unwrap();
    let error = client.v1().unwrap().workers().await.unwrap_err();
    assert!(matches!(error, CallError::Transport { attempts: 3, .. }), "{error:?}");
    assert!(chain(&error).starts_with("GET /worker: no whole answer after 3 attempts: "));
}

#[tokio::test]
async fn guests_download_their_worker_without_a_session() {
    let wire = Wire::start().await;
    let transport = Arc::new(HttpTransport::new(&HttpSettings::default()).unwrap());
    let url = wire.server.url().parse().unwrap();
    let api = Api::new(transport, &url, secs(10), Arc::new(SystemClock));
    let call = Call::get("/download/worker/linux/x86_64");
    assert!(api.call(&call, None).await.unwrap().body.starts_with(b"#!/bin/sh"));
    let call = Call::get("/download/worker/plan9/mips");
    assert!(api.call(&call, None).await.unwrap_err().is_gone());
}

#[tokio::test]
async fn a_program_without_a_configuration_fails() {
    let run = |env| tokio::task::spawn_blocking(move || worker_main(&env));
    assert_eq!(run(BTreeMap::new()).await.unwrap(), 1);
    let wrong = BTreeMap::from([("CDS_CONFIG".to_owned(), "???".to_owned())]);
    assert_eq!(run(wrong).await.unwrap(), 1);
}

/// Puts TLS with a certificate of its own before the simulator, and gives the address and a file with the certificate.
async fn tls_front(to: std::net::SocketAddr) -> (String, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = std::env::temp_dir().join(format!("roost-cds-{}.pem", std::process::id()));
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut outside = acceptor.accept(stream).await.ok()?;
                let mut inside = TcpStream::connect(to).await.ok()?;
                tokio::io::copy_bidirectional(&mut outside, &mut inside).await.ok()
            });
        }
    });
    (url, file)
}

#[tokio::test]
async fn a_certificate_is_verified_unless_the_operator_says_otherwise() {
    let wire = Wire::start().await;
    let (url, file) = tls_front(wire.server.address()).await;
    let error = client(&url, &HttpSettings::default()).v1().unwrap().workers().await.unwrap_err();
    assert!(matches!(error, CallError::SignIn { .. }), "{error:?}");
    let insecure = HttpSettings { insecure: true, ca_file: None };
    let trusting = HttpSettings { insecure: false, ca_file: Some(file.clone()) };
    for http in [insecure, trusting] {
        let client = client(&url, &http);
        client.v1().unwrap().workers().await.unwrap();
        let (mut health, _hints) = watch(&client);
        let open = health[1].wait_for(|health| health.connected.is_some());
        time::timeout(secs(30), open).await.unwrap().unwrap();
    }
    std::fs::remove_file(&file).unwrap();
    let missing = HttpSettings { insecure: false, ca_file: Some(file) };
    let error = HttpTransport::new(&missing).unwrap_err();
    assert!(error.to_string().starts_with("the CA file "), "{error}");
}

/// Runs itself again with a proxy in the environment, because a process must not change its own.
#[tokio::test]
async fn a_proxy_from_the_environment_carries_calls_and_websockets() {
    const CHILD: &str = "ROOST_CDS_TEST_BEHIND_PROXY";
    if std::env::var_os(CHILD).is_some() {
        let client = client("http://cds.invalid", &HttpSettings::default());
        client.v1().unwrap().workers().await.unwrap();
        let (mut health, _hints) = watch(&client);
        let open = health[0].wait_for(|health| health.connected.is_some());
        time::timeout(secs(30), open).await.unwrap().unwrap();
        return;
    }
    // The simulator answers requests for any host, as a proxy does.
    let wire = Wire::start().await;
    let child = tokio::task::spawn_blocking({
        let proxy = wire.server.url();
        move || {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "wire::a_proxy_from_the_environment_carries_calls_and_websockets",
                ])
                .env(CHILD, "1")
                .env("HTTP_PROXY", &proxy)
                .env("http_proxy", &proxy)
                .env_remove("NO_PROXY")
                .env_remove("no_proxy")
                .output()
                .unwrap()
        }
    });
    let output = child.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(wire.api.calls("GET /ws") >= 1 && wire.api.calls("GET /worker") == 1);
}
